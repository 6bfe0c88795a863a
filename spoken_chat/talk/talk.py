"""One spoken conversation: microphone sound and messages in, turns out. Knows nothing of the web."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from spoken_chat.audio import ASR_RATE, FloatPcm
from spoken_chat.audio.endpointing import EndpointRule
from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.persona import Persona, PersonaVoice
from spoken_chat.session import ChatSession
from spoken_chat.talk.caption_text import appended
from spoken_chat.talk.captions import Captions
from spoken_chat.talk.ears import Ears
from spoken_chat.talk.events import Caption, Committed, TalkEvent
from spoken_chat.talk.listener import Listener
from spoken_chat.talk.options import ECHO_TAIL_S, PLAYING_THRESHOLD, WORK_AFTER_S, Detection, TalkOptions
from spoken_chat.talk.replies import Replies, StageSource
from spoken_chat.talk.turn_taking import TurnTaking
from spoken_chat.talk.utterance import Spoken, continued
from spoken_chat.turn import Turn, Utterance

log = logging.getLogger(__name__)

LEAST_COMMIT_S: Final = 0.1
"""Less sound than this, committed by hand, cannot hold a word."""

MOST_COMMIT_S: Final = 600.0
"""Sound that waits longer than this to be committed by hand is forgotten."""

SPARE_S: Final = 0.5
"""Sound kept before the pre-roll, for the decisions that say only later when speech began."""

HYSTERESIS: Final = 0.15
"""How far the probability must fall below the threshold for speech to be over."""


class Talk:
    """Joins the microphone, turn taking and replies over one ChatSession. Belongs to one event loop."""

    def __init__(
        self,
        session: ChatSession,
        stages: StageSource,
        ears: Ears,
        options: TalkOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        sessions_active: Callable[[], int] = lambda: 1,
        token_budget: Callable[[], int] | None = None,
    ) -> None:
        self.session = session
        self.last_used = clock()
        """When something was last said, heard or answered, in seconds on the talk's clock."""
        self._clock = clock
        self._lock = asyncio.Lock()
        self._subscribers: list[Callable[[TalkEvent], None]] = []
        self._listener = Listener(ears.detector(), EndpointRule(), options.wait)
        self._replies = Replies(
            session, stages, token_budget or (lambda: session.conversation.budget), self._tell, clock
        )
        self._turns = TurnTaking(
            options,
            self._listener,
            self._replies,
            ears.finished,
            self._tell,
            language=lambda: session.persona.language,
            sessions_active=sessions_active,
            lock=self._lock,
            clock=clock,
        )
        self._captions: Captions | None = None
        self._captioned: Spoken | None = None
        self._by_hand_from = 0.0
        self._before_hold: Detection | None = None
        self._use(options)

    @property
    def options(self) -> TalkOptions:
        """How this talk listens."""
        return self._turns.options

    async def configure(self, options: TalkOptions) -> None:
        """Listen as `options` say from now on.

        From here on by hand, what is being said is handed in with the rest, by `commit`; no longer by hand, it is
        forgotten.
        """
        async with self._lock:
            before = self.options.detection
            self._use(options)
            if options.detection == before:
                return
            if options.detection == "manual":
                await self._replies.drop_held()
                spoken = self._turns.go_on_by_hand()
                kept = self._listener.position if spoken is None else spoken.start - options.pre_roll
                self._by_hand_from = max(0.0, kept)
            elif before == "manual":
                self._turns.forget()
            else:
                self._turns.stop_judging()

    def _use(self, options: TalkOptions) -> None:
        self._turns.options = options
        self._replies.spoken = options.spoken_reply
        endpointer = self._listener.endpointer
        endpointer.wait_s = options.wait_unfinished if options.detection == "adaptive" else options.wait
        endpointer.rule = replace(endpointer.rule, maximum_s=options.utterance_max, pause_s=WORK_AFTER_S)
        self._set_threshold()

    @property
    def replying(self) -> bool:
        """Whether a reply is being made, or still plays."""
        return self._replies.running or self._replies.playhead.audible

    async def hold(self, held: bool) -> None:
        """A key is held to talk (`held`), or let go: meanwhile turns end by hand, whatever the options say else."""
        if held and self._before_hold is None:
            self._before_hold = self.options.detection
            await self.configure(replace(self.options, detection="manual"))
        elif not held and self._before_hold is not None:
            before, self._before_hold = self._before_hold, None
            await self.configure(replace(self.options, detection=before))

    def subscribe(self, tell: Callable[[TalkEvent], None]) -> Callable[[], None]:
        """Tell every event to `tell` until the function that is returned is called."""
        self._subscribers.append(tell)

        def unsubscribe() -> None:
            if tell in self._subscribers:
                self._subscribers.remove(tell)

        return unsubscribe

    async def hear(self, pcm: FloatPcm) -> None:
        """The next microphone sound: 16 kHz mono, any length, in order."""
        at = self._clock()
        async with self._lock:
            deaf = self.options.half_duplex and self._reply_in_the_room()
            for events in self._listener.hear(pcm, at, deaf=deaf):
                self._set_threshold()
                if self.options.detection == "manual":
                    await self._listen_by_hand()
                else:
                    for event in events:
                        await self._turns.obey(event)
                    await self._turns.watch()
                await self._caption()
                self._forget_old()

    async def commit(self) -> str:
        """The sound since the last commit or clear is an utterance, which `say` answers. Returns its name.

        Raises ChatError when there is hardly any.
        """
        async with self._lock:
            spoken = self._turns.spoken or Spoken(self._by_hand_from)
            by_hand = self.options.detection == "manual" or not self._turns.spoken
            start = self._by_hand_from if by_hand else spoken.start - self.options.pre_roll
            sound = self._listener.sound(start)
            if len(sound) < LEAST_COMMIT_S * ASR_RATE:
                raise ChatError("nothing_heard", "There is hardly any sound to answer; hold on while you speak.")
            await self._replies.drop_held()
            self._turns.spoken = None
            self._turns.forget()
            self._by_hand_from = self._listener.position
            given = Utterance(audio=sound)
            self._turns.waiting.add(spoken.id, given if spoken.before is None else continued(spoken.before, given))
            self._tell(Committed(spoken.id, len(sound) / ASR_RATE))
            return spoken.id

    async def clear(self) -> None:
        """Forget the sound since the last commit, and what is being said."""
        async with self._lock:
            await self._replies.drop_held()
            self._turns.forget()
            self._by_hand_from = self._listener.position

    async def say(self, given: Utterance) -> Turn:
        """Answer `given`, with whatever was committed and not answered yet. A reply that still plays is stopped.

        Raises ChatError, and then what waits goes on waiting.
        """
        async with self._lock:
            self.last_used = self._clock()
            await self._replies.stages()
            await self._replies.drop_held()
            whole, utterance = self._turns.waiting.take(given)
            await self._turns.prefill.stop()
            await self._replies.silence(interrupted=False)
            return await self._replies.start(whole, utterance)

    def attach_image(self, image: ImagePart | None) -> None:
        """`image` goes with the next utterance, spoken or typed; None takes it away."""
        self._turns.waiting.image = image

    async def stop(self, heard_seconds: float | None = None) -> None:
        """Stop the reply. `heard_seconds`: how much of it was heard, where the listener's side knows."""
        async with self._lock:
            await self._replies.silence(interrupted=False, heard=heard_seconds)

    def truncate(self, turn_id: str, heard_seconds: float) -> None:
        """The listener's side played only that much of a stopped reply. Raises ChatError for an unknown turn."""
        self._replies.truncate(self._turn(turn_id), heard_seconds)

    def played(self, turn_id: str, waited_s: float, playback_s: float) -> None:
        """The listener's side heard the first sound of a reply; see `Turn.heard_after`. Raises ChatError."""
        self._replies.played(self._turn(turn_id), waited_s, playback_s)

    async def choose(self, persona: Persona, voice: PersonaVoice) -> None:
        """Change who answers, from the next turn on. The model reads another persona's prefix at once."""
        async with self._lock:
            other = persona.id != self.session.persona.id
            self.session.choose(persona, voice)
            if other:
                await self._replies.drop_held()
                await self._turns.prefill.stop()
                await self._turns.read_ahead()

    async def restart(self) -> None:
        """Stop, and forget everything said."""
        async with self._lock:
            await self._replies.silence(interrupted=False)
            await self._replies.drop_held()
            self._turns.forget()
            self._turns.waiting.clear()
            await self.session.restart()
            self._replies.turn = self._replies.given = None

    async def close(self) -> None:
        """Stop everything; no task and no stream is left."""
        async with self._lock:
            await self._replies.silence(interrupted=False)
            await self._replies.drop_held()
        await self._turns.close()
        if self._captions is not None:
            await self._captions.stop()
        self._subscribers.clear()

    async def _listen_by_hand(self) -> None:
        """By hand, the first voice makes the utterance, so that it has captions before it is committed."""
        if self._turns.spoken is None and self._listener.endpointer.voiced:
            self._turns.spoken = Spoken(self._by_hand_from)
            await self._turns.read_ahead()

    async def _caption(self) -> None:
        spoken = self._turns.spoken
        if spoken is None or spoken.candidate or not self.options.partial_transcripts:
            if self._captioned is not None and self._captions is not None:
                self._captions.reset()
            self._captioned = None
            return
        if self._captions is None:
            self._captions = await self._make_captions()
        if self._captions is None:
            return
        if self._captioned is not spoken:
            self._captions.reset()
            self._captioned = spoken
        start = max(0.0, spoken.start - self.options.pre_roll)
        self._captions.feed(self._listener.position, self._listener.endpointer.voiced, self._listener.sound, start)

    async def _make_captions(self) -> Captions | None:
        """The captions of this talk; None while the recogniser loads."""
        try:
            recognizer = (await self._replies.stages()).recognizer
        except ChatError:
            return None

        def tell(stable: str, tail: str) -> None:
            if self._captioned is not None:
                self._tell(Caption(self._captioned.id, appended(self._captioned.words, stable), tail))

        return Captions(recognizer, lambda: [self.session.persona.language], tell, self._clock)

    def _reply_in_the_room(self) -> bool:
        """Whether the microphone may hear the reply."""
        return self._replies.playhead.audible or self._replies.playhead.silent_for < ECHO_TAIL_S

    def _set_threshold(self) -> None:
        endpointer, start = self._listener.endpointer, self.options.threshold
        if self._reply_in_the_room():
            start = max(start, PLAYING_THRESHOLD)
        if endpointer.rule.start != start:
            endpointer.rule = replace(endpointer.rule, start=start, stop=max(0.05, start - HYSTERESIS))

    def _forget_old(self) -> None:
        """Keep no more sound than a turn may still need, however long nobody speaks."""
        position = self._listener.position
        if self.options.detection == "manual":
            self._by_hand_from = max(self._by_hand_from, position - MOST_COMMIT_S)
            self._listener.forget_before(self._by_hand_from)
        else:
            start = position if self._turns.spoken is None else self._turns.spoken.start
            self._listener.forget_before(start - self.options.pre_roll - SPARE_S)

    def _turn(self, turn_id: str) -> Turn:
        for turn in reversed(self.session.turns):
            if turn.id == turn_id:
                return turn
        raise ChatError("turn_unknown", "There is no such turn in this conversation; it may have been taken back.")

    def _tell(self, event: TalkEvent) -> None:
        self.last_used = self._clock()
        for tell in list(self._subscribers):
            try:
                tell(event)
            except Exception:  # whoever shows the talk may not break it
                log.exception("an event of a talk could not be shown")
