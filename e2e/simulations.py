"""Simulations: the kind of one's own of docs/kinds.md, as its definition might be, and a player that runs them.

The player makes one real pod of each on a worker, and writes a status of one word, without a time or a number. Used by
``test_own_kinds``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import RUN_FOR_KEY, read_or_none
from mirror.kube.resources import Resource

SIMULATIONS = Resource("example.com", "v1beta1", "simulations", "Simulation")
LABEL = "example.com/simulation"
_LOOK_SECONDS = 0.1
_ENDS = {"Succeeded": "Done", "Failed": "Broken"}
"""What the player says when the pod has ended."""
_TEXT: Json = {"type": "string"}


def definition() -> Json:
    """Its CRD."""
    parts = ("type", "status", "reason", "message", "lastTransitionTime")
    condition: Json = {"type": "object", "properties": dict.fromkeys(parts, _TEXT)}
    spec: Json = {"managedBy": _TEXT, "paused": {"type": "boolean"}, "steps": {"type": "integer"}}
    status: Json = {"phase": _TEXT, "conditions": {"type": "array", "items": condition}}
    whole = {name: {"type": "object", "properties": fields} for name, fields in (("spec", spec), ("status", status))}
    version: Json = {"name": SIMULATIONS.version, "served": True, "storage": True, "subresources": {"status": {}}}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": whole}}
    named = {"plural": SIMULATIONS.plural, "singular": "simulation", "kind": SIMULATIONS.kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{SIMULATIONS.plural}.{SIMULATIONS.group}"},
        "spec": {"group": SIMULATIONS.group, "scope": "Namespaced", "names": named, "versions": [version]},
    }


def simulation(name: str, managed_by: str, *, run_for: str = "never", **spec: bool) -> Json:
    """One as its user writes it."""
    return {
        "apiVersion": SIMULATIONS.api_version,
        "kind": SIMULATIONS.kind,
        "metadata": {"name": name, "annotations": {RUN_FOR_KEY: run_for}},
        "spec": {"managedBy": managed_by, "steps": 3, **spec},
    }


@asynccontextmanager
async def played(plane: ControlPlane) -> AsyncIterator[None]:
    """A player on this cluster."""
    async with plane.client(user_agent="simulation-player") as client, asyncio.TaskGroup() as scope:
        running = scope.create_task(_play(client), name="play Simulations")
        try:
            yield
        finally:
            running.cancel()


async def _play(client: Client) -> None:
    while True:
        found: list[Json] = []
        with suppress(StatusError):  # not served now
            found = await client.list(SIMULATIONS.path())
        for one in found:
            if not one["spec"].get("managedBy"):
                with suppress(StatusError):  # gone meanwhile, or changed
                    await _go_on(client, one)
        await asyncio.sleep(_LOOK_SECONDS)


async def _go_on(client: Client, one: Json) -> None:
    """The next step of one."""
    metadata = one["metadata"]
    phase = (one.get("status") or {}).get("phase", "")
    if phase in _ENDS.values():
        return
    pods, name = f"/api/v1/namespaces/{metadata['namespace']}/pods", f"{metadata['name']}-main"
    pod = await read_or_none(client, f"{pods}/{name}")
    if one["spec"].get("paused"):
        following = "Paused"
        if pod is not None:
            await client.delete(f"{pods}/{name}")
    else:
        seen = pod["status"].get("phase", "Pending") if pod is not None else "Pending"
        following = _ENDS.get(seen, seen)
        if pod is None:
            await client.create(pods, _pod(one, name))
    if following != phase:
        path = SIMULATIONS.path(metadata["namespace"], metadata["name"], "status")
        await client.merge(path, {"status": {"phase": following}})


def _pod(one: Json, name: str) -> Json:
    metadata = one["metadata"]
    owner = {"apiVersion": SIMULATIONS.api_version, "kind": SIMULATIONS.kind, "name": metadata["name"]}
    return {
        "metadata": {
            "name": name,
            "labels": {LABEL: metadata["name"]},
            "annotations": {RUN_FOR_KEY: metadata["annotations"][RUN_FOR_KEY]},
            "ownerReferences": [{**owner, "uid": metadata["uid"], "controller": True}],
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any", "command": ["none"]}]},
    }
