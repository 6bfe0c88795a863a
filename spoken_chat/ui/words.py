"""The words of the page in English and Chinese, by key; `text.py` finds them."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, tuple[str, str]]] = {
    "title": ("Spoken Chat", "语音聊天"),
    "tagline": ("Talk, hear the answer, see how fast it was.", "说话，听回答，看它有多快。"),
    "persona": ("Persona", "角色"),
    "voice": ("Voice", "声音"),
    "restart": ("New conversation", "重新开始"),
    "transcript": ("Conversation", "对话"),
    "recording": ("Answer a recording", "回答一段录音"),
    "recording_file": ("A recording of what you say", "你说的话的录音"),
    "again": ("Hear the reply again", "再听一遍"),
    "export": ("Export timelines (JSON)", "导出时间线（JSON）"),
    "loading": ("Loading", "正在加载"),
    "waiting": ("waiting", "等待中"),
    "ready": ("Ready", "就绪"),
    "failed": ("failed", "失败"),
    "stage_asr": ("speech recognition", "语音识别"),
    "stage_llm": ("language model", "语言模型"),
    "stage_tts": ("voice", "语音合成"),
    # how far a model server's start is
    "step_starting": ("starting", "正在启动"),
    "step_downloading": ("downloading the weights", "正在下载权重"),
    "step_loading": ("loading the weights", "正在载入权重"),
    "step_compiling": ("compiling", "正在编译"),
    "step_warming": ("running its kernels in", "正在预热内核"),
    "step_capturing": ("capturing CUDA graphs", "正在录制 CUDA 图"),
    "step_serving": ("opening its port", "正在打开端口"),
    "step_warming_up": ("reading the personas", "正在读角色设定"),
    "seconds_so_far": ("{elapsed:.0f} s", "{elapsed:.0f} 秒"),
    "seconds_of": ("{elapsed:.0f} s of about {expected:.0f} s", "{elapsed:.0f} 秒，大约要 {expected:.0f} 秒"),
    # the model server
    "server": ("Model server", "模型服务器"),
    "dummy_weights": ("dummy weights: latency only", "权重是占位的：只看延迟"),
    "server_version": ("vLLM", "vLLM"),
    "server_version_info": ("Its version.", "它的版本。"),
    "server_weights_gib": ("weights", "权重"),
    "server_weights_gib_info": ("GPU memory of the weights, from its log.", "权重占的显存，取自它的日志。"),
    "server_kv_tokens": ("cache tokens", "缓存词元"),
    "server_kv_tokens_info": ("Tokens that its cache holds.", "它的缓存能放多少词元。"),
    "server_block_tokens": ("block", "块"),
    "server_block_tokens_info": ("Tokens of one block of its cache.", "缓存的一块有多少词元。"),
    "server_prefix_hit_percent": ("prefix hits", "前缀命中"),
    "server_prefix_hit_percent_info": (
        "Of the prompt tokens since the app began to watch, how many came from the prefix cache; all clients.",
        "从应用开始看起，提示词元里有多少取自前缀缓存；包括所有使用者。",
    ),
    "server_running": ("running", "运行中"),
    "server_running_info": ("Requests that it works on now.", "它正在处理的请求。"),
    "server_waiting": ("waiting", "排队"),
    "server_waiting_info": ("Requests that wait for their turn.", "还在排队的请求。"),
    "server_mtp_accepted_percent": ("MTP accepted", "MTP 采纳"),
    "server_mtp_accepted_percent_info": (
        "Of the tokens that the model's own head guessed, how many were taken; blank without MTP.",
        "模型自带的预测头猜的词元里有多少被采纳；没开 MTP 就空白。",
    ),
    "prefix_missed": ("prefix not cached", "前缀未命中"),
    "stopped": ("stopped", "已停止"),
    "interrupted": ("interrupted", "被打断"),
    "listening": ("listening to what you said…", "正在听你说的话……"),
    "image": ("image", "图片"),
    "english_only": (
        "The embedded model knows only English; to talk Chinese, give the app a model server or another GGUF model.",
        "内置的小模型只懂英语；要说中文，请给它配一个你自己的模型服务器，或另一个 GGUF 模型。",
    ),
    "wait_refused": (
        "The wait must be a number of seconds from {least:g} to {most:g}; it is {now:g} s now.",
        "等待时间必须是 {least:g} 到 {most:g} 之间的秒数；现在是 {now:g} 秒。",
    ),
    # the settings
    "settings": ("Settings", "设置"),
    "detection": ("End of your turn", "怎样算说完"),
    "detection_info": (
        "Adaptive waits longer while you do not sound finished. By hand: hold the space bar or the button.",
        "自适应：听起来还没说完就多等一会儿。手动：按住空格键或按钮。",
    ),
    "detection_adaptive": ("Adaptive", "自适应"),
    "detection_fixed": ("Fixed wait", "固定等待"),
    "detection_manual": ("By hand", "手动"),
    "wait": ("Wait (s)", "等待（秒）"),
    "wait_info": ("Silence that ends your turn.", "静音这么久就算说完。"),
    "wait_finished": ("Wait, finished (s)", "说完时的等待（秒）"),
    "wait_finished_info": (
        "Silence that ends a turn that sounds finished.",
        "听起来已经说完时，静音这么久就算结束。",
    ),
    "wait_unfinished": ("Wait, not finished (s)", "没说完时的等待（秒）"),
    "wait_unfinished_info": (
        "Silence that ends a turn that does not sound finished.",
        "听起来还没说完时，静音这么久才算结束。",
    ),
    "speculation": ("Begin the answer in the pause", "停顿时就开始准备回答"),
    "speculation_info": (
        "The answer is prepared before your turn is surely over, and dropped when you go on.",
        "还没确定你说完就先准备回答；你接着说，就丢掉它。",
    ),
    "partial_transcripts": ("Captions while you speak", "边说边显示字幕"),
    "partial_transcripts_info": (
        "What was understood so far; costs some computing.",
        "显示目前听懂的话；会多用一些计算。",
    ),
    "barge_in": ("Stop when I speak", "我一开口就停"),
    "barge_in_info": (
        "Speaking over the reply ends it; a short “mhm” does not.",
        "在回答时说话会打断它；一声“嗯”不会。",
    ),
    "half_duplex": ("My loudspeaker echoes", "我的扬声器有回声"),
    "half_duplex_info": (
        "The microphone rests while the reply plays, so that it does not hear itself; then speech cannot stop it.",
        "播放回答时不听麦克风，免得它听到自己；这时说话也就打断不了它。",
    ),
    # the figures of turns
    "this_turn": ("This turn", "这一轮"),
    "last_turns": ("Last turns side by side", "最近几轮对比"),
    "all_turns": ("Turns so far", "所有轮次"),
    "median": ("median", "中位数"),
    "p95": ("p95", "95 百分位"),
    "count": ("n", "次数"),
    "no_turns": (
        "Figures appear here, measured live, once you say something.",
        "说点什么，这里就会实时显示测得的数字。",
    ),
    "kind": ("kind", "方式"),
    "hands_free": ("hands-free", "免提"),
    "push_to_talk": ("push-to-talk", "按键说话"),
    "typed": ("typed", "打字"),
    "image_tokens": ("image tokens", "图片词元"),
    "speculation_hit": ("speculation hit", "预备命中"),
    "speculation_miss": ("speculation miss", "预备落空"),
    "speculation_off": ("no speculation", "没有预备"),
    "dropped_starts": ("dropped starts", "作废"),
    "hits": ("hits", "命中"),
    "misses": ("misses", "落空"),
    "off": ("off", "没有"),
    "speculation_short": ("Speculation", "预备"),
    "order_first": ("first turn", "第一轮"),
    "order_after_idle": ("after idle", "久未使用"),
    "reopened": ("reopened", "接着说"),
    "mood_tag": ("Mood tag kept", "语气标签"),
    "definitions": ("What the figures mean", "这些数字是什么意思"),
    "blank": ("Blank: not measured.", "空白：没有测到。"),
    "v2v_parts": ("What V2V is made of", "端到端由哪些部分组成"),
    "before_endpoint": ("shaded: before the turn's end was certain", "阴影：还没确定说完"),
    "row_wait": ("end of turn", "判断说完"),
    "row_asr": ("ASR", "识别"),
    "row_llm": ("model", "模型"),
    "row_voice": ("voice", "合成"),
    "row_way": ("way to you", "送到你耳边"),
    "held": ("ready, held back", "已备好，等你说完"),
    "writing": ("rest of the text", "其余文字"),
}

FIGURES: Final[dict[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    "v2v_ms": (
        ("V2V", "端到端"),
        (
            "Your last speech (hands-free) or the end of your input to the first sound you could hear: "
            "endpoint delay + first audio + wire + playback.",
            "从你说完最后一个字（免提）或交出内容，到你能听见第一个声音：判断延迟 + 首声 + 传输 + 播放。",
        ),
    ),
    "endpoint_delay_ms": (
        ("endpoint delay", "判断延迟"),
        (
            "Your last speech until the app is sure that your turn is over; hands-free only.",
            "从你说完最后一个字到确定你说完；只有免提才有。",
        ),
    ),
    "asr_ms": (("ASR", "识别"), ("Recognition of the whole utterance.", "识别整段话所用的时间。")),
    "ttft_ms": (("TTFT", "首字"), ("Request sent to the first text received.", "请求发出到收到第一段文字。")),
    "ms_per_token": (
        ("ms/token", "毫秒/词元"),
        (
            "Last text minus first text, over the server's count of tokens less one.",
            "末段文字减首段文字的时间，除以（服务器给出的词元数减一）。",
        ),
    ),
    "llm_turn_ms": (
        ("LLM turn", "模型用时"),
        ("Request sent to the end of the reply's text.", "请求发出到文字全部收完。"),
    ),
    "first_clause_ms": (
        ("first clause", "首句"),
        ("First text until the first clause is complete.", "第一段文字到第一个分句完整。"),
    ),
    "tts_ms": (("voice", "合成"), ("First clause complete to its first sound made.", "首句完整到它的第一段声音合成。")),
    "first_audio_ms": (
        ("first audio", "首声"),
        (
            "The server's part: your turn is over (endpoint) to the first sound sent; near 0 when it was held ready.",
            "服务器的部分：确定你说完到送出第一段声音；提前备好时接近 0。",
        ),
    ),
    "wire_ms": (
        ("wire", "传输"),
        (
            "The way of your sound to the server and of the reply's sound back, by your browser's clock.",
            "你的声音到服务器、回答的声音回来的路上时间，按浏览器的时钟。",
        ),
    ),
    "playback_ms": (
        ("playback", "播放"),
        ("First sound received by your browser until it was audible.", "浏览器收到第一段声音到你能听见。"),
    ),
    "prompt_tokens": (("prompt", "提示"), ("Tokens of the prompt.", "提示的词元数。")),
    "cached_tokens": (
        ("cached", "缓存命中"),
        ("Prompt tokens that the server took from its cache.", "服务器从缓存里取的提示词元数。"),
    ),
    "completion_tokens": (
        ("tokens", "词元"),
        ("Tokens of the reply, as the server counts.", "回答的词元数，由服务器给出。"),
    ),
}
"""Of each figure, by its name in the timeline: what it is called, and its definition in one line."""
