"""Who has the floor: what each decision of the endpointer means for the turns of a talk.

Speech while nobody else speaks becomes an utterance; its pause starts work on a guess, its end releases that work or
begins it. Speech over a reply turns it down at once, and takes the floor once it is more than a listener's "mhm".
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from spoken_chat.audio import FloatPcm
from spoken_chat.audio.end_of_turn import wait_for
from spoken_chat.audio.endpointing import Ended, FalseOnset, Onset, Paused, Resumed, SpeechEvent, Started
from spoken_chat.circumstances import Speculation
from spoken_chat.conversation import ImagePart
from spoken_chat.errors import ChatError
from spoken_chat.llm import ChatModel
from spoken_chat.talk.background import Background, cancel
from spoken_chat.talk.barge_in import is_interruption
from spoken_chat.talk.events import (
    Caption,
    Ducked,
    SpeechStarted,
    SpeechStopped,
    TalkEvent,
    TalkFault,
    UtteranceDropped,
)
from spoken_chat.talk.listener import CHUNK_S, Listener
from spoken_chat.talk.options import CONFIRM_AFTER_S, ECHO_WARM_UP_S, RAISE_AFTER_S, TalkOptions
from spoken_chat.talk.prefill import Prefill
from spoken_chat.talk.replies import Replies
from spoken_chat.talk.utterance import Spoken, Waiting, continued
from spoken_chat.turn import Turn, Utterance

log = logging.getLogger(__name__)


class TurnTaking:
    """The decisions of one talk. Its methods run under the talk's lock, one at a time."""

    def __init__(
        self,
        options: TalkOptions,
        listener: Listener,
        replies: Replies,
        finished: Callable[[FloatPcm], Awaitable[float]],
        tell: Callable[[TalkEvent], None],
        *,
        language: Callable[[], str],
        sessions_active: Callable[[], int],
        lock: asyncio.Lock,
        clock: Callable[[], float],
    ) -> None:
        self.options = options
        self.spoken: Spoken | None = None
        """What is being said."""
        self.waiting = Waiting()
        self.prefill = Prefill()
        self._listener = listener
        self._replies = replies
        self._finished = finished
        self._tell = tell
        self._language = language
        self._sessions_active = sessions_active
        self._lock = lock
        self._clock = clock
        self._background = Background()
        replies.replied = self._replied
        self._verdict: asyncio.Task[None] | None = None
        self._check: asyncio.Task[None] | None = None
        self._ducked: Turn | None = None
        self._quiet_s = 0.0
        self._ended_at = 0.0  # where in the sound the latest utterance was over
        self._held_image: ImagePart | None = None

    async def obey(self, event: SpeechEvent) -> None:
        """What a decision of the endpointer means."""
        match event:
            case Started(position):
                await self._began(position)
            case Paused(speech_end):
                await self._paused(speech_end)
            case Resumed():
                await self._resumed()
            case Ended(_, speech_end, position):
                await self._ended(speech_end, position)
            case Onset() | FalseOnset():
                pass  # `watch` sees for itself what there is to hear

    async def watch(self) -> None:
        """After each chunk: speech over a reply turns it down, and stops it when it goes on."""
        replies, endpointer, spoken = self._replies, self._listener.endpointer, self.spoken
        audible = replies.playhead.audible
        adapted = not audible or replies.playhead.audible_for >= ECHO_WARM_UP_S
        may_stop = self.options.barge_in and adapted and endpointer.voiced
        if self.options.barge_in and adapted and audible and self._listener.probability >= self.options.threshold:
            self._duck()
        elif self._ducked is not None and endpointer.speech_s == 0:
            self._quiet_s += CHUNK_S
            if self._quiet_s >= RAISE_AFTER_S:
                self._raise_again()
        if spoken is None or not spoken.candidate:
            return
        if not audible and not replies.running and endpointer.voiced:  # the reply came to its end, the speech did not
            spoken.candidate = False
            await self._announce(spoken)
        elif may_stop and endpointer.speech_s >= CONFIRM_AFTER_S:
            await self._take_the_floor(spoken)

    def go_on_by_hand(self) -> Spoken | None:
        """What is being said goes on, and ends by hand. None where that is nothing, or only a sound over a reply."""
        spoken = self.spoken
        if spoken is None or spoken.candidate:
            self.forget()
            return None
        self.stop_judging()
        self._listener.endpointer.reset()
        return spoken

    def stop_judging(self) -> None:
        """Whatever is being found out about what is being said does not matter any more."""
        cancel(self._verdict)
        cancel(self._check)

    def forget(self) -> None:
        """Forget what is being said, and raise a reply that was turned down for it."""
        self.stop_judging()
        self._listener.endpointer.reset()
        self._raise_again()
        spoken, self.spoken = self.spoken, None
        if spoken is not None and spoken.announced:
            self._tell(UtteranceDropped(spoken.id, "cleared"))

    async def close(self) -> None:
        """Stop everything; no task is left."""
        self.forget()
        self.waiting.clear()
        await self.prefill.stop()
        await self._background.close()

    async def read_ahead(self) -> None:
        """Let the model read the conversation so far while the person speaks."""
        if self._replies.running:
            return
        try:
            stages = await self._replies.stages()
        except ChatError:
            return  # the models still load, which the turn itself will say
        self.prefill.start(stages.model, self._replies.history())

    def _replied(self, model: ChatModel) -> None:
        """A reply is over: where that costs nothing else, the model reads it at once, for whatever is said next."""
        if model.reads_alone:
            self.prefill.start(model, self._replies.history())

    async def _began(self, position: float) -> None:
        replies = self._replies
        audible = replies.playhead.audible
        self.spoken = spoken = Spoken(position, candidate=replies.running or audible)
        self._listener.endpointer.wait_s = self._longest_wait()
        if not spoken.candidate:
            await self._announce(spoken)
        elif self.options.barge_in and not audible and self._may_reopen():
            await self._take_the_floor(spoken)

    async def _announce(self, spoken: Spoken) -> None:
        spoken.announced = True
        self._tell(SpeechStarted(spoken.id, spoken.start))
        await self.read_ahead()

    async def _take_the_floor(self, spoken: Spoken) -> None:
        """The person means to speak: the reply ends, or was never wanted when they only go on with their turn."""
        spoken.candidate = False
        self._ducked = None
        cancel(self._check)
        turn = self._replies.turn
        if turn is not None and self._may_reopen():
            spoken.reopened = turn.circumstances.reopened + 1
            spoken.dropped_starts = turn.circumstances.dropped_starts
            spoken.words = turn.transcript
            spoken.before = await self._replies.take_back()
        else:
            await self._replies.silence(interrupted=True)
        await self._announce(spoken)
        if spoken.words and self.options.partial_transcripts:
            self._tell(Caption(spoken.id, spoken.words, ""))

    def _may_reopen(self) -> bool:
        """Whether speech now goes on with the latest turn: its end is recent, or nothing of its reply was heard."""
        turn = self._replies.turn
        if turn is None:
            return False
        # By the sound's own clock, which is that of the person also where sound comes late, or all at once.
        recent = self._listener.position - self._ended_at <= self.options.reopen_within
        return self._replies.unheard or (turn.kind == "hands_free" and recent)

    async def _paused(self, speech_end: float) -> None:
        spoken = self.spoken
        if spoken is None:
            return
        if not spoken.candidate:
            await self._work_ahead(spoken, speech_end)
        elif self.options.barge_in and self._replies.playhead.audible:
            self._check = self._background.start(self._check_words(spoken, self._sound_of(spoken)))

    async def _work_ahead(self, spoken: Spoken, speech_end: float) -> None:
        """The pause may be the end: ask how finished it sounds, and begin to answer on the guess that it is."""
        sound, options = self._sound_of(spoken), self.options
        if options.detection == "adaptive":
            self._verdict = self._background.start(self._judge(sound))
        possible = options.speculation and options.answers and not self._replies.held and not self.waiting.sounds
        if not possible or self._sessions_active() > options.speculation_most:
            return
        await self.prefill.stop()
        given = self._given(spoken, sound, speech_end)
        self._held_image = self.waiting.image
        try:
            await self._replies.hold(given, spoken.id)
        except ChatError as error:
            log.info("nothing was begun in the pause: %s", error.message)

    async def _resumed(self) -> None:
        cancel(self._verdict)
        cancel(self._check)
        self._listener.endpointer.wait_s = self._longest_wait()
        if self.spoken is not None and self._replies.held:
            self.spoken.dropped_starts += 1
            await self._replies.drop_held()

    async def _ended(self, speech_end: float, position: float) -> None:
        spoken, self.spoken = self.spoken, None
        cancel(self._verdict)
        if spoken is None:
            return
        sound = self._sound_of(spoken)
        if not spoken.candidate:
            await self._answer(spoken, sound, speech_end, position)
        elif self._check is not None and not self._check.done():
            self._background.start(self._answer_after(self._check, spoken, sound, speech_end, position))
        else:
            self._raise_again()

    async def _answer(self, spoken: Spoken, sound: FloatPcm, speech_end: float, position: float) -> None:
        self._ended_at = position
        self._tell(SpeechStopped(spoken.id, speech_end, position))
        given, replies = self._given(spoken, sound, speech_end), self._replies
        if not self.options.answers:
            self.waiting.add(spoken.id, given)
            return
        dropped, again = spoken.dropped_starts, spoken.reopened
        speculation: Speculation = "miss" if dropped else "off"
        try:
            if replies.holds(spoken.id) and self.waiting.image is self._held_image:
                self.waiting.clear()
                await replies.release(self._clock(), dropped=dropped, again=again)
                return
            await replies.drop_held()
            whole, _ = self.waiting.take(given)
            await self.prefill.stop()
            await replies.start(whole, spoken.id, speculation=speculation, dropped=dropped, again=again)
        except ChatError as error:
            self._tell(UtteranceDropped(spoken.id, "failed"))
            self._tell(TalkFault(error))

    async def _answer_after(
        self, check: asyncio.Task[None], spoken: Spoken, sound: FloatPcm, speech_end: float, position: float
    ) -> None:
        """The utterance over a reply is over, and what was said in it is being made out."""
        await asyncio.wait([check])
        async with self._lock:
            if not spoken.candidate:
                await self._answer(spoken, sound, speech_end, position)

    async def _check_words(self, spoken: Spoken, sound: FloatPcm) -> None:
        """A short utterance over the reply: only words that ask for the floor get it."""
        try:
            stages = await self._replies.stages()
            heard = (await stages.recognizer.draft(sound, [self._language()])).text
        except ChatError as error:
            log.info("what was said over the reply could not be made out: %s", error.message)
            heard = ""
        async with self._lock:
            turn = self._replies.turn
            if not spoken.candidate:
                return
            if turn is not None and is_interruption(heard, turn.reply):
                await self._take_the_floor(spoken)
                if self.spoken is spoken:
                    await self._work_ahead(spoken, self._listener.position - self._listener.endpointer.silence_s)
            elif self.spoken is spoken:
                self.forget()
            else:
                self._raise_again()

    async def _judge(self, sound: FloatPcm) -> None:
        """How long the silence must last now."""
        probability = await self._finished(sound)
        options = self.options
        self._listener.endpointer.wait_s = wait_for(probability, options.wait_finished, options.wait_unfinished)

    def _longest_wait(self) -> float:
        options = self.options
        return options.wait_unfinished if options.detection == "adaptive" else options.wait

    def _sound_of(self, spoken: Spoken) -> FloatPcm:
        return self._listener.sound(spoken.start - self.options.pre_roll)

    def _given(self, spoken: Spoken, sound: FloatPcm, speech_end: float) -> Utterance:
        at = self._listener.clock_of
        given = Utterance(audio=sound, image=self.waiting.image, spoken_at=(at(spoken.start), at(speech_end)))
        return given if spoken.before is None else continued(spoken.before, given)

    def _duck(self) -> None:
        turn = self._replies.turn
        self._quiet_s = 0.0
        if turn is not None and self._ducked is not turn:
            self._ducked = turn
            self._tell(Ducked(turn, True))

    def _raise_again(self) -> None:
        turn, self._ducked = self._ducked, None
        if turn is not None:
            self._tell(Ducked(turn, False))
