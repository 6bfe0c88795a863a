"""Hands-free talk: a stream of microphone sound becomes turns. Knows nothing of the web."""
