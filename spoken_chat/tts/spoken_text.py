"""What a voice is given for a clause: the words of the reply without markup, emoji, code and addresses.

Written by hand rather than with a markdown parser: clauses are fragments, so half of an emphasis or of a link is
usual, and a parser would leave what it does not see whole.
"""

from __future__ import annotations

import html
from typing import Final

import regex

from spoken_chat.tts.symbols import CHINESE, say_symbols

_URL_CHARS: Final = r"(?:\([^\s()<>\u0080-\U0010ffff]*\)|[^\s()<>\[\]{}\"'`|\\^\u0080-\U0010ffff])"
_URL_END: Final = r"(?<![.,!?;:*_~])"
_TOP_DOMAINS: Final = "com|org|net|edu|gov|info|io|ai|cn|dev|app|uk|de|jp|eu"
_DOMAIN: Final = rf"(?<![A-Za-z0-9_@./-])(?:[A-Za-z0-9-]+\.)+(?:{_TOP_DOMAINS})(?![A-Za-z0-9-])"

_FENCE = regex.compile(r"`{3,}|(?m:^ {0,3}(~{3,})(?=[\w-]*\s*$))")
_ONE_LINE_FENCE = regex.compile(r"(?<!`)`{3,}+([^`\n]+)`{3,}")

_RULE_LINE = regex.compile(r"\s*([-*_=])(?:\s*\1){2,}\s*")
_TABLE_RULE = regex.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*")
_LINK_DEFINITION = regex.compile(r"\s*\[[^\[\]]+\]:\s*\S+.*")
_LINE_LEAD = regex.compile(r"^\s*(?:>+\s*|[-*+•‣◦·–—]\s+|#{1,6}\s+)*(?:\[[ xX]\]\s+)?")
_HEADING_TAIL = regex.compile(r"\s#+\s*$")

_ENTITY = regex.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_AUTOLINK = regex.compile(r"<((?:https?://|mailto:)[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>")
_BREAK = regex.compile(r"<br\s*/?>|<!--.*?-->")
_TAG = regex.compile(r"</?[A-Za-z][^<>]*>")
_LINK = regex.compile(r"!?\[([^\[\]]*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])")
_LINK_TAIL = regex.compile(r"\]\((?:[^()\s]|\([^()\s]*\))*\)?")
_STRUCK = regex.compile(r"~~([^~]+)~~")
_FOOTNOTE = regex.compile(r"\[\^[^\[\]\s]*\]")
_EMAIL = regex.compile(r"(?<![A-Za-z0-9._%+-])(?:mailto:)?([A-Za-z0-9._%+-]+)@((?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+)")
_URL = regex.compile(
    rf"(?i:(?<![a-z])(?:https?|ftp|file)://|(?<![a-z0-9.])www\.){_URL_CHARS}+{_URL_END}|{_DOMAIN}/{_URL_CHARS}*{_URL_END}"
)
_BARE_DOMAIN = regex.compile(_DOMAIN)

_EMOJI = regex.compile(
    r"\s*(?:[0-9#*]\uFE0F?\u20E3|(?!↔)[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Regional_Indicator}\u20E3]"
    r"[\uFE0E\uFE0F\u200D\u20E3\p{Emoji_Modifier}\U000E0020-\U000E007F]*)+"
)
_EMOJI_BETWEEN_HAN = regex.compile(rf"(?<=\p{{Han}}){_EMOJI.pattern}\s*(?=\p{{Han}})")
_KAOMOJI = regex.compile(
    r"¯\\?_[(（]ツ[)）]_/¯|[ヾヽ╰╮╭┐ノʕ]?[(（]\s*(?=[^()（）]*[\^＾ωд▽∀◕‿￣≧≦□◠◡ᴗ﹏⌒∇])"
    r"[^()（）\p{Han}A-NP-SU-Za-np-z0-9]{2,14}[)）][ノﾉ╯╮╭ゞっ︵┻━┬/ ]*|ʕ[^ʔ]{1,8}ʔ"
)
_EMOTICON = regex.compile(
    r"(?<![A-Za-z0-9^])(?:\^[_o.-]?\^|T_+T|Q_+Q|>_+<|-_+-|[oO]_+[oO]|xD|XD|</?3|¯\\?_/¯)(?![A-Za-z0-9])"
    r"|(?<![\p{L}\p{N}])(?:[:;][-'’^]?[)(\]\[DPpOo3|/\\*]+|=[)(DP]+|：[)）])(?![A-Za-z0-9])"
)

_ACTIONS: Final = (
    "(?:laugh|chuckl|giggl|smil|smirk|grin|sigh|gasp|nod|wink|wav|paus|whisper|shrug|blush|yawn|sniffl|groan|hum|cough"
    "|hug)"
)
_ACTION: Final = (
    rf"(?:{_ACTIONS}(?:e|es|s|ing|ning|ding|ming|ging)?|clears (?:his |her )?throat|takes a (?:deep )?breath)"
)
_ACTION_ZH: Final = (
    r"(?:(?:\p{Han}{1,4}地|轻轻|微微|悄悄|偷偷|忍不住|开心|害羞|无奈)?"
    r"(?:笑了?笑?|微笑|大笑|轻笑|偷笑|苦笑|坏笑|傻笑|叹了?口?气|叹息|点了?点?头|摇了?摇?头|眨了?眨?眼睛?|挥了?挥?手|耸肩|脸红|停顿|沉默|鼓掌|清嗓子)"
    r"[着了]?)"
)
_STAGE: Final = rf"(?i:(?:[a-z]+ly )?{_ACTION}(?: [a-z]+ly)?|{_ACTION_ZH})"
_STAGE_DIRECTION = regex.compile(
    rf"[(（\[［【]\s*{_STAGE}\s*[)）\]］】](?!\()|(?<![\w*])\*{_STAGE}\*(?!\*)"
    rf"|^\s*(?:[(（\[*]\s*(?i:(?:[a-z]+ly )?{_ACTIONS}(?:e?s|n?ing)(?: [a-z]+){{0,3}})\s*[)）\]*])"
)
_LEADING_TAG = regex.compile(r"^(?:\s*\[\p{L}[\p{L}\p{M}_-]{0,19}(?: [\p{L}_-]{1,19}){0,2}\](?![(\[:]))+")

_WORD: Final = r"[\p{L}\p{N}]"
_PAUSE = regex.compile(rf"(?<={_WORD})\s*[|~～〜]+\s*(?={_WORD})")
_SPACED_OUT = regex.compile(r"[\\_/]{2,}|[\\_|]|\s/\s")
_MARKUP = regex.compile(r"[*`#＃~～〜^{}\[\]【】［］<>=\p{So}\p{Sk}]|(?![+])\p{Sm}|(?<![\p{L}\p{N}+])\+(?!\d)")
_CONTROL = regex.compile(r"[\p{Cc}\u2028\u2029]")
_INVISIBLE = regex.compile(r"[\p{Cf}\p{Cs}\p{Co}\p{Cn}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f\ufffd]")

_ELLIPSIS = regex.compile(r"\.{2,}|…[.…]*|⋯+|。{3,}")
_EXCLAMATIONS = regex.compile(r"[!?！？‼⁇⁈⁉]{2,}|[‼⁇⁈⁉]")
_DASHES = regex.compile(r"\s+--+\s+")
_REPEATED = regex.compile(r"([。，,、;；:：—–·.\-])\1+")
_EMPTY_PAIR = regex.compile(r"[\p{Ps}\p{Pi}]\s*[\p{Pe}\p{Pf}]|\"\s*\"")
_SPACE_BEFORE_MARK = regex.compile(r"\s+(?=[,.!?;:，。！？；：、…)）](?![\p{L}\p{N}]))")
_COMMA_BEFORE_END = regex.compile(r"[,，、;；:：]+(?=\s*(?:\.(?!\d)|[。!！?？…]))")
_COMMA_AFTER_END = regex.compile(r"(?<=[。!！?？…])\s*[,，、;；:：]+|(?<=[,，、])\s*[,，、]+")
_LEAD = regex.compile(r"^(?:(?!-\d|\.\d|[\p{Ps}\p{Pi}\"'¿¡%&])[\p{P}\s])+")
_TAIL = regex.compile(r"(?r)(?:[\s\p{Ps}\p{Pi}]|(?<=\s)-)+$")
_SPACES = regex.compile(r"\s+")


def spoken(text: str, language: str) -> str:
    """What is spoken of `text`, a whole reply or one clause on its own; see `SpokenText`."""
    return SpokenText(language).clean(text)


class SpokenText:
    """Cleans the clauses of one reply in order; only an open code fence is remembered from clause to clause.

    `language` is an ISO 639-1 code, with or without a region. English and Chinese say symbols as words; other
    languages leave them out.
    """

    def __init__(self, language: str) -> None:
        self._language = language.lower().replace("_", "-").partition("-")[0]
        self._fence = ""

    def clean(self, clause: str) -> str:
        """One line of words and plain punctuation, "" when the clause has nothing to say. Takes any text.

        Cleaning what is already clean changes nothing.
        """
        text = _clean_once(self._without_code(clause), self._language)
        while (again := _clean_once(text, self._language)) != text:
            text = again
        return text

    def _without_code(self, clause: str) -> str:
        if not self._fence:
            clause = _ONE_LINE_FENCE.sub(r"\1", clause)
        kept: list[str] = []
        start = 0
        for match in _FENCE.finditer(clause):
            marks = match[1] or match[0]
            if not self._fence:
                kept.append(clause[start : match.start()])
                self._fence = marks
            elif marks.startswith(self._fence):
                self._fence = ""
                start = match.end()
        if not self._fence:
            kept.append(clause[start:])
        return "\n".join(kept)


def _clean_once(text: str, language: str) -> str:
    text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    text = _join_lines([_plain_line(line) for line in text.splitlines()], language)
    text = _without_links(text, language)
    text = _STRUCK.sub(r"\1", text)
    text = _BREAK.sub(" ", text)
    text = _TAG.sub("", text)
    text = _KAOMOJI.sub(" ", text)
    text = _EMOTICON.sub(" ", text)
    text = _without_emoji(text, language)
    text = _CONTROL.sub(" ", text)
    text = _INVISIBLE.sub("", text)
    text = _STAGE_DIRECTION.sub(" ", text)
    text = _LEADING_TAG.sub("", text)
    text = say_symbols(_SPACES.sub(" ", text), language)
    text = _PAUSE.sub("，" if language == CHINESE else ", ", text)
    text = _SPACED_OUT.sub(" ", text)
    text = _MARKUP.sub("", text)
    text = _tidy(text)
    return text if any(map(str.isalnum, text)) else ""


def _plain_line(line: str) -> str:
    """One line without what markdown puts at its start and end."""
    if _RULE_LINE.fullmatch(line) or _TABLE_RULE.fullmatch(line) or _LINK_DEFINITION.fullmatch(line):
        return ""
    line = _LINE_LEAD.sub("", _SPACES.sub(" ", line))
    return _HEADING_TAIL.sub("", line).strip(" |")


def _join_lines(lines: list[str], language: str) -> str:
    """The lines as one; a line that ends in a word gets a pause."""
    joined = ""
    for line in filter(None, lines):
        if joined:
            joined += ("，" if language == CHINESE else ", ") if joined[-1].isalnum() else " "
        joined += line
    return joined


def _without_links(text: str, language: str) -> str:
    chinese = language == CHINESE
    text = _AUTOLINK.sub(r"\1", text)
    text = _FOOTNOTE.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _LINK_TAIL.sub("", text)
    text = _EMAIL.sub(lambda match: _say_email(match[1], match[2], chinese), text)
    text = _URL.sub("链接" if chinese else "link", text)
    return _BARE_DOMAIN.sub(lambda match: _say_dots(match[0], chinese), text)


def _say_dots(name: str, chinese: bool) -> str:
    return name.replace(".", "点" if chinese else " dot ")


def _say_email(user: str, domain: str, chinese: bool) -> str:
    user = user.replace("_", "下划线" if chinese else " underscore ")
    at = "艾特" if chinese else " at "
    return _say_dots(user, chinese) + at + _say_dots(domain, chinese)


def _without_emoji(text: str, language: str) -> str:
    """An emoji between two Chinese words stands for the mark that people leave out before it."""
    if language == CHINESE:
        text = _EMOJI_BETWEEN_HAN.sub("，", text)
    return _EMOJI.sub(" ", text)


def _one_exclamation(match: regex.Match[str]) -> str:
    marks = match[0]
    wide = "！" in marks or "？" in marks
    if any(mark in marks for mark in "?？⁇⁈⁉"):
        return "？" if wide else "?"
    return "！" if wide else "!"


def _tidy(text: str) -> str:
    """Punctuation and spaces as in a sentence typed with care."""
    text = _DASHES.sub(" — ", text)
    text = _ELLIPSIS.sub("…", text)
    text = _EXCLAMATIONS.sub(_one_exclamation, text)
    text = _REPEATED.sub(r"\1", text)
    text = _EMPTY_PAIR.sub("", text)
    text = _SPACES.sub(" ", text)
    text = _SPACE_BEFORE_MARK.sub("", text)
    text = _COMMA_BEFORE_END.sub("", text)
    text = _COMMA_AFTER_END.sub("", text)
    text = _LEAD.sub("", text)
    return _TAIL.sub("", text)
