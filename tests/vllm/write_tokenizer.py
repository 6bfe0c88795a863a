"""Run by the Python that has vLLM: turn a tiktoken vocabulary into the files that vLLM loads a tokenizer from.

usage: write_tokenizer.py SPEC OUT     SPEC is JSON: `vocabulary` (a file), `pattern`, `special` ([id, text] each)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tokenizers import AddedToken
from transformers.convert_slow_tokenizer import TikTokenConverter

SPOKEN = ("<think>", "</think>")
"""Marks that belong to a reply's text."""


def main(spec_path: str, out: str) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`."""
    spec = json.loads(Path(spec_path).read_text())
    tokenizer = TikTokenConverter(vocab_file=spec["vocabulary"], pattern=spec["pattern"]).converted()
    for number, text in sorted(spec["special"]):
        tokenizer.add_tokens([AddedToken(text, special=text not in SPOKEN, normalized=False)])
        if tokenizer.token_to_id(text) != number:
            raise SystemExit(f"{text} became token {tokenizer.token_to_id(text)} instead of {number}")
    tokenizer.save(f"{out}/tokenizer.json")
    config = {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    Path(out, "tokenizer_config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main(*sys.argv[1:])
