"""Spoken Chat: speech recognition, a streamed language model and a voice, with true latency figures for each turn."""

__version__ = "0.1.0"
