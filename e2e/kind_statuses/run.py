"""Plays histories of sources of one kind after the other on one API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from e2e.controlplane.client import Client
from e2e.definitions import defined
from e2e.go_modules import definition_of
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.settings.kinds import KindEntry, StatusPatch
from tests.kinds.declared.status_histories import History, schema_of_status

Json = Any

SAMPLES = Path(__file__).parents[2] / "config/samples/kinds"
NAMESPACE = "default"
STATUSES_A_SOURCE = 100
AT_ONCE = 6
JSON_PATCH = "application/json-patch+json"


@dataclass
class Outcome:
    """What became of the statuses of one kind."""

    kind: str
    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def unseen(self) -> list[str]:
        """What was never stored, though a source of the kind can have it: of that nothing was shown."""
        entry = kind_named(self.kind).entry
        expected = ("followed", "lost", *(("suspended",) if entry.suspended != StatusPatch() else ()))
        return [what for what in expected if not self.seen[what]]


def kind_named(name: str) -> DeclaredKind:
    """One that is built in."""
    kind = kinds_of([KindEntry(kind=name)])[name]
    assert isinstance(kind, DeclaredKind)
    return kind


async def play(client: Client, name: str, statuses: int, *, seed: int = 0) -> Outcome:
    """See so many statuses of this kind; its definition is created, and taken away afterwards."""
    kind, definition = kind_named(name), definition_of(name)
    schema = schema_of_status(definition, kind.resource.version)
    kind.learn_status(schema)
    outcome, gate = Outcome(name), asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            count = min(STATUSES_A_SOURCE, statuses - number * STATUSES_A_SOURCE)
            history = await _begin(client, kind, schema, seed + number)
            await history.run(count)
            outcome.seen.update(history.seen)
            outcome.wrong += history.wrong

    async with defined([client], [definition]), asyncio.TaskGroup() as scope:
        for number in range(-(-statuses // STATUSES_A_SOURCE)):
            scope.create_task(one(number), name=f"{name} {number}")
    return outcome


async def store(client: Client, name: str, status: Json, *, spec: Json, annotations: Json) -> tuple[Outcome, Json, int]:
    """See one status of a source that has this in its spec, too, and these annotations.

    Returns what became of it, the source as it is stored then, and how much of the status was left out.
    """
    kind = kinds_of([KindEntry(kind=name)])[name]
    assert isinstance(kind, DeclaredKind)
    definition = definition_of(name)
    schema = schema_of_status(definition, kind.resource.version)
    kind.learn_status(schema)
    async with defined([client], [definition]):
        history = await _begin(client, kind, schema, 0, spec=spec, annotations=annotations)
        cut = await history.see(status)
    return Outcome(name, history.seen, history.wrong), history.body, cut


async def _begin(
    client: Client,
    kind: DeclaredKind,
    schema: Json,
    seed: int,
    *,
    spec: Json | None = None,
    annotations: Json | None = None,
) -> History:
    body = yaml.load((SAMPLES / f"{kind.name.lower()}.yaml").read_text(), Loader=yaml.CSafeLoader)
    body["metadata"] |= {"name": f"a-{seed}", "annotations": annotations or {}}
    body["spec"] |= spec or {}
    created = await client.create(kind.resource.path(NAMESPACE), body)
    path = kind.resource.path(NAMESPACE, body["metadata"]["name"])

    async def write(subresource: str, operations: list[Json]) -> Json:
        whole = f"{path}/{subresource}" if subresource else path
        return await client.call("PATCH", whole, operations, JSON_PATCH)

    return History(kind, schema, created, write, seed)
