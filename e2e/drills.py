"""Drills on real control planes: their definition, rights for managers, and what runs them on the workers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import defined
from e2e.jobs import until
from tests.doubles.drills import DRILLS, definition, run_drills

_DEFINITION: Json = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition()}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_NAME = "e2e-drills"
_SOME_ACCOUNT = {"user": "system:serviceaccount:default:default", "groups": ["system:serviceaccounts"]}
_LOOK_SECONDS = 0.2
_CALL_SECONDS = 10.0
_AWAY = (StatusError, aiohttp.ClientError, TimeoutError)
MANAGER = [sys.executable, str(Path(__file__).with_name("drill_manager.py"))]
"""The command that takes the place of ``mirror``."""


class Api:
    """What ``run_drills`` needs of a cluster.

    A Drill that has gone meanwhile is none of its business, and an API server that is away or broken has none until the
    next look.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list(self, path: str) -> list[Json]:
        with suppress(*_AWAY):
            async with asyncio.timeout(_CALL_SECONDS):
                return await self._client.list(path)
        return []

    async def merge(self, path: str, body: Json) -> None:
        with suppress(*_AWAY):
            async with asyncio.timeout(_CALL_SECONDS):
                await self._client.merge(path, body)


@asynccontextmanager
async def served(
    management: ControlPlane, *workers: ControlPlane, every_seconds: float = _LOOK_SECONDS
) -> AsyncIterator[None]:
    """Drills are served on all of them, managers may handle them, and workers run a round of each at this interval."""
    clients = [plane.client() for plane in (management, *workers)]
    try:
        for client in clients:
            await _install(client)
        async with defined(clients, [_DEFINITION]), asyncio.TaskGroup() as scope:
            running = [
                scope.create_task(run_drills(Api(client), every_seconds=every_seconds), name="run drills")
                for client in clients[1:]
            ]
            try:
                yield
            finally:
                for task in running:
                    task.cancel()
    finally:
        for client in clients:
            for plural in ("clusterrolebindings", "clusterroles"):
                await client.delete(f"{_RBAC}/{plural}/{_NAME}")
            await client.close()


async def _install(client: Client) -> None:
    rules = [{"apiGroups": [DRILLS.group], "resources": [DRILLS.plural, f"{DRILLS.plural}/status"], "verbs": ["*"]}]
    await client.create(f"{_RBAC}/clusterroles", {"metadata": {"name": _NAME}, "rules": rules})
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
    await client.create(
        f"{_RBAC}/clusterrolebindings", {"metadata": {"name": _NAME}, "roleRef": role, "subjects": [group]}
    )
    asked = {"verb": "list", "group": DRILLS.group, "resource": DRILLS.plural}
    question = {"spec": {**_SOME_ACCOUNT, "resourceAttributes": asked}}
    await until(lambda: client.create(_REVIEWS, question), lambda found: found["status"]["allowed"])


def true_conditions(found: Json | None) -> dict[str, str]:
    """Type to message of the True conditions."""
    listed = ((found or {}).get("status") or {}).get("conditions") or ()
    return {one["type"]: one["message"] for one in listed if one["status"] == "True"}


def has(condition: str) -> Callable[[Json | None], bool]:
    """Whether a condition is True."""
    return lambda found: condition in true_conditions(found)
