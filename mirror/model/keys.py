"""What is queued: names of things to look at, never what happened to them.

Structs, since keys are hashed all the time, and those that are dataclasses are hashed in Python.
"""

from __future__ import annotations

import msgspec


class SourceKey(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A source on the management cluster, with its mirror on the worker it is placed on."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class MirrorKey(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """An object on a worker that carries our labels: has it still a right to be there?"""

    worker: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} on {self.worker}"


Key = SourceKey | MirrorKey
