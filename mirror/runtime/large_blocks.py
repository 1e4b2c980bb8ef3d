"""Large blocks of memory go back to the system as soon as they are freed, where the C library is glibc.

By itself it learns from the first documents and lists that they are large, and keeps what comes after them in its heap,
of which a few small objects hold back nearly all: 10 MiB once the definitions of thirteen kinds were read.
"""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD = -3
"""``M_MMAP_THRESHOLD`` of mallopt(3)."""
LARGE_BYTES = 128 * 1024
"""What glibc begins with."""


def give_back() -> None:
    """From now on, in this process; to be called before the work begins. Elsewhere than with glibc it does nothing."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(MMAP_THRESHOLD, LARGE_BYTES)
