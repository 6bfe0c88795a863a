"""Servers this app starts itself: the embedded llama.cpp one, and vLLM by its recipe."""
