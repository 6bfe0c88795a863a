"""One turn through the stages: hear, think, speak. The only place that joins them.

A turn runs as one asyncio task. Cancelling that task closes the model's HTTP stream and the voice at once and keeps
in the history only what was heard.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from spoken_chat.audio import TTS_RATE, FloatPcm
from spoken_chat.circumstances import Circumstances, Kind
from spoken_chat.conversation import Conversation, Exchange, ImagePart, heard_text
from spoken_chat.errors import ChatError
from spoken_chat.events import AudioOut, Ended, Heard, Mood, Notice, ReplyText, Status, TurnEvent
from spoken_chat.llm import RequestSent, StreamEnd, TextDelta, Usage
from spoken_chat.llm.reply_filter import TagReader, ThinkFilter
from spoken_chat.persona import Persona, PersonaVoice
from spoken_chat.speaker import Speaker
from spoken_chat.stages import Stages
from spoken_chat.timeline import Metrics, Timeline, measure
from spoken_chat.tts import SpeechChunk, SpeechEvent, SpeechRequest, SpeechStyle
from spoken_chat.tts.clauses import ClauseSplitter
from spoken_chat.tts.spoken_text import SpokenText


@dataclass(frozen=True)
class Utterance:
    """What the user gives in one turn: speech (16 kHz mono), text, an image; at least one of them.

    `received_at`: when it was handed in whole, in seconds on the turn's clock, where reading it took time before the
    turn began; None says that it comes now. `spoken_at`: when the voice detector heard the speech of a hands-free
    turn begin and end, on the same clock.
    """

    audio: FloatPcm | None = None
    text: str = ""
    image: ImagePart | None = None
    received_at: float | None = None
    spoken_at: tuple[float, float] | None = None

    @property
    def kind(self) -> Kind:
        """How it was given."""
        if self.audio is None:
            return "typed"
        return "push_to_talk" if self.spoken_at is None else "hands_free"


@dataclass
class SpokenClause:
    """One clause: as it stands in the reply, as it was given to TTS, and the seconds of its sound so far."""

    text: str
    spoken: str
    seconds: float = 0.0


class Turn:
    """One turn. `run()` takes it through the stages and tells `emit` what happens, as it happens.

    A turn that starts `held` is a guess that the utterance is over: it works, but tells nothing, sends no sound and
    leaves no trace in the history until `release()` says that the guess was right. Cancelled before, it never was.
    """

    def __init__(
        self,
        stages: Stages,
        persona: Persona,
        voice: PersonaVoice,
        conversation: Conversation,
        utterance: Utterance,
        emit: Callable[[TurnEvent], None],
        clock: Callable[[], float] = time.monotonic,
        held: bool = False,
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self.kind: Kind = utterance.kind
        self.timeline = Timeline()
        self.status: Status = "running"
        self.error: ChatError | None = None
        self.transcript = ""
        self.reply = ""
        self.clauses: list[SpokenClause] = []
        self.usage: Usage | None = None
        self.image_tokens = utterance.image.tokens if utterance.image else None
        self.circumstances = Circumstances()
        self.heard_seconds: float | None = None
        """Seconds of the reply's sound that were heard; whoever cancels a turn sets it first, where it is known."""
        self._stages = stages
        self._persona = persona
        self._voice = voice
        self._conversation = conversation
        self._said = utterance.text
        self._audio = utterance.audio
        self._image = utterance.image
        self._listener = emit
        self._held: list[TurnEvent] | None = [] if held else None
        self._clock = clock
        self._tags = TagReader(persona.moods)
        self._voices_used: list[str] = []
        self._speaker: Speaker | None = None
        self._exchange: Exchange | None = None
        self._tail = ""
        self._told: set[str] = set()
        if utterance.spoken_at is not None:
            self.timeline.mark("speech_start", utterance.spoken_at[0])
            self.timeline.mark("speech_end", utterance.spoken_at[1])
        if not held:
            self.timeline.mark("endpoint", clock() if utterance.received_at is None else utterance.received_at)

    @property
    def mood(self) -> str | None:
        """The reply's persona tag, once read."""
        return self._tags.tag

    @property
    def mood_compliant(self) -> bool | None:
        """Whether the reply began with a tag of the persona; None while that is not known."""
        return self._tags.compliant

    @property
    def metrics(self) -> Metrics:
        """The figures so far."""
        usage = self.usage or Usage()
        return measure(
            self.timeline.marks,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
        )

    def record(self) -> dict[str, Any]:
        """The turn as plain data: what the command line prints, the page exports and the bench reads."""
        return {
            "id": self.id,
            "kind": self.kind,
            **self.circumstances.as_dict(),
            "status": self.status,
            "error": {"code": self.error.code, "message": self.error.message} if self.error else None,
            "persona": self._persona.id,
            "voice": self._voice.name,
            "transcript": self.transcript,
            "reply": self.reply,
            "mood": self.mood,
            "mood_compliant": self.mood_compliant,
            "spoken": [clause.spoken for clause in self.clauses],
            "image_tokens": self.image_tokens,
            "prefix_missed": self.usage.prefix_missed if self.usage is not None else None,
            "engines": {
                "asr": self._stages.recognizer.name if self.kind != "typed" else None,
                "llm": self._stages.model.name,
                "tts": "+".join(self._voices_used) or None,
            },
            "metrics": self.metrics.as_dict(),
            "marks": self.timeline.since_start(),
        }

    @property
    def speaks(self) -> bool:
        """Whether the reply is to be heard; otherwise it is only written."""
        return self._stages.synthesizer is not None

    @property
    def held(self) -> bool:
        """Whether the turn is still a guess."""
        return self._held is not None

    def release(self, endpoint: float) -> None:
        """The utterance was over, as guessed, at `endpoint` seconds: tell what was held back and go on openly."""
        events, self._held = self._held or [], None
        self.timeline.mark("endpoint", endpoint)
        for event in events:
            self._emit(event)
            if isinstance(event, AudioOut):
                self._mark("first_audio_sent")
        if self.status != "running":
            if "first_audio_sent" in self.timeline.marks:
                self._mark("audio_done")
            self._remember()

    def heard_after(self, waited_s: float, playback_s: float) -> None:
        """The first sound could be heard, by the listener's own clock.

        `waited_s` after the speech ended (hands-free) or the utterance was handed in (any other turn), `playback_s`
        after the sound arrived there.
        """
        marks = self.timeline.marks
        start = marks.get("speech_end", marks.get("endpoint"))
        if start is not None and "first_audio_sent" in marks and 0 <= playback_s <= waited_s:
            self.timeline.mark("browser_received", start + waited_s - playback_s)
            self.timeline.mark("browser_play", start + waited_s)

    def cut(self, heard_seconds: float) -> None:
        """Keep in the history of this finished turn only what was heard, when its sound was stopped early."""
        self.heard_seconds = heard_seconds
        if self._exchange is not None:
            self._exchange = self._conversation.replace(self._exchange, self._history_reply(heard_seconds))

    async def run(self) -> None:
        """Run the turn to its end. A ChatError ends it as `failed`; cancellation as `cancelled`, and is raised.

        An unforeseen error ends it as `failed` too, and is raised.
        """
        try:
            self.transcript = await self._hear()
            await self._answer()
            self.status = "completed"
        except ChatError as error:
            self.error = error
            self.status = "failed"
        except asyncio.CancelledError:
            self.status = "cancelled"
            raise
        except BaseException:
            self.error = ChatError(
                "turn_broken", "An unforeseen error stopped this turn; the log says more, try again."
            )
            self.status = "failed"
            raise
        finally:
            if self._speaker is not None:
                await self._speaker.close()
            if not self.held:
                self._remember()
            self._emit(Ended(self.status, self.error))

    async def _hear(self) -> str:
        text = self._said.strip()
        audio, self._audio = self._audio, None  # a session keeps its turns; their sound would add up
        if audio is not None:
            self._mark("asr_start")
            transcript = await self._stages.recognizer.transcribe(audio, [self._persona.language])
            self._mark("asr_done")
            text = " ".join(part for part in (transcript.text.strip(), text) if part)
        if not text and (audio is not None or self._image is None):
            raise ChatError(
                "nothing_heard" if audio is not None else "nothing_said",
                "Nothing was heard; speak closer to the microphone, or type your message."
                if audio is not None
                else "There is nothing to send; say or type something.",
            )
        self._emit(Heard(text))
        return text

    async def _answer(self) -> None:
        """Think and speak; what was received before a fault is still spoken."""
        if self._image is not None and self._stages.model.vision is False:
            self._look_away()
        if self._stages.synthesizer is not None:
            self._speaker = Speaker(self._stages.synthesizer, self._deliver)
        splitter = ClauseSplitter()
        wording = SpokenText(self._persona.language)
        fault: ChatError | None = None
        try:
            await self._think(splitter, wording)
        except ChatError as error:
            fault = error
        for clause in splitter.finish():
            self._say(clause, wording)
        if self._speaker is not None:
            await self._speaker.finish()
            if "first_audio_sent" in self.timeline.marks:  # not while it is held back
                self._mark("audio_done")
        if fault is not None:
            raise fault
        if not self.reply.strip():
            raise ChatError("llm_empty", "The model sent an empty reply; ask again or say it in other words.")

    async def _think(self, splitter: ClauseSplitter, wording: SpokenText) -> None:
        """Stream the reply; a prompt the server refuses as too long, or for its image, is sent once more without."""
        while True:
            try:
                await self._stream(splitter, wording)
                return
            except ChatError as error:
                if self.reply:
                    raise
                if error.code == "llm_no_vision" and self._image is not None:
                    self._look_away()
                elif error.code == "llm_too_many_images" and self._conversation.hide_images():
                    self._notice("images_cut", "The conversation's earlier images are no longer sent.")
                elif error.code == "llm_context_overflow" and self._conversation.shed():
                    self._notice("history_cut", "The conversation grew too long; its oldest part is no longer sent.")
                else:
                    raise

    async def _stream(self, splitter: ClauseSplitter, wording: SpokenText) -> None:
        think = ThinkFilter()
        persona = self._persona
        messages = self._conversation.messages(persona.prefix, self.transcript, self._image, persona.examples)

        def show(text: str) -> None:
            had_mood = self.mood is not None
            text = self._tags.feed(text)
            if self.mood is not None and not had_mood:
                self._emit(Mood(self.mood))
            if text:
                self._show(text, splitter, wording)

        async with aclosing(self._stages.model.stream(messages)) as events:
            async for event in events:
                match event:
                    case RequestSent(at):
                        self.timeline.mark("request_sent", at)
                    case TextDelta(text, at):
                        self.timeline.mark("first_content", at)
                        self.timeline.mark("last_content", at)
                        show(think.feed(text))
                    case StreamEnd(at, usage, finish_reason):
                        self.timeline.mark("stream_end", at)
                        self.usage = usage
                        if finish_reason == "length":
                            self._notice("reply_cut", "The reply reached the longest length that is set and was cut.")
        show(think.finish())
        rest = self._tags.finish()
        if rest:
            self._show(rest, splitter, wording)

    def _show(self, text: str, splitter: ClauseSplitter, wording: SpokenText) -> None:
        self.reply += text
        self._emit(ReplyText(text))
        for clause in splitter.feed(text):
            self._say(clause, wording)

    def _say(self, clause: str, wording: SpokenText) -> None:
        spoken = wording.clean(clause)
        if not spoken:
            self._tail += clause
            return
        self.clauses.append(SpokenClause(self._tail + clause, spoken))
        self._tail = ""
        self._mark("first_clause")
        if self._speaker is not None:
            style = self._persona.moods.get(self.mood or "", SpeechStyle())
            self._speaker.say(SpeechRequest(spoken, self._persona.language, self._voice.engines, style))

    def _deliver(self, index: int, event: SpeechEvent | ChatError) -> None:
        if isinstance(event, SpeechChunk):
            self._mark("tts_first_byte")
            if event.engine not in self._voices_used:
                self._voices_used.append(event.engine)
            self.clauses[index].seconds += len(event.pcm) / TTS_RATE
            self._emit(AudioOut(event.pcm))
            if not self.held:
                self._mark("first_audio_sent")
        elif isinstance(event, ChatError):
            self._notice(event.code, event.message, **event.details)
        else:
            self._notice(event.code, event.message)

    def _look_away(self) -> None:
        self._image = None
        self.image_tokens = None
        if not self.transcript:
            raise ChatError("image_unseen", "This model cannot see images; say or type something instead.")
        self._notice("model_cannot_see", "This model cannot see; only your words were sent.")

    def _notice(self, code: str, message: str, **details: str | int | float) -> None:
        if code not in self._told:
            self._told.add(code)
            self._emit(Notice(code, message, details))

    def _remember(self) -> None:
        """Keep in the history what was said and heard; a turn without a reply leaves no trace there."""
        reply = self._history_reply(self.heard_seconds if self.status == "cancelled" else None)
        if reply and (self.transcript or self._image):
            self._exchange = Exchange(self.transcript, reply, self._image)
            self._conversation.add(self._exchange)

    def _history_reply(self, heard_seconds: float | None) -> str:
        """The reply as the model will see it, its tag first: all of it, or what was heard in `heard_seconds`."""
        reply = self.reply
        if heard_seconds is not None:
            reply = heard_text([(clause.text, clause.seconds) for clause in self.clauses], heard_seconds)
        tag = f"[{self.mood}] " if self.mood else ""
        return tag + reply.strip() if reply.strip() else ""

    def _emit(self, event: TurnEvent) -> None:
        if self._held is None:
            self._listener(event)
        else:
            self._held.append(event)

    def _mark(self, name: str) -> None:
        self.timeline.mark(name, self._clock())
