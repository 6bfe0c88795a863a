"""Every word of the page, in English and Chinese. One table serves Gradio's labels and the page's own views."""

from __future__ import annotations

from typing import Final

import gradio as gr

from spoken_chat.errors import ChatError
from spoken_chat.ui.faults import FAULTS_ZH

_WORDS: Final[dict[str, tuple[str, str]]] = {
    "title": ("Spoken Chat", "语音聊天"),
    "tagline": ("Talk, hear the answer, see how fast it was.", "说话，听回答，看它有多快。"),
    "persona": ("Persona", "角色"),
    "voice": ("Voice", "声音"),
    "restart": ("New conversation", "重新开始"),
    "transcript": ("Conversation", "对话"),
    "speak": ("Speak: record or upload", "说话：录音或上传"),
    "write": ("Write, or add an image", "打字，也可以加一张图片"),
    "stop": ("Stop", "停止"),
    "again": ("Hear the reply again", "再听一遍"),
    "export": ("Export timelines (JSON)", "导出时间线（JSON）"),
    "this_turn": ("This turn", "这一轮"),
    "all_turns": ("Turns so far", "所有轮次"),
    "median": ("median", "中位数"),
    "no_turns": (
        "Figures appear here, measured live, once you say something.",
        "说点什么，这里就会实时显示测得的数字。",
    ),
    "asr": ("ASR", "识别"),
    "ttft": ("TTFT", "首字"),
    "per_token": ("ms/token", "毫秒/词元"),
    "tokens": ("tokens", "词元"),
    "prompt": ("prompt", "提示"),
    "cached": ("cached", "缓存命中"),
    "first_audio": ("first audio", "首声"),
    "first_clause": ("first clause", "首句"),
    "tts": ("voice", "合成"),
    "v2v": ("V2V", "端到端"),
    "kind": ("kind", "方式"),
    "push_to_talk": ("spoken", "语音"),
    "typed": ("typed", "打字"),
    "engines": ("engines", "引擎"),
    "image_tokens": ("image tokens", "图片词元"),
    "loading": ("Loading", "正在加载"),
    "waiting": ("waiting", "等待中"),
    "ready": ("Ready", "就绪"),
    "failed": ("failed", "失败"),
    "stage_asr": ("speech recognition", "语音识别"),
    "stage_llm": ("language model", "语言模型"),
    "stage_tts": ("voice", "语音合成"),
    "stopped": ("stopped", "已停止"),
    "listening": ("listening to what you said…", "正在听你说的话……"),
    "english_only": (
        "The embedded model knows only English; to talk Chinese, give the app a model server or another GGUF model.",
        "内置的小模型只懂英语；要说中文，请给它配一个你自己的模型服务器，或另一个 GGUF 模型。",
    ),
    "mood_tag": ("Mood tag kept", "语气标签"),
    "what_figures": (
        "TTFT: request sent to first text. ms/token: last minus first text, over tokens less one. "
        "First audio: utterance received to first sound sent. V2V: the same to the first sound you could hear. "
        "Blank: not measured.",
        "首字：请求发出到收到第一段文字。毫秒/词元：末段减首段，除以（词元数减一）。"
        "首声：收到你的话到送出第一段声音。端到端：到你能听见第一段声音为止。空白：没有测到。",
    ),
}


def i18n() -> gr.I18n:
    """The table for labels that Gradio translates in the browser."""
    english = {key: words[0] for key, words in _WORDS.items()}
    chinese = {key: words[1] for key, words in _WORDS.items()}
    return gr.I18n(**{"en": english, "zh": chinese, "zh-CN": chinese})


def language_of(accept_language: str | None) -> str:
    """The page's language, `zh` or `en`, from the browser's Accept-Language header, as the browser itself picks."""
    first = (accept_language or "").split(",")[0].strip().lower()
    return "zh" if first.startswith("zh") else "en"


def word(key: str, language: str) -> str:
    """The words of `key` in `language`."""
    return _WORDS[key][1 if language == "zh" else 0]


def sentence(code: str, message: str, language: str) -> str:
    """A fault or notice in `language`; English where there is no translation."""
    return FAULTS_ZH.get(code, message) if language == "zh" else message


def fault(error: ChatError, language: str) -> str:
    """`error` in `language`."""
    return sentence(error.code, error.message, language)
