"""Every word of the voice panel, in English and Chinese."""

from __future__ import annotations

from typing import Final

PANEL_WORDS: Final[dict[str, tuple[str, str]]] = {
    "state_off": ("Tap to talk", "点一下，开始说话"),
    "state_off_by_hand": ("Hold to talk", "按住说话"),
    "state_loading": ("Getting ready…", "正在准备……"),
    "state_connecting": ("Connecting…", "正在连接……"),
    "state_listening": ("Listening", "在听"),
    "state_hearing": ("Hearing you", "听到你在说"),
    "state_thinking": ("Thinking", "在想"),
    "state_speaking": ("Speaking", "在说"),
    "state_muted": ("Muted", "已静音"),
    "state_lost": ("Not connected", "没有连接"),
    "state_refused": ("Ended", "已结束"),
    "begin": ("Start to talk", "开始对话"),
    "end": ("End the talk", "结束对话"),
    "again": ("Connect again", "重新连接"),
    "renew": ("Open a new conversation", "打开新的对话"),
    "hold": ("Hold to talk", "按住说话"),
    "hold_short": ("Hold", "按住"),
    "mute": ("Mute", "静音"),
    "unmute": ("Unmute", "取消静音"),
    "stop": ("Stop", "停止"),
    "space_hint": ("or hold the space bar to talk", "也可以按住空格键说话"),
    "hint": (
        "Tap the button and just talk.\nSpeak over the answer whenever you like.",
        "点一下按钮，直接说话。\n回答的时候也可以随时插话。",
    ),
    "hint_by_hand": (
        "Hold the button while you speak, then let go.",
        "按住按钮说话，说完松开。",
    ),
    "you": ("You", "你"),
    "reply": ("Answer", "回答"),
    "stopped": ("stopped", "已停止"),
    "picture": ("The image that goes with the message", "随消息发送的图片"),
    "write": ("Write a message", "输入消息"),
    "send": ("Send", "发送"),
    "attach": ("Add an image", "添加图片"),
    "remove_image": ("Remove the image", "去掉图片"),
    "drop_here": ("Drop the image here", "把图片放到这里"),
    "dismiss": ("Dismiss", "关闭"),
    "this_turn": ("This turn", "这一轮"),
    "not_ready": (
        "The app is still getting ready; your message stays here until you send it again.",
        "应用还在准备；消息留在这里，稍后请再发送一次。",
    ),
    "mic_insecure": (
        "Browsers give a page the microphone only over HTTPS or on localhost; open this page that way, or type.",
        "浏览器只在 HTTPS 或 localhost 页面上开放麦克风；请换成这样的地址打开，或者打字。",
    ),
    "mic_denied": (
        "The microphone is blocked for this page; allow it in the browser's address bar and tap again, or type.",
        "麦克风被浏览器拦住了；请在地址栏里允许，再点一次，或者打字。",
    ),
    "mic_missing": (
        "No microphone was found; connect one and tap again, or type.",
        "没有找到麦克风；请接上一个再点一次，或者打字。",
    ),
    "mic_unsupported": (
        "This browser cannot record sound for a page; use a current Chrome, Edge, Firefox or Safari, or type.",
        "这个浏览器不能录音；请使用新版 Chrome、Edge、Firefox 或 Safari，或者打字。",
    ),
    "mic_busy": (
        "The microphone could not be opened; another program may be using it. Close that one and tap again, or type.",
        "麦克风打不开，可能正被别的程序占用；请关掉那个程序再点一次，或者打字。",
    ),
    "lost": (
        "The connection was lost; trying again. The conversation goes on where it was, unless the app was restarted.",
        "连接断了，正在重连；只要应用没有重启，对话会从原处继续。",
    ),
    "taken_over": (
        "This conversation goes on in another tab; tap the button to bring it back here.",
        "这段对话转到了另一个标签页；点按钮可以拿回来。",
    ),
    "refused": (
        "The app does not know this conversation any more, as after a restart; tap the button to open a new one.",
        "应用里已经没有这段对话（可能重新启动过）；请点按钮打开新的对话。",
    ),
    "hold_longer": ("Keep holding while you speak, then let go.", "说话时请一直按住，说完再松开。"),
    "hold_lost": (
        "The connection broke while you spoke; please say it again.",
        "说话时连接断了；请再说一次。",
    ),
    "image_too_large": ("The image file is too large; choose a smaller one.", "图片文件太大；请换一张小一点的。"),
    "not_an_image": (
        "This is not an image that the browser can read; choose a PNG, JPEG or WebP file.",
        "浏览器读不了这个图片；请选择 PNG、JPEG 或 WebP 文件。",
    ),
    "text_too_long": (
        "The message has {length} characters, and {most} is the most; shorten it.",
        "消息有 {length} 个字符，最多 {most} 个；请删短一些。",
    ),
}
