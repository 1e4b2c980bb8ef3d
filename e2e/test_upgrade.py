"""Upgrading under load: an earlier state of this tree with its manifests, then this one with its own (README: deploy).

The clusters have no nodes for the manager's Deployment, so the test plays its part: a process per pod, started and
stopped in the order of a rolling update, each with the configuration and the account of its manifests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.earlier import NoHistory, check_out, command_of, find_earlier
from e2e.jobs import Scene, job, uid
from e2e.manager import Identity, ManagerProcess
from e2e.manifests import NAMESPACE, TOP, kustomized, settings_text
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, until_over
from mirror.model import names

JOBS = 200
OVERLAY = "high-availability"
OURS = Identity(NAMESPACE, names.DEFAULT_MANAGED_BY, "")


@pytest.mark.usefixtures("binaries")
async def test_an_upgrade_under_load_loses_nothing_and_restarts_no_job(
    management: ControlPlane,
    east: ControlPlane,
    west: ControlPlane,
    scene: Scene,
    tmp_path: Path,
    required_program: Callable[..., Path],
    do_without: Callable[..., NoReturn],
) -> None:
    """200 Jobs around a rolling update: each ends, has one mirror in its life, and one pod."""
    required_program("git")
    try:
        before = check_out(find_earlier(), tmp_path / "before")
    except NoHistory as reason:
        do_without(f"there is nothing to upgrade from: {reason}", required_by="MIRROR_REQUIRE_HISTORY")
    workers = {"east": east, "west": west}
    wave = [f"wave-{number}" for number in range(JOBS)]
    fates = [job(name, OURS.managed_by, run_for=f"{2 + number % 9}s") for number, name in enumerate(wave)]
    async with (
        installed(before, management, workers) as account,
        Recorder.watching(workers.values(), scene.namespace) as seen,
    ):
        old = await process(before, management, account, command=command_of(before))
        new: ManagerProcess | None = None
        try:
            for name, worker in workers.items():
                path = await worker.service_account_kubeconfig(NAMESPACE, "jobmirror")
                await old.register(name, kubeconfig=path.read_bytes())
            old.launch()
            await old.wait_until_ready()
            await scene.create(*fates[: JOBS // 2])
            # As a Deployment is rolled: rights first, then the new pod, then the end of the old one.
            await apply(TOP, management, workers)
            new = await process(TOP, management, account)
            new.launch()
            await new.wait_until_ready(is_leading=False)
            _, stopped = await asyncio.gather(scene.create(*fates[JOBS // 2 :]), end(old))
            await new.wait_until_ready()
            ended = await until_over(scene, wave, seconds=300)
            assert stopped == 0
            await assert_ran_once(scene, ended, seen)
            await assert_one_pod_each(scene, ended)
            await new.stop()
        finally:
            for one in (old, new):
                if one is not None:
                    await one.close(removes_namespace=False)


async def end(manager: ManagerProcess) -> int:
    await manager.stop()
    return 0


async def assert_one_pod_each(scene: Scene, ended: dict[str, Json]) -> None:
    """The mirrors that the sources remember are there, and each had one pod, which succeeded."""
    pods: dict[str, int] = {}
    for worker in scene.workers:
        path = f"/api/v1/namespaces/{scene.namespace_on(worker)}/pods"
        for pod in await scene.client_of(worker).list(path):
            owner = pod["metadata"]["ownerReferences"][0]["uid"]
            pods[owner] = pods.get(owner, 0) + 1
    remembered = {name: source["metadata"]["annotations"][names.MIRROR_UID] for name, source in ended.items()}
    assert {name: pods.get(mirror) for name, mirror in remembered.items()} == dict.fromkeys(ended, 1)
    assert {source["status"].get("failed", 0) for source in ended.values()} == {0}
    assert len({uid(source) for source in ended.values()}) == JOBS


async def process(
    top: Path, management: ControlPlane, account: Path, *, command: list[str] | None = None
) -> ManagerProcess:
    """What runs in the pod of a tree's manifests, with what differs outside a cluster."""
    settings = yaml.safe_load(settings_text(kustomized(OVERLAY, top=top))) if has_manifests(top) else {}
    outside: Json = {"kubeconfig": str(account), "log": {"format": "text"}, "listen": "127.0.0.1:0"}
    manager = ManagerProcess(management, identity=OURS, settings={**settings, **outside})
    if command is not None:
        manager.run_as(command)
    await manager.prepare()
    return manager


def has_manifests(top: Path) -> bool:
    """Before there were any, ``config/rbac`` was applied by hand."""
    return (top / "deploy/kustomize").exists()


async def apply(top: Path, management: ControlPlane, workers: dict[str, ControlPlane]) -> list[Json]:
    """Server-side apply what a tree installs, on all clusters."""
    shipped = top / "config/rbac"
    objects = kustomized(OVERLAY, top=top) if has_manifests(top) else read(shipped / "management.yaml")
    text = yaml.safe_dump_all(objects)
    arguments = ("apply", "--server-side", "--force-conflicts", "--filename")
    await management.kubectl(*arguments, "-", stdin=text)
    for worker in workers.values():
        await worker.kubectl(*arguments, str(shipped / "worker.yaml"))
    return objects


@asynccontextmanager
async def installed(top: Path, management: ControlPlane, workers: dict[str, ControlPlane]) -> AsyncIterator[Path]:
    """A tree's manifests on all clusters, and the kubeconfig of the account in them; removed on leaving."""
    try:
        await apply(top, management, workers)
        yield await management.service_account_kubeconfig(NAMESPACE, "jobmirror")
    finally:
        for objects, planes in (
            (kustomized(OVERLAY), [management]),
            (read(TOP / "config/rbac/worker.yaml"), workers.values()),
        ):
            await remove(objects, planes)


async def remove(objects: list[Json], planes: Iterable[ControlPlane]) -> None:
    for plane in planes:
        await plane.kubectl(
            *("delete", "--ignore-not-found", "--wait=false", "--filename", "-"), stdin=yaml.safe_dump_all(objects)
        )


def read(file: Path) -> list[Json]:
    return list(yaml.safe_load_all(file.read_text()))
