"""The vocabulary of Kokoro v1.0, and how long phoneme strings are cut."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoken_chat.tts.kokoro_tokens import VOCABULARY, encode, split_phonemes


def test_the_vocabulary_has_the_ids_the_network_was_trained_with() -> None:
    assert len(VOCABULARY) == 114
    assert max(VOCABULARY.values()) == 177
    known = {";": 1, " ": 16, "ꭧ": 23, "A": 24, "a": 43, "ɡ": 92, "ʤ": 82, "ˈ": 156, "ʰ": 162, "↓": 169, "→": 171}
    assert {symbol: VOCABULARY[symbol] for symbol in known} == known


def test_unknown_symbols_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="spoken_chat"):
        assert encode("a❓b❓") == [43, 44]
    assert "2 phoneme symbols" in caplog.text


def test_what_fits_is_one_piece() -> None:
    assert split_phonemes("həlˈO.", 510) == ["həlˈO."]
    assert split_phonemes("", 510) == []


def test_a_long_string_is_cut_behind_a_sentence_first_then_a_comma_then_a_space() -> None:
    assert split_phonemes("aaa aa, aa. aa, a", 13) == ["aaa aa, aa.", " aa, a"]
    assert split_phonemes("aaa aaa, aa aa aa", 13) == ["aaa aaa,", " aa aa aa"]
    assert split_phonemes("aaaa aaaa aaaa", 11) == ["aaaa aaaa ", "aaaa"]


def test_a_string_without_any_gap_is_cut_where_it_must_be() -> None:
    assert split_phonemes("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]


@given(st.text("ab .,!—ˈ", max_size=300), st.integers(1, 40))
def test_pieces_fit_and_lose_nothing(phonemes: str, longest: int) -> None:
    pieces = split_phonemes(phonemes, longest)
    assert "".join(pieces) == phonemes
    assert all(0 < len(piece) <= longest for piece in pieces)
