"""The head of the page: its name, and how far each engine is."""

from __future__ import annotations

from html import escape
from typing import Any

from spoken_chat.engines import STAGES
from spoken_chat.stage_state import Progress, StageState
from spoken_chat.ui.text import sentence, word


def title_view(language: str) -> str:
    """The page's name and what it is for."""
    title, tagline = escape(word("title", language)), escape(word("tagline", language))
    return f'<div class="sc-title"><h1>{title}</h1><p>{tagline}</p></div>'


def progress_text(progress: Progress, language: str) -> str:
    """Such as `loading the weights 45 % · 35 s of about 95 s`."""
    step = word(f"step_{progress.step}", language)
    percent = f" {progress.percent} %" if progress.percent is not None else ""
    if not progress.elapsed_s:
        return step + percent
    key = "seconds_so_far" if progress.expected_s is None else "seconds_of"
    return f"{step}{percent} · {word(key, language).format(elapsed=progress.elapsed_s, expected=progress.expected_s)}"


def loading_line(states: dict[Any, StageState], language: str) -> str:
    """One line that says how far each stage is; plain words once all are ready."""
    stages = []
    for name in STAGES:
        state = states[name]
        text = word(f"stage_{name}", language)
        if state.status == "failed":
            detail = escape(sentence(state.code, state.detail, language))
            stages.append(f'<span class="sc-stage sc-failed">{text}: {word("failed", language)}. {detail}</span>')
        else:
            notice = sentence(state.code, state.detail, language)
            told = progress_text(state.progress, language) if state.progress is not None else ""
            detail = "".join(f" · {escape(said)}" for said in (state.engine, told, notice) if said)
            stages.append(f'<span class="sc-stage sc-{state.status}">{text}{detail}</span>')
    ready = all(state.status == "ready" for state in states.values())
    failed = any(state.status == "failed" for state in states.values())
    mark = "ready" if ready else "failed" if failed else "loading"
    head = word(mark, language)
    return f'<div class="sc-status" data-status="{mark}"><b>{head}</b>{"".join(stages)}</div>'
