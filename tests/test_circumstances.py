"""Speculation is counted over turns."""

from spoken_chat.circumstances import Circumstances, count_speculation


def test_hits_misses_and_neither_are_counted_and_dropped_starts_of_all_added_up() -> None:
    turns = [
        Circumstances(speculation="hit", dropped_starts=2),
        Circumstances(speculation="miss", dropped_starts=1),
        Circumstances(),
        Circumstances(),
    ]
    assert count_speculation(turns).as_dict() == {"hits": 1, "misses": 1, "off": 2, "dropped_starts": 3}
    assert count_speculation([]).as_dict() == {"hits": 0, "misses": 0, "off": 0, "dropped_starts": 0}
