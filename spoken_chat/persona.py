"""Who answers: a persona's prefix, voices, greeting and moods, loaded from a folder and checked.

A persona is one file, `persona.md`: YAML front matter between two lines `---`, then the prefix. The prefix is plain
data: no placeholder in it is ever filled in, so that every request of every user starts with the same bytes and the
model server's prefix cache holds them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import yaml

from spoken_chat.errors import ChatError
from spoken_chat.tts import SpeechStyle

PERSONA_FILE: Final = "persona.md"
LANGUAGES: Final = ("zh", "en")
RATE_LIMITS: Final = (0.5, 2.0)
PITCH_LIMITS_HZ: Final = (-100, 100)

_FENCE: Final = "---"
_KEYS: Final = ("name", "language", "voices", "greeting", "tags")
_OPTIONAL_KEYS: Final = ("examples",)
_EXAMPLE_KEYS: Final = ("user", "reply")
_STYLE_KEYS: Final = ("rate", "pitch_hz")
_VOICE_IDS: Final = {
    # Ids become file names (Kokoro) and attributes of SSML (edge-tts), so nothing but an id may stand there.
    "edge": (
        "an edge-tts",
        "zh-CN-XiaoxiaoNeural",
        re.compile(r"[a-z]{2,3}-[A-Za-z]{2,4}(-[A-Za-z]+)?-[A-Za-z]+Neural"),
    ),
    "kokoro": ("a Kokoro", "zf_xiaoxiao", re.compile(r"[a-z]{2}_[a-z0-9]+")),
}
_KINDS: Final = {"str": "text", "int": "a whole number", "float": "a number", "bool": "a yes/no value", "null": "empty"}


@dataclass(frozen=True)
class PersonaVoice:
    """One voice a persona can speak with: the name people see, and its id in each engine (`edge`, `kokoro`)."""

    name: str
    engines: dict[str, str]


@dataclass(frozen=True)
class Persona:
    """A persona as loaded. `prefix` is the system prompt, sent byte for byte in every request.

    `examples` are turns of (user, reply) that a small model is shown as if they had been said: it learns the mood tag
    and the brevity from them where it does not follow an instruction. A large model needs none.
    """

    id: str
    name: str
    language: str
    greeting: str
    voices: tuple[PersonaVoice, ...]
    moods: dict[str, SpeechStyle]
    prefix: str
    examples: tuple[tuple[str, str], ...] = ()

    def voice(self, name: str) -> PersonaVoice:
        """The voice called `name`, or the first one."""
        return next((voice for voice in self.voices if voice.name == name), self.voices[0])


def load_persona(folder: Path) -> Persona:
    """Load `folder`/persona.md. Raises ChatError that names the file, the line and what is wrong.

    Newlines become `\\n`, a byte order mark and trailing whitespace go; nothing else of the prefix changes.
    """
    return _PersonaReader(folder).read()


def load_personas(folder: Path) -> dict[str, Persona]:
    """Every persona below `folder`, by id, in alphabetical order. Raises ChatError."""
    if not folder.is_dir():
        raise ChatError("no_persona", f"The persona folder {folder} does not exist; set SPOKEN_CHAT_PERSONA_DIR.")
    homes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "_")))
    if not homes:
        raise ChatError("no_persona", f"The persona folder {folder} holds no persona; add one as its README.md says.")
    return {home.name: load_persona(home) for home in homes}


def default_for(personas: Mapping[str, Persona], language: str) -> Persona:
    """The first of `personas` (never empty) that speaks `language`, or the first one where none does."""
    first = next(iter(personas.values()))
    return next((persona for persona in personas.values() if persona.language == language), first)


class _PersonaReader:
    """Reads one persona file; every complaint names the file and, where there is one, the line."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown = f"{folder.parent.name}/{folder.name}/{PERSONA_FILE}".lstrip("/")

    def read(self) -> Persona:
        header, prefix = self._split(self._text())
        fields = self._fields(self._compose(header), (*_KEYS, *_OPTIONAL_KEYS), "")
        for key in _KEYS:
            if key not in fields:
                self._fail(1, f"{key} is missing from the front matter; add a line `{key}: ...`")
        if not prefix:
            self._fail(None, "the prefix is empty; write what the model is told below the front matter")
        moods = self._moods(fields["tags"])
        return Persona(
            id=self._folder.name,
            name=self._line_of_text(fields["name"], "name"),
            language=self._language(fields["language"]),
            greeting=self._line_of_text(fields["greeting"], "greeting"),
            voices=self._voices(fields["voices"]),
            moods=moods,
            prefix=prefix,
            examples=self._examples(fields["examples"], moods) if "examples" in fields else (),
        )

    def _fail(self, line: int | yaml.Node | None, problem: str) -> NoReturn:
        number = _line(line) if isinstance(line, yaml.Node) else line
        where = self._shown if number is None else f"{self._shown} line {number}"
        raise ChatError("bad_persona", f"{where}: {problem}.", file=self._shown, line=number or 0, problem=problem)

    def _text(self) -> str:
        try:
            data = (self._folder / PERSONA_FILE).read_bytes()
        except FileNotFoundError:
            self._fail(None, "the file is missing; write it, or remove its folder")
        except OSError as error:
            self._fail(None, f"the file cannot be read ({error.strerror})")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._fail(data.count(b"\n", 0, error.start) + 1, "the text is not UTF-8; save the file as UTF-8")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _split(self, text: str) -> tuple[str, str]:
        """The front matter, with an empty line for its first fence so that line numbers hold, and the prefix."""
        lines = text.split("\n")
        if lines[0].rstrip() != _FENCE:
            self._fail(1, f"the front matter is missing; start the file with a line `{_FENCE}`")
        end = next((number for number, line in enumerate(lines) if number and line.rstrip() == _FENCE), None)
        if end is None:
            self._fail(1, f"the front matter does not end; close it with a line `{_FENCE}`")
        return "\n".join(["", *lines[1:end]]), "\n".join(lines[end + 1 :]).rstrip()

    def _compose(self, header: str) -> yaml.Node | None:
        try:
            return yaml.compose(header, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._fail(mark.line + 1 if mark else None, f"the front matter is not valid YAML ({error.problem})")
        except yaml.reader.ReaderError as error:
            line = header.count("\n", 0, error.position) + 1
            self._fail(line, "the front matter holds a character that YAML does not allow; delete it")
        except RecursionError:
            self._fail(1, "the front matter is nested too deeply; it needs two levels at most")

    def _fields(self, node: yaml.Node | None, known: tuple[str, ...], path: str) -> dict[str, yaml.Node]:
        """The values of a mapping whose keys are all in `known`."""
        fields = self._entries(node, path)
        for key, (key_node, _) in fields.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
                self._fail(key_node, f"unknown key `{_shortened(key)}`{f' in {path}' if path else ''}; {hint}")
        return {key: value for key, (_, value) in fields.items()}

    def _entries(self, node: yaml.Node | None, path: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """The key and value nodes of a mapping, by key; keys are text and stand once."""
        if not isinstance(node, yaml.MappingNode):
            what = path or "the front matter"
            self._fail(node or 1, f"{what} must be a mapping of `key: value` lines, not {_kind(node)}")
        entries: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key_node, value in node.value:
            key = self._string(key_node, f"a key of {path or 'the front matter'}")
            if key in entries:
                self._fail(key_node, f"`{_shortened(key)}` stands twice{f' in {path}' if path else ''}; keep one")
            entries[key] = (key_node, value)
        return entries

    def _string(self, node: yaml.Node, path: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or _tag(node) != "str":
            hint = "; put it in quotes" if isinstance(node, yaml.ScalarNode) and node.value else ""
            self._fail(node, f"{path} must be text, not {_kind(node)}{hint}")
        return str(node.value)

    def _line_of_text(self, node: yaml.Node, path: str) -> str:
        """Text on one line, not blank, without the space around it."""
        text = self._string(node, path).strip()
        if not text:
            self._fail(node, f"{path} is empty; write some text")
        if not text.isprintable():
            self._fail(node, f"{path} must be one line of plain text")
        return text

    def _language(self, node: yaml.Node) -> str:
        language = self._string(node, "language")
        if language not in LANGUAGES:
            self._fail(node, f"language `{_shortened(language)}` is not supported; choose {' or '.join(LANGUAGES)}")
        return language

    def _items(self, node: yaml.Node, path: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            self._fail(node, f"{path} must be a list, each item after `- `, not {_kind(node)}")
        return list(node.value)

    def _voices(self, node: yaml.Node) -> tuple[PersonaVoice, ...]:
        items = self._items(node, "voices")
        if not items:
            self._fail(node, "voices is empty; give at least one voice")
        voices: dict[str, PersonaVoice] = {}
        for index, item in enumerate(items):
            path = f"voices[{index}]"
            fields = self._fields(item, ("name", *_VOICE_IDS), path)
            if "name" not in fields:
                self._fail(item, f"{path}.name is missing; give the name people see")
            name = self._line_of_text(fields["name"], f"{path}.name")
            if name in voices:
                self._fail(fields["name"], f"{path}.name `{name}` is taken by an earlier voice; give another name")
            voices[name] = PersonaVoice(
                name, {engine: self._voice_id(item, fields, path, engine) for engine in _VOICE_IDS}
            )
        return tuple(voices.values())

    def _voice_id(self, voice: yaml.Node, fields: Mapping[str, yaml.Node], path: str, engine: str) -> str:
        article, example, pattern = _VOICE_IDS[engine]
        advice = f"give {article} voice id such as {example}"
        if engine not in fields:
            self._fail(voice, f"{path}.{engine} is missing; {advice}")
        value = self._string(fields[engine], f"{path}.{engine}")
        if not pattern.fullmatch(value):
            self._fail(fields[engine], f"{path}.{engine} `{_shortened(value)}` is no voice id; {advice}")
        return value

    def _moods(self, node: yaml.Node) -> dict[str, SpeechStyle]:
        moods: dict[str, SpeechStyle] = {}
        seen: set[str] = set()
        for mood, (key, value) in self._entries(node, "tags").items():
            if not mood or not mood.isprintable() or any(char in "[]【】［］" or char.isspace() for char in mood):
                self._fail(key, f"the tag `{_shortened(mood)}` must be one word without brackets or spaces")
            if mood.casefold() in seen:
                self._fail(key, f"the tag `{mood}` stands twice but for its case; keep one")
            seen.add(mood.casefold())
            moods[mood] = self._style(value, f"tags.{mood}")
        if not moods:
            self._fail(node, "tags is empty; give at least one mood that a reply can start with")
        return moods

    def _examples(self, node: yaml.Node, moods: Mapping[str, SpeechStyle]) -> tuple[tuple[str, str], ...]:
        examples: list[tuple[str, str]] = []
        for index, item in enumerate(self._items(node, "examples")):
            path = f"examples[{index}]"
            fields = self._fields(item, _EXAMPLE_KEYS, path)
            for key in _EXAMPLE_KEYS:
                if key not in fields:
                    self._fail(item, f"{path}.{key} is missing; an example needs {' and '.join(_EXAMPLE_KEYS)}")
            user, reply = (self._line_of_text(fields[key], f"{path}.{key}") for key in _EXAMPLE_KEYS)
            if not any(reply.startswith(f"[{mood}]") for mood in moods):
                self._fail(
                    fields["reply"], f"{path}.reply must start with one of the tags, such as [{next(iter(moods))}]"
                )
            examples.append((user, reply))
        return tuple(examples)

    def _style(self, node: yaml.Node, path: str) -> SpeechStyle:
        if _tag(node) == "null":
            return SpeechStyle()
        fields = self._fields(node, _STYLE_KEYS, path)
        style = SpeechStyle()
        rate, pitch = style.rate, style.pitch_hz
        if "rate" in fields:
            rate = self._number(fields["rate"], f"{path}.rate", ("int", "float"), RATE_LIMITS)
        if "pitch_hz" in fields:
            pitch = int(self._number(fields["pitch_hz"], f"{path}.pitch_hz", ("int",), PITCH_LIMITS_HZ))
        return SpeechStyle(rate, pitch)

    def _number(self, node: yaml.Node, path: str, tags: tuple[str, ...], limits: tuple[float, float]) -> float:
        wanted = _KINDS[tags[-1]]
        if not isinstance(node, yaml.ScalarNode) or _tag(node) not in tags:
            self._fail(node, f"{path} must be {wanted}, not {_kind(node)}")
        try:
            value = float(node.value)
        except ValueError:
            self._fail(node, f"{path} must be {wanted} in plain digits")
        if not limits[0] <= value <= limits[1]:
            self._fail(node, f"{path} is {_shortened(node.value)}; it must be from {limits[0]:g} to {limits[1]:g}")
        return value


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _tag(node: yaml.Node) -> str:
    return str(node.tag).rpartition(":")[2]


def _kind(node: yaml.Node | None) -> str:
    """What a node is, in words for a person who does not know YAML."""
    if node is None:
        return "empty"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return _KINDS.get(_tag(node), "a value of another type")


def _shortened(text: str) -> str:
    """`text` on one line, short enough for a sentence."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 40 else flat[:39] + "…"
