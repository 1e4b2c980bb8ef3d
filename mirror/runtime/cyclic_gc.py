"""Python's collector of cycles: long-lived objects are many here and cycles are few (docs/libraries.md)."""

from __future__ import annotations

import gc


def tune() -> None:
    """Fewer, larger collections, and none of what was loaded until now: to be called before the work begins."""
    gc.set_threshold(10_000, 20, 50)
    gc.collect()
    freeze()


def freeze() -> None:
    """What is there stays, so the collector need not look at it again.

    Nor does it now: that would take all of one turn of the event loop, for a few cycles that a start leaves behind.
    """
    gc.freeze()
