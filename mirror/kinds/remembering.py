"""What was read of the last objects, kept: one look at a source asks for its summary a dozen times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mirror.kube.objects import Object

T = TypeVar("T")

MOST_KEPT = 64
LARGEST_KEPT_BYTES = 32 * 1024
"""Of spec and status: what is kept stays in memory after its object has gone (D29)."""


def once_per_object(read: Callable[[Object], T]) -> Callable[[Object], T]:
    """The same function, which reads an object once. Objects do not change; a change makes another."""
    kept: dict[int, tuple[Object, T]] = {}

    def read_once(found: Object) -> T:
        # An object that is kept lives, so nothing else has its id.
        entry = kept.get(id(found))
        if entry is not None:
            return entry[1]
        answer = read(found)
        if len(found.spec) + len(found.status) <= LARGEST_KEPT_BYTES:
            if len(kept) >= MOST_KEPT:
                del kept[next(iter(kept))]
            kept[id(found)] = (found, answer)
        return answer

    return read_once
