"""The assistant's side of a talk: its turns, the one that is held as a guess, and how much of a reply was heard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from spoken_chat.audio import TTS_RATE
from spoken_chat.circumstances import Speculation
from spoken_chat.events import AudioOut, Ended, TurnEvent
from spoken_chat.llm import ChatModel, Message
from spoken_chat.session import ChatSession
from spoken_chat.stages import Stages
from spoken_chat.talk.events import Silenced, TalkEvent, TurnStarted, TurnTold, TurnUpdated, UtteranceDropped
from spoken_chat.talk.playhead import Playhead
from spoken_chat.turn import Turn, Utterance

StageSource = Callable[[], Awaitable[Stages]]
"""The engines for the next turn. Raises ChatError while they load, or when one failed."""


class Replies:
    """At most one reply runs or plays, and at most one more is held."""

    def __init__(
        self,
        session: ChatSession,
        stages: StageSource,
        token_budget: Callable[[], int],
        tell: Callable[[TalkEvent], None],
        clock: Callable[[], float],
    ) -> None:
        self.playhead = Playhead(clock)
        self.turn: Turn | None = None
        """The latest turn that ran openly."""
        self.given: Utterance | None = None
        """What that turn answers."""
        self.spoken = True
        """False: replies are only written."""
        self.replied: Callable[[ChatModel], None] = lambda _: None
        """Hears of the end of each open turn, when the history holds it, with the model that answered."""
        self._session = session
        self._stages = stages
        self._token_budget = token_budget
        self._tell = tell
        self._clock = clock
        self._utterances: dict[str, str | None] = {}
        self._held: tuple[Turn, Utterance, str] | None = None

    @property
    def running(self) -> bool:
        """Whether a reply is being made."""
        return self._session.running is not None

    @property
    def unheard(self) -> bool:
        """Whether a reply is being made of which nothing was audible yet."""
        return self.running and not self.playhead.audible and self.playhead.heard == 0

    @property
    def held(self) -> bool:
        """Whether a guess is being worked on."""
        return self._held is not None

    def holds(self, utterance: str) -> bool:
        """Whether the guess that is worked on answers that utterance."""
        return self._held is not None and self._held[2] == utterance

    async def stages(self) -> Stages:
        """The engines for the next turn. Raises ChatError."""
        stages = await self._stages()
        self._session.conversation.budget = self._token_budget()
        return stages if self.spoken else replace(stages, synthesizer=None)

    def history(self) -> list[Message]:
        """The conversation so far as the model will see it, up to where the next words come."""
        session = self._session
        return session.conversation.messages(session.persona.prefix, "", None, session.persona.examples)

    async def start(
        self,
        given: Utterance,
        utterance: str | None,
        *,
        speculation: Speculation = "off",
        dropped: int = 0,
        again: int = 0,
    ) -> Turn:
        """Answer `given` now; `utterance` names the speech in it. What still runs is stopped. Raises ChatError."""
        stages = await self.stages()
        turn = self._new_turn(stages, given, utterance, held=False)
        self._mark(turn, speculation, dropped, again)
        self._open(turn, given)
        self._tell(TurnStarted(turn, utterance))
        await self._session.start(turn)
        return turn

    async def hold(self, given: Utterance, utterance: str) -> None:
        """Begin to answer `given` on the guess that it is over. Raises ChatError."""
        turn = self._new_turn(await self.stages(), given, utterance, held=True)
        self._held = (turn, given, utterance)
        self._session.hold(turn)

    async def release(self, endpoint: float, *, dropped: int, again: int) -> Turn:
        """The guess was right: `endpoint` seconds is when that was known."""
        if self._held is None:
            raise RuntimeError("no reply is held")
        (turn, given, utterance), self._held = self._held, None
        self._mark(turn, "hit", dropped, again)
        self._open(turn, given)
        self._tell(TurnStarted(turn, utterance))
        await self._session.release(endpoint)
        return turn

    async def drop_held(self) -> None:
        """The guess was wrong."""
        if self._held is not None:
            self._utterances.pop(self._held[0].id, None)
            self._held = None
            await self._session.drop_held()

    async def silence(self, *, interrupted: bool, heard: float | None = None) -> None:
        """Stop the reply that is made or plays; history keeps what was heard of it.

        `heard`: seconds of its sound, where the listener's side said so; else what the playhead says.
        """
        turn = self.turn
        if turn is None or not (self.running or self.playhead.audible):
            return
        if heard is None and turn.speaks:
            heard = self.playhead.heard
        self.playhead.flush()
        turn.circumstances.interrupted = turn.circumstances.interrupted or interrupted
        self._tell(Silenced(turn, interrupted))
        await self._session.stop(heard)
        self._tell(TurnUpdated(turn))

    async def take_back(self) -> Utterance | None:
        """The person goes on with what the latest turn answered: undo that turn, and return what it had been given."""
        turn, given = self.turn, self.given
        if turn is None:
            return None
        await self.silence(interrupted=False, heard=0.0)
        self._session.forget(turn)
        utterance = self._utterances.pop(turn.id, None)
        if utterance is not None:
            self._tell(UtteranceDropped(utterance, "reopened"))
        self.turn = self.given = None
        return given

    def truncate(self, turn: Turn, heard: float) -> None:
        """The listener's side says how many seconds of a reply it played before it was stopped."""
        if turn is not self._session.running:
            turn.cut(heard)
            self._tell(TurnUpdated(turn))

    def played(self, turn: Turn, waited_s: float, playback_s: float) -> None:
        """The listener's side says when the first sound of a reply was audible; see `Turn.heard_after`."""
        turn.heard_after(waited_s, playback_s)
        if turn is self.turn and (at := turn.timeline.marks.get("browser_play")) is not None:
            self.playhead.started(at)
        self._tell(TurnUpdated(turn))

    def _new_turn(self, stages: Stages, given: Utterance, utterance: str | None, *, held: bool) -> Turn:
        def tell(event: TurnEvent) -> None:
            if isinstance(event, AudioOut):
                self.playhead.queue(len(event.pcm) / TTS_RATE)
            self._tell(TurnTold(turn, event))
            if isinstance(event, Ended):
                self._ended(turn, event)
                self.replied(stages.model)

        turn = self._session.new_turn(stages, given, tell, held=held)
        self._utterances[turn.id] = utterance
        return turn

    def _mark(self, turn: Turn, speculation: Speculation, dropped: int, again: int) -> None:
        about = turn.circumstances
        about.speculation, about.dropped_starts, about.reopened = speculation, dropped, again

    def _open(self, turn: Turn, given: Utterance) -> None:
        self.turn, self.given = turn, given
        self.playhead.begin()

    def _ended(self, turn: Turn, event: Ended) -> None:
        """Sound without words, heard hands-free, is no turn at all."""
        if turn.kind == "hands_free" and event.error is not None and event.error.code == "nothing_heard":
            utterance = self._utterances.pop(turn.id, None)
            self._session.forget(turn)
            if utterance is not None:
                self._tell(UtteranceDropped(utterance, "nothing_heard"))
