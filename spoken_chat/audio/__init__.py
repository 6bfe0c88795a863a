"""PCM in and out. Speech recognition hears 16 kHz mono float32; voices speak 24 kHz mono int16."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

ASR_RATE: Final = 16_000
"""Samples per second of what the recogniser and the voice detector hear."""

TTS_RATE: Final = 24_000
"""Samples per second of what the voices speak, and of the wire."""

FloatPcm = NDArray[np.float32]
"""Mono samples in [-1, 1], shape (n,)."""

Pcm16 = NDArray[np.int16]
"""Mono 16-bit samples, shape (n,)."""
