"""What is said to the servers: short spoken-Chinese turns, as the persona is talked to, with fixed replies.

The replies in the history are ours, not the server's, so that every server is asked the very same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spoken_chat.conversation import Conversation, Exchange, ImagePart
from spoken_chat.persona import Persona

SAID: Final = (
    "嗯，我刚下班，今天有点累。",
    "你吃饭了没呀？",
    "那个，我想问问你，周末去哪儿玩比较好？",
    "哎，昨天晚上我又没睡好，老是醒。",
    "你说我要不要换个工作啊，现在这个太没意思了。",
    "哈哈，你怎么知道的？",
    "就是，那个，我妈让我回家过年，可是我票还没买。",
    "今天外面风好大，我骑车差点被吹倒。",
    "你平时喜欢听什么歌？",
    "我有个同事，怎么说呢，老是把活儿推给我。",
    "对了，上次你说的那家书店，还开着吗？",
    "我养的那盆花好像要死了，叶子都黄了，怎么办？",
    "等一下啊，我想想。嗯，大概是三点半左右吧。",
    "你会做饭吗？我想学个简单的。",
    "好烦啊，又下雨了，衣服都干不了。",
    "我跟朋友吵架了，其实也不是什么大事。",
    "给我讲个短一点的故事吧，我想睡觉了。",
    "行，那我先去洗澡，回头再聊。",
)

ANSWERED: Final = (
    "[平静] 先坐下歇会儿吧，热水泡个脚，什么都别想。",
    "[开心] 吃啦，老板煮了面，我还多加了一个蛋。",
    "[好奇] 要是天好，就去运河边走走，桥底下特别凉快。",
    "[心疼] 哎，那白天可难受了，睡前别看手机，试试看。",
    "[认真] 别急着辞，先想想你最受不了的是哪一样。",
    "[调皮] 猜的嘛，你一说话我就听出来了。",
)

TURNS: Final = 6
"""Of one conversation; then another begins."""


@dataclass
class Talk:
    """One conversation as it grows. Its first words carry `mark`, so that no other one shares its history."""

    persona: Persona
    mark: str
    conversation: Conversation = field(default_factory=lambda: Conversation(budget=11_000))

    def prompt(self, text: str, image: ImagePart | None = None) -> list[dict[str, Any]]:
        """What is sent when the person says `text`."""
        return self.conversation.messages(self.persona.prefix, self._marked(text), image, self.persona.examples)

    def answered(self, text: str, image: ImagePart | None = None) -> None:
        """Go on: `text` was said and answered."""
        reply = ANSWERED[len(self.conversation.exchanges) % len(ANSWERED)]
        self.conversation.add(Exchange(self._marked(text), reply, image))

    def _marked(self, text: str) -> str:
        return text if self.conversation.exchanges else f"{self.mark}，{text}"


def conversations(said: Sequence[str] = SAID) -> list[Sequence[str]]:
    """`said` in conversations of TURNS turns."""
    return [said[start : start + TURNS] for start in range(0, len(said), TURNS)]
