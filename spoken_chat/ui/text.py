"""Finds the words of the page, in English or Chinese. One table serves Gradio's labels and the page's own views."""

from __future__ import annotations

import gradio as gr

from spoken_chat.errors import ChatError
from spoken_chat.ui.faults import FAULTS_ZH
from spoken_chat.ui.words import FIGURES, WORDS


def i18n() -> gr.I18n:
    """The table for labels that Gradio translates in the browser."""
    english = {key: words[0] for key, words in WORDS.items()}
    chinese = {key: words[1] for key, words in WORDS.items()}
    return gr.I18n(**{"en": english, "zh": chinese, "zh-CN": chinese})


def language_of(accept_language: str | None) -> str:
    """The page's language, `zh` or `en`, from the browser's Accept-Language header, as the browser itself picks."""
    first = (accept_language or "").split(",")[0].strip().lower()
    return "zh" if first.startswith("zh") else "en"


def word(key: str, language: str) -> str:
    """The words of `key` in `language`."""
    return WORDS[key][_place(language)]


def figure_name(name: str, language: str) -> str:
    """What the figure `name` of the timeline is called in `language`."""
    return FIGURES[name][0][_place(language)]


def definition(name: str, language: str) -> str:
    """What the figure `name` of the timeline means, in one line in `language`."""
    return FIGURES[name][1][_place(language)]


def sentence(code: str, message: str, language: str) -> str:
    """A fault or notice in `language`; English where there is no translation."""
    return FAULTS_ZH.get(code, message) if language == "zh" else message


def fault(error: ChatError, language: str) -> str:
    """`error` in `language`."""
    return sentence(error.code, error.message, language)


def _place(language: str) -> int:
    return 1 if language == "zh" else 0
