"""Who answers: a persona's prefix, voices, greeting and moods, loaded from a folder and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spoken_chat.tts import SpeechStyle


@dataclass(frozen=True)
class PersonaVoice:
    """One voice a persona can speak with: the name people see, and its id in each engine (`edge`, `kokoro`)."""

    name: str
    engines: dict[str, str]


@dataclass(frozen=True)
class Persona:
    """A persona as loaded. `prefix` is the system prompt, sent byte for byte in every request."""

    id: str
    name: str
    language: str
    greeting: str
    voices: tuple[PersonaVoice, ...]
    moods: dict[str, SpeechStyle]
    prefix: str

    def voice(self, name: str) -> PersonaVoice:
        """The voice called `name`, or the first one."""
        return next((voice for voice in self.voices if voice.name == name), self.voices[0])


def load_persona(folder: Path) -> Persona:
    """Load `folder`/persona.md. Raises ChatError that names the file, the line and what is wrong."""
    raise NotImplementedError(folder)


def load_personas(folder: Path) -> dict[str, Persona]:
    """Every persona below `folder`, by id, in alphabetical order. Raises ChatError."""
    raise NotImplementedError(folder)
