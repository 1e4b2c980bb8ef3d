"""A worker's mutating admission: changes Jobs that are created or updated there by anybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from doubles.transport import Wire

Body = dict[str, Any]
Change = Callable[[Body], None]


class MutatingAdmission:
    """Wraps what the server has; every other question is answered by that."""

    def __init__(self, inner: Any, change: Change, operations: tuple[str, ...]) -> None:
        self._inner = inner
        self._change = change
        self._operations = operations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def mutate(self, attributes: Any) -> Any:
        found = await self._inner.mutate(attributes)
        is_job = attributes.kind.plural == "jobs" and not attributes.subresource and attributes.body is not None
        if is_job and attributes.operation in self._operations:
            self._change(attributes.body)
        return found


def mutate_jobs(wire: Wire, change: Change, *operations: str) -> None:
    """Let this worker change Jobs like this; ``operations`` are CREATE, UPDATE or both (none: both)."""
    server = wire.server.inner
    admission: Any = MutatingAdmission(server.dependencies.admission, change, operations or ("CREATE", "UPDATE"))
    server.dependencies = replace(server.dependencies, admission=admission)
