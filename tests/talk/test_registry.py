"""Talks are found by their token, and leave nothing when they are dropped."""

from spoken_chat.settings import load
from spoken_chat.talk.registry import TalkRegistry
from spoken_chat.turn import Utterance
from tests.support.app import ScriptedEngines


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_each_talk_has_a_token_of_its_own_and_is_found_by_it() -> None:
    registry = TalkRegistry(ScriptedEngines(load()))
    one, other = registry.open(), registry.open("zh")
    assert registry.by_token(one.token) is one and registry.by_session(other.session.id) is other
    assert one.token != other.token and len(one.token) >= 32
    assert registry.by_token("") is None and registry.by_session("none") is None
    await registry.close()
    assert len(registry) == 0 and registry.by_token(one.token) is None


async def test_a_talk_counts_as_active_while_it_was_used_lately() -> None:
    time = Time()
    registry = TalkRegistry(ScriptedEngines(load()), time)
    registry.open()
    time.now = 20.0
    registry.open()
    assert registry.active() == 2
    time.now = 40.0
    assert registry.active() == 1
    await registry.close()


async def test_dropping_a_talk_stops_its_turn() -> None:
    engines = ScriptedEngines(load())
    await engines.load()
    engines.brain.first = 60.0
    registry = TalkRegistry(engines)
    opened = registry.open()
    turn = await opened.talk.say(Utterance(text="hello"))
    await registry.drop(opened.token)
    assert turn.status == "cancelled" and opened.session.running is None
    await registry.drop(opened.token)
