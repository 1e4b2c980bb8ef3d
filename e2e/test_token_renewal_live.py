"""A worker's token is renewed on real API servers, while a real manager works with it.

No API server makes a token for less than ten minutes, so the one who renews lives eight minutes ahead. It knows workers
by a registry of its own, which stands by; the manager is a process as always, and takes the new token from the Secret.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import yaml

from e2e import shipped
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, is_complete, job, uid, until
from e2e.manager import ManagerProcess
from mirror.kinds.base import Kind
from mirror.kinds.registry import BUILT_IN
from mirror.kube.client import Client
from mirror.kube.connect import connect_management, connect_worker
from mirror.kube.kubeconfig import check_kubeconfig
from mirror.kube.objects import Meta, Object
from mirror.runtime.clock import SystemClock
from mirror.runtime.environment import Environment
from mirror.runtime.informer import Change
from mirror.settings.schema import Limits
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.workers.known_workers import Workers
from mirror.workers.registry import Registry
from mirror.workers.registry_parts import RegistryHooks, RegistrySettings
from mirror.workers.renewing import Renewer
from mirror.workers.worker import Worker

ALLOW = {"loopback": True}


class Ahead(SystemClock):
    """Eight minutes from now: a token of ten is due by then."""

    def now(self) -> datetime:
        return super().now() + timedelta(minutes=8)


class NoSources:
    """``registry.Users`` of somebody who mirrors nothing."""

    async def wait_until_sources_known(self) -> None: ...

    def is_source(self, kind: Kind, found: Object) -> bool:
        return False

    def source_of(self, worker: Worker, kind: Kind, found: Object) -> Object | None:
        return None

    def has_source(self, worker: Worker, kind: Kind, found: Meta) -> bool:
        return False

    def on_mirror_change(
        self, worker: Worker, kind: Kind, old: Object | None, new: Object | None, change: Change
    ) -> None: ...

    def on_worker_transition(self, worker: Worker) -> None: ...

    def on_pods_change(self, source_uid: str) -> None: ...

    def has_sources_on(self, worker: str) -> bool:
        return False

    def on_worker_forgotten(self, worker: str) -> None: ...


@asynccontextmanager
async def renewer_of(manager: ManagerProcess, tell: Callable[[Object, str, str], None]) -> AsyncIterator[Renewer]:
    """Who renews the tokens of that manager's workers, by its rights."""
    metrics = Metrics()
    environment = Environment(Ahead(), get_log("renewer"), metrics)
    account = yaml.safe_load(manager.config.read_text())["kubeconfig"]
    client = await connect_management(account, limits=Limits(), observer=metrics)

    async def connect(name: str, kubeconfig: bytes) -> Client:
        checked = check_kubeconfig(kubeconfig, ALLOW)
        return await connect_worker(name, checked, allow=ALLOW, limits=Limits(), observer=metrics)

    around = RegistrySettings(manager.namespace, manager.origin, "", BUILT_IN)
    nobody = NoSources()
    registry = Registry(
        client,
        around,
        Workers(BUILT_IN),
        hooks=RegistryHooks(nobody, nobody.wait_until_sources_known, lambda *_: None),
        connector=connect,
        environment=environment,
    )
    try:
        async with asyncio.TaskGroup() as scope:
            running = scope.create_task(registry.run(), name="registry")
            async with asyncio.timeout(120):
                await registry.wait_until_secrets_synced()
                await registry.wait_until_settled()
            yield Renewer(
                client,
                registry,
                is_enabled=True,
                is_leading=lambda: True,
                warn=tell,
                environment=environment,
            )
            running.cancel()
    finally:
        await client.close()


async def test_a_renewed_token_changes_hands_under_a_running_job(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """The Secret has the new token and all else that it had; the worker was never lost; the Job ran once.

    It takes the shipped rights for it, and uses each of them.
    """
    async with ManagerProcess.start(management, {}) as manager:
        await add(manager, management, east)
        await scene.create(job("long", manager.managed_by, run_for="never"))
        await scene.source_until("long", lambda found: bool(found and (found.get("status") or {}).get("active")))
        mirror = await scene.mirror("east", "long")
        before, told = await secret_of(manager), list[str]()
        await until(lambda: whole_seconds_since_made(token_of(before)), lambda seen: seen >= 1)

        async with renewer_of(manager, lambda _, reason, message: told.append(f"{reason}: {message}")) as renewer:
            await renewer.look()
        after = await secret_of(manager)

        assert told == []
        assert token_of(after) != token_of(before)
        assert kubeconfig_of(after).replace(token_of(after), "") == kubeconfig_of(before).replace(token_of(before), "")
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        await until(lambda: expiry(manager), lambda seen: seen >= claims(token_of(after))["exp"])
        await scene.end_pods("east", "long")
        ended = await scene.source_until("long", is_complete)
        assert "Lost" not in "".join(line for line in manager.log_lines() if "worker connection" in line)
        assert mirror is not None
        assert uid(await scene.mirror("east", "long") or {}) == uid(mirror)
        assert ended["status"].get("failed", 0) == 0
        for plane, file in ((management, "management-tokens"), (east, "worker-tokens")):
            given = set(shipped.rights(shipped.read(file, namespace=manager.namespace)))
            assert given
            assert shipped.spare(given, await plane.audit_entries(), shipped.user_of(manager.namespace)) == set()


async def add(manager: ManagerProcess, management: ControlPlane, east: ControlPlane) -> None:
    """Register the worker with a token of ten minutes, as an operator does."""
    import sys
    from pathlib import Path

    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("mirror"),
        *("worker", "add", "east", "--context", "context", "--allow", "loopback", "--token-duration", "10m"),
        *("--kubeconfig", str(east.kubeconfig), "--management-kubeconfig", str(management.kubeconfig)),
        *("--namespace", manager.namespace, "--no-check"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, output.decode()


async def secret_of(manager: ManagerProcess) -> Json:
    return await manager.client.get(f"/api/v1/namespaces/{manager.namespace}/secrets/east")


def kubeconfig_of(secret: Json) -> str:
    return base64.b64decode(secret["data"]["kubeconfig"]).decode()


def token_of(secret: Json) -> str:
    return kubeconfig_of(secret).split("token: ")[1].strip()


def claims(token: str) -> Json:
    part = token.split(".")[1]
    found: Json = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


async def whole_seconds_since_made(token: str) -> int:
    """A token's times are whole seconds: two that are made in the same one end together, and neither lasts longer."""
    return int(SystemClock().now().timestamp()) - int(claims(token)["iat"])


async def expiry(manager: ManagerProcess) -> float:
    """When the manager thinks that its token ends."""
    return (await manager.metrics()).value("jobmirror_worker_token_expiry_timestamp_seconds", worker="east")
