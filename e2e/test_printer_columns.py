"""Printer columns of the real definitions, as servers fill them: a source shows what its mirror shows.

Some show the last condition, whatever it is, so ours stand before the worker's (``status.own``). No controller runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from e2e.controlplane.client import JSON_PATCH, Client, Json
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import defined
from e2e.go_modules import definition_of
from e2e.played_statuses import status_of
from e2e.test_kind_schemas import TRANSFORM, Stored, as_object, kind_of, sample_of
from mirror.kinds.declared.choosing import built_in
from mirror.model import names

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = "2026-01-02T03:04:05Z"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
THEIR_OWN = {"name", "age"}
"""Columns that differ by nature here."""
OF_SPEC: dict[str, Json] = {"JobSet": {"Suspended": (None, "false")}}
"""Columns about the spec: a mirror always says whether it is suspended."""
OF_TEKTON = ("PipelineRun", "TaskRun")
JOBSET: dict[str, Json] = {
    phase: {
        "restarts": 0,
        "conditions": [
            {"type": kind, "status": state, "reason": "Because", "message": "", "lastTransitionTime": AT}
            for kind, state in conditions
        ],
        **more,
    }
    for phase, conditions, more in (
        ("created", (), {}),
        ("running", (("Suspended", "False"),), {}),
        ("suspended", (("Suspended", "True"),), {}),
        ("succeeded", (("Suspended", "False"), ("Completed", "True")), {"terminalState": "Completed"}),
    )
}


def phases_of(name: str) -> list[Json]:
    """The statuses of a mirror that is made, runs, is suspended where that is possible, and ends."""
    phases = ("created", "running", *(() if name in OF_TEKTON else ("suspended",)), "succeeded")
    if built_in()[name].done.never:
        phases = phases[:-1]
    return [JOBSET[phase] if name == "JobSet" else status_of(name, phase) for phase in phases]


@pytest_asyncio.fixture(loop_scope="session")
async def client(management: ControlPlane) -> AsyncIterator[Client]:
    async with management.client(user_agent="e2e-columns") as found:
        yield found


async def cells(client: Client, path: str) -> Json:
    """What ``kubectl get`` shows of one object, by column."""
    table = await client.call("GET", path, accept=TABLE)
    columns = [one["name"] for one in table["columnDefinitions"]]
    (row,) = table["rows"]
    return {name: cell for name, cell in zip(columns, row["cells"], strict=True) if name.lower() not in THEIR_OWN}


class Pair:
    """A source and its mirror in one namespace of one server."""

    def __init__(self, client: Client, source: Stored, mirror: Json, name: str) -> None:
        self.client, self.source, self.mirror, self.kind = client, source, mirror, kind_of(name)

    @classmethod
    async def make(cls, client: Client, namespace: str, name: str) -> Pair:
        """A source that is placed, and a mirror without a status."""
        kind, path = kind_of(name), kind_of(name).resource.path(namespace)
        source = Stored(client, kind, await client.create(path, sample_of(name)))
        body = kind.mirror_body(source.found, namespace=namespace, transform=TRANSFORM)
        body["metadata"]["name"] = "mirror"
        pair = cls(client, source, await client.create(path, body), name)
        await source.write(kind.stored(source.found).placed_status("east", NOW))
        return pair

    def path(self, body: Json, subresource: str = "") -> str:
        metadata = body["metadata"]
        return self.kind.resource.path(metadata["namespace"], metadata["name"], subresource)

    async def follow(self, status: Json) -> None:
        """The mirror says this, and the source what follows."""
        change = [{"op": "add", "path": "/status", "value": status}]
        self.mirror = await self.client.call("PATCH", self.path(self.mirror, "status"), change, JSON_PATCH)
        stored = self.kind.stored(self.source.found)
        following = stored.next_status(as_object(self.mirror), now=NOW).status
        await self.source.write(stored.mirrored_status(following, "m-1", NOW))

    async def differing(self) -> Json:
        """The columns in which source and mirror differ: what each shows."""
        here, there = [await cells(self.client, self.path(one)) for one in (self.source.body, self.mirror)]
        return {name: (here[name], there[name]) for name in here if here[name] != there[name]}


@pytest.mark.parametrize("name", built_in())
async def test_columns_of_a_source_show_what_those_of_its_mirror_show(
    client: Client, fresh_namespace: str, name: str
) -> None:
    """In every phase; where a worker has no condition yet, a column for the last one shows ours (docs/kinds.md)."""
    async with defined([client], [definition_of(name)]):
        pair = await Pair.make(client, fresh_namespace, name)
        for status in phases_of(name):
            await pair.follow(status)
            found = await pair.differing()
            expected: Json = dict(OF_SPEC.get(name, {}))
            if name == "TrainJob" and not status["conditions"]:
                expected["State"] = (names.MIRRORED, None)
            assert found == expected, status
        await client.delete(pair.path(pair.mirror))
        await client.delete(pair.path(pair.source.body))


@pytest.mark.parametrize("name", [one for one in built_in() if one in ("TrainJob", "PyTorchJob", "TFJob")])
async def test_the_column_of_one_whose_mirror_is_lost_says_that_it_failed(
    client: Client, fresh_namespace: str, name: str
) -> None:
    """Whatever it had said before: that it was made, that it runs, that it was held."""
    async with defined([client], [definition_of(name)]):
        for number, status in enumerate(phases_of(name)[:-1]):
            pair = await Pair.make(client, fresh_namespace, name)
            await pair.follow(status)
            await pair.source.write(
                pair.kind.stored(pair.source.found).lost_status(NOW, message="gone", reason="MirrorLost")
            )
            assert (await cells(client, pair.path(pair.source.body)))["State"] == "Failed", number
            for one in (pair.mirror, pair.source.body):
                await client.delete(pair.path(one))
