"""``python ray_player.py KUBECONFIG``: plays KubeRay on one cluster, since its operator cannot run without a live Ray.

A controller like any other: it watches, and does one step of an object at a time (``played_ray`` says which). Run by
``operators`` in the operator's place, until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import aiohttp

from e2e.controlplane.client import JSON_PATCH, Client, Json, StatusError
from e2e.operator_table import RAYCLUSTERS, RAYJOBS, RAYSERVICES
from e2e.played_ray import is_mine, step_of
from mirror.kube.resources import JOBS, PODS, Resource

_OWN = {one.kind: one for one in (RAYJOBS, RAYCLUSTERS, RAYSERVICES)}
_WATCHED = {**_OWN, JOBS.kind: JOBS, PODS.kind: PODS}
_RETRY_SECONDS = 0.3
_FAILURES = (aiohttp.ClientError, TimeoutError, StatusError)
Key = tuple[str, str, str]
"""Kind, namespace and name."""


class Player:
    """What it has seen of a cluster, and what it has to look at."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen: dict[Key, Json] = {}
        self._children: dict[str, dict[Key, Json]] = {}
        """By uid of the owner."""
        self._due: asyncio.Queue[Key] = asyncio.Queue()
        self._waiting: set[Key] = set()

    async def run(self) -> None:
        """Play until cancelled."""
        async with asyncio.TaskGroup() as scope:
            for resource in _WATCHED.values():
                scope.create_task(self._watch(resource), name=f"watch {resource.plural}")
            scope.create_task(self._play(), name="play")

    async def _watch(self, resource: Resource) -> None:
        version = ""
        while True:
            try:
                if not version:
                    listed = await self._client.get(resource.path())
                    version = listed["metadata"]["resourceVersion"]
                    self._replace(resource.kind, [{**one, "kind": resource.kind} for one in listed["items"]])
                async for event in self._client.watch(resource.path(), version):
                    found = {**event["object"], "kind": resource.kind, "apiVersion": resource.api_version}
                    version = found["metadata"]["resourceVersion"]
                    self._note(found, is_gone=event["type"] == "DELETED")
            except _FAILURES as error:
                # Killed, or its definition is gone: from the same version on, unless that is forgotten.
                if isinstance(error, StatusError):
                    version = ""
                await asyncio.sleep(_RETRY_SECONDS)

    def _replace(self, kind: str, found: list[Json]) -> None:
        listed = {_key(one) for one in found}
        for key, one in list(self._seen.items()):
            if key[0] == kind and key not in listed:
                self._note(one, is_gone=True)
        for one in found:
            self._note({"apiVersion": _WATCHED[kind].api_version, **one}, is_gone=False)

    def _note(self, found: Json, *, is_gone: bool) -> None:
        key = _key(found)
        for owner in _owners(found):
            children = self._children.setdefault(owner["uid"], {})
            children.pop(key, None)
            if not is_gone:
                children[key] = found
            self._enqueue((owner["kind"], key[1], owner["name"]))
        if is_gone:
            self._seen.pop(key, None)
            self._children.pop(found["metadata"]["uid"], None)
        elif key[0] in _OWN:
            self._seen[key] = found
            self._enqueue(key)
        elif any(True for _ in _owners(found)):
            self._seen[key] = found

    def _enqueue(self, key: Key) -> None:
        if key[0] in _OWN and key not in self._waiting:
            self._waiting.add(key)
            self._due.put_nowait(key)

    async def _play(self) -> None:
        while True:
            key = await self._due.get()
            self._waiting.discard(key)
            found = self._seen.get(key)
            if found is None or not is_mine(found):
                continue
            try:
                await self._do(found)
            except _FAILURES as error:
                if not isinstance(error, StatusError) or error.status not in (404, 409, 422):
                    print(key, error, flush=True)
                asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._enqueue, key)

    async def _do(self, found: Json) -> None:
        resource, metadata = _OWN[found["kind"]], found["metadata"]
        children = list(self._children.get(metadata["uid"], {}).values())
        step, path = step_of(found, children), resource.path(metadata["namespace"], metadata["name"])
        for one in step.delete:
            if not one["metadata"].get("deletionTimestamp"):
                await self._client.delete(_path(one))
        for one in step.change:
            version = {"resourceVersion": one["metadata"]["resourceVersion"]}
            await self._client.merge(_path(one), {"metadata": version, "spec": one["spec"]})
        for one in step.create:
            try:
                await self._client.create(_path(one).rpartition("/")[0], one)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
        version = metadata["resourceVersion"]
        if step.finalizers is not None and list(step.finalizers) != metadata.get("finalizers", []):
            done = await self._patch(path, version, "/metadata/finalizers", list(step.finalizers))
            version = done["metadata"]["resourceVersion"]
        if step.status is not None and step.status != found.get("status", {}):
            await self._patch(f"{path}/status", version, "/status", step.status)

    async def _patch(self, path: str, version: str, field: str, value: object) -> Json:
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        return await self._client.call("PATCH", path, [guard, {"op": "add", "path": field, "value": value}], JSON_PATCH)


def _owners(found: Json) -> Iterator[Json]:
    return (
        one for one in found["metadata"].get("ownerReferences", ()) if one.get("controller") and one["kind"] in _OWN
    )


def _key(found: Json) -> Key:
    return found["kind"], found["metadata"]["namespace"], found["metadata"]["name"]


def _path(found: Json) -> str:
    metadata = found["metadata"]
    return _WATCHED[found["kind"]].path(metadata["namespace"], metadata["name"])


async def _main(kubeconfig: Path) -> None:
    async with Client(kubeconfig, user_agent="e2e-kuberay") as client:
        await Player(client).run()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
