"""What is queued: names of things to look at, never what happened to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceKey:
    """A source on the management cluster, with its mirror on the worker it is placed on."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class MirrorKey:
    """An object on a worker that carries our labels: has it still a right to be there?"""

    worker: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name} on {self.worker}"


Key = SourceKey | MirrorKey
