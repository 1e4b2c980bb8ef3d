"""Takes each shipped right away in turn, and says who misses it: ``python -m e2e.without_rights [FILE ...]``.

FILE is a name in ``config/rbac`` without its ending; default: all, a quarter of an hour. A life that needs every
right of the file (``shipped_life``) is lived once with all of them, in which nothing may be refused, and then once for
each without it, until an API server's audit log shows a request that was refused for want of this right. A right that
nobody misses ends it with 1. Run by hand: that each right is used is tested (``test_shipped_rights``), and what is used
cannot be taken away unnoticed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import aiohttp

from e2e import aged, shipped
from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import ProgramEnded
from e2e.declared_life import (
    cluster_profiles,
    define_profiles,
    place_of,
    profiles_life,
    secret_sources,
    secrets_life,
)
from e2e.drained_life import SEEDING, drained_life, two_workers
from e2e.job_controller import GANG_GATES, LEASE, Flags, WithKubeconfig
from e2e.jobs import Scene
from e2e.manager import Identity, ManagerProcess
from e2e.queued_life import READING, queued_life
from e2e.shipped import Permission
from e2e.shipped_life import (
    COPYING,
    SERVING,
    SHARDING,
    USER,
    WATCHING,
    chosen_settings,
    copying_life,
    held_life,
    life,
    life_of_gangs,
    life_of_jobs,
    old_clusters,
    pods_life,
    renewing_life,
    serving_life,
    sharded_life,
    strict_cluster,
)

_LIFE_SECONDS = 90.0
_LOOK_SECONDS = 1.0
_FAILURES = (AssertionError, TimeoutError, ProgramEnded, StatusError, aiohttp.ClientError)
_MANAGEMENT, _WORKER, _HERE = "management", "east", "here"
_PLACEMENT: Json = {
    "priorityClasses": True,
    "scores": [{"name": name} for name in ("quota", "clusterQueue", "allocatable")],
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One life: whose, on which clusters, and which permission is missing."""

    clusters: Sequence[Cluster]
    where: str = ""
    missing: Permission | None = None
    identity: Identity = field(default_factory=Identity.new)
    namespace: str = field(default_factory=lambda: f"team-{uuid.uuid4().hex[:6]}")
    """Of the Jobs."""

    def left(self, plane: ControlPlane, granted: list[Json]) -> list[Json]:
        """What is granted on a cluster, without what is lacking there."""
        if self.missing is None or plane.name != self.where:
            return granted
        return shipped.without(granted, self.missing)

    def who_misses(self, entries: Sequence[AuditEntry]) -> str:
        """Who was refused what for want of the right, first; empty if nobody was."""
        people = {
            shipped.user_of(self.identity.namespace): "our account",
            f"system:serviceaccount:{self.namespace}:{USER}": "a user",
        }
        for entry in entries:
            if entry.user in people and self._is_missed_by(entry):
                return f"{people[entry.user]} at {entry.verb} {entry.uri.partition('?')[0]}"
        return ""

    def as_shipped(self, text: object) -> str:
        """With the namespaces that the files name in place of those of this life."""
        there = str(text).replace(self.identity.namespace, shipped.SHIPPED_NAMESPACE)
        return there.replace(self.namespace, shipped.CHOSEN)

    def _is_missed_by(self, entry: AuditEntry) -> bool:
        """Some rights only admission asks for, about pods; what it refuses is no lack of a right to the audit log."""
        if self.missing is None:
            return entry.is_forbidden
        if self.missing.resource.endswith("/finalizers"):
            return (entry.code, entry.resource, entry.namespace) == (403, "pods", self.namespace)
        return entry.is_forbidden and self.missing.allows(entry)


@dataclass(frozen=True, slots=True)
class Way:
    """Files whose every right is used in one life, and the clusters where they are given."""

    files: Mapping[str, str]
    clusters: Callable[[], AbstractAsyncContextManager[Sequence[Cluster]]]
    live: Callable[[Trial], Awaitable[None]]
    has_chosen: bool = False
    """Whether the namespace of the Jobs is a chosen one."""
    declares: str = ""
    """The namespace of the files' example that stands for the one with declarations (``declared_life``)."""

    def trials(self, file: str, clusters: Sequence[Cluster]) -> Iterator[Trial]:
        """One for each right of a file."""
        for number in itertools.count():
            trial = Trial(clusters, self.files[file])
            chosen = [trial.namespace] if self.has_chosen else []
            others = {self.declares: [place_of(trial.namespace)]} if self.declares else {}
            objects = shipped.read(file, namespace=trial.identity.namespace, chosen=chosen, others=others)
            rights = list(shipped.rights(objects))
            if number == len(rights):
                return
            yield replace(trial, missing=rights[number])


class Lacking(ManagerProcess):
    """A manager whose accounts lack a right, and whose tokens for workers are due for renewal."""

    trial: Trial

    async def _account(self, plane: ControlPlane, granted: list[Json]) -> Path:
        path = await super()._account(plane, self.trial.left(plane, granted))
        if plane is not self.management:
            aged.age(path, plane)
        return path


@asynccontextmanager
async def _scene(trial: Trial, *, is_made_there: bool) -> AsyncIterator[Scene]:
    """The Jobs of a life, whose namespace may be there on the workers, or must not."""
    workers = {one.name: one for one in trial.clusters[1:] or trial.clusters}
    scene = Scene(trial.clusters[0], workers, trial.namespace)
    try:
        await scene.make_namespace()
        if is_made_there:
            for worker in workers:
                await scene.make_namespace(worker)
        yield scene
    finally:
        await scene.remove_namespaces()
        await scene.close()


def _managed(
    settings: Callable[[str], Json], *lives: Callable[[ManagerProcess, Scene], Awaitable[None]], renews: bool = False
) -> Callable[[Trial], Awaitable[None]]:
    """What a manager lives through, with these settings for the namespace of the Jobs.

    Renewal is off elsewhere: the right to write all Secrets would cover the right to write one.
    """

    async def live(trial: Trial) -> None:
        management, *workers = trial.clusters
        wanted = settings(trial.namespace)
        wanted["workers"] = {**wanted.get("workers", {}), "renewTokens": renews}
        is_made_there = not wanted["workers"].get("createNamespaces")
        if "webhook" in wanted:
            await management.kubectl("apply", "--filename", str(shipped.RBAC.parent / "webhook.yaml"))
        manager = Lacking(management, identity=trial.identity, settings=wanted)
        manager.trial = trial
        manager.expect_complaints(".")
        async with _scene(trial, is_made_there=is_made_there) as scene:
            try:
                await manager.prepare()
                for worker in workers:
                    await manager.register(worker.name, worker)
                manager.launch()
                await manager.wait_until_ready()
                for part in lives:
                    await part(manager, scene)
            finally:
                await manager.close()

    return live


def _declared(
    settings: Callable[[str], Json], living: Callable[[ManagerProcess, Scene], Awaitable[None]]
) -> Callable[[Trial], Awaitable[None]]:
    """What a manager lives through whose workers others declare; nothing is given for all namespaces."""

    async def live(trial: Trial) -> None:
        management, place = trial.clusters[0], place_of(trial.namespace)
        wanted = {"namespaces": [trial.namespace], **settings(place)}
        wanted["workers"] = {**wanted["workers"], "renewTokens": False}
        manager = Lacking(management, identity=trial.identity, settings=wanted)
        manager.trial = trial
        manager.expect_complaints(".")
        async with _scene(trial, is_made_there=True) as scene:
            await scene.client.create("/api/v1/namespaces", {"metadata": {"name": place}})
            await define_profiles(scene.client)
            try:
                await manager.prepare()
                manager.launch()
                await manager.wait_until_ready()
                await living(manager, scene)
            finally:
                await manager.close()
                await scene.client.delete(f"/api/v1/namespaces/{place}")

    return live


@asynccontextmanager
async def _alone() -> AsyncIterator[tuple[Cluster]]:
    async with strict_cluster() as cluster:
        yield (cluster,)


@asynccontextmanager
async def _alone_with_gangs() -> AsyncIterator[tuple[Cluster]]:
    async with strict_cluster(has_gangs=True) as cluster:
        yield (cluster,)


async def _jobs_run(trial: Trial) -> None:
    """What our Job controller lives through, whose Lease nobody has had before."""
    await _robot_lives(trial, life_of_jobs, ["job-controller"], Flags())


async def _gangs_run(trial: Trial) -> None:
    """The same with gang scheduling."""
    await _robot_lives(trial, life_of_gangs, ["job-controller", "job-controller-gang"], Flags(gates=GANG_GATES))


async def _robot_lives(
    trial: Trial, lives: Callable[[Scene], Awaitable[None]], files: Sequence[str], flags: Flags
) -> None:
    (cluster,) = trial.clusters
    namespace = trial.identity.namespace
    granted = trial.left(cluster, shipped.read(*files, namespace=namespace))
    robot = WithKubeconfig(cluster, await shipped.account(cluster, namespace, granted), flags)
    async with _scene(trial, is_made_there=False) as scene:
        try:
            robot.launch()
            await robot.wait_until_ready()
            await lives(scene)
        finally:
            await robot.close()
            await shipped.withdraw(cluster, granted)
            async with Client(cluster.kubeconfig) as client:
                await client.delete(f"/api/v1/namespaces/{namespace}")
                with suppress(StatusError):
                    await client.delete(LEASE)


WAYS = (
    Way(
        {
            "management": _MANAGEMENT,
            "management-create-namespaces": _MANAGEMENT,
            "management-priority-classes": _MANAGEMENT,
            "management-namespace-policies": _MANAGEMENT,
            "worker": _WORKER,
            "worker-quotas": _WORKER,
            "worker-cluster-queues": _WORKER,
            "worker-nodes": _WORKER,
            "worker-pod-requests": _WORKER,
        },
        old_clusters,
        _managed(
            lambda _: {
                "workers": {"createNamespaces": True, "onLossOfNamespaces": True},
                "placement": dict(_PLACEMENT),
            },
            life,
        ),
    ),
    Way(
        {"management-namespaced": _MANAGEMENT, "webhook-namespaced": _MANAGEMENT, "worker-namespaced": _WORKER},
        old_clusters,
        _managed(chosen_settings, held_life, life),
        has_chosen=True,
    ),
    Way(
        {"https": _MANAGEMENT, "webhook": _MANAGEMENT, "access": _MANAGEMENT, "worker-logs": _WORKER},
        old_clusters,
        _managed(lambda _: dict(SERVING), serving_life),
    ),
    Way(
        {"management-dependencies": _MANAGEMENT, "worker-dependencies": _WORKER},
        old_clusters,
        _managed(lambda _: dict(COPYING), copying_life),
    ),
    Way(
        {"management-tokens": _MANAGEMENT, "worker-tokens": _WORKER},
        old_clusters,
        _managed(lambda _: {}, renewing_life, renews=True),
    ),
    Way({"management-sharding": _MANAGEMENT}, old_clusters, _managed(lambda _: dict(SHARDING), sharded_life)),
    Way({"worker-pods": _WORKER}, old_clusters, _managed(lambda _: dict(WATCHING), pods_life)),
    Way({"worker-progress": _WORKER}, two_workers, _managed(lambda _: dict(SEEDING), drained_life)),
    Way({"worker-workloads": _WORKER}, old_clusters, _managed(lambda _: dict(READING), queued_life)),
    Way(
        {"management-secret-sources": _MANAGEMENT},
        old_clusters,
        _declared(secret_sources, secrets_life),
        has_chosen=True,
        declares="clusters",
    ),
    Way(
        {"management-cluster-profiles": _MANAGEMENT},
        old_clusters,
        _declared(cluster_profiles, profiles_life),
        has_chosen=True,
        declares="fleet",
    ),
    Way({"job-controller": _HERE}, _alone, _jobs_run),
    Way({"job-controller-gang": _HERE}, _alone_with_gangs, _gangs_run),
)
"""Every file of ``config/rbac`` is in one of them."""


async def lived(way: Way, trial: Trial) -> tuple[str, str]:
    """Who missed the right first, and how the life ended; it is cut off there. Without a lack: what was refused."""
    looked_at = [plane for plane in trial.clusters if trial.where in ("", plane.name)]
    before = {plane.name: len(await plane.audit_entries()) for plane in looked_at}

    async def missed() -> str:
        found = [trial.who_misses((await plane.audit_entries())[before[plane.name] :]) for plane in looked_at]
        return next(filter(None, found), "")

    async with asyncio.TaskGroup() as scope:
        living = scope.create_task(_ended(way, trial), name="live")
        while not living.done() and not await missed():
            await asyncio.wait([living], timeout=_LOOK_SECONDS)
        living.cancel()
        await asyncio.wait([living])
    return await missed(), "was cut off" if living.cancelled() else living.result()


async def _ended(way: Way, trial: Trial) -> str:
    try:
        async with asyncio.timeout(_LIFE_SECONDS):
            await way.live(trial)
    except _FAILURES as error:
        return f"ended with {type(error).__name__}: {error}"
    return "went on"


def _brief(text: str) -> str:
    return text.partition("\n")[0][:100]


async def try_all(way: Way, files: Sequence[str]) -> int:
    """Live without each right of these files, and print what happened; gives the number of complaints."""
    complaints = 0
    async with way.clusters() as clusters:
        refused, how = await lived(way, Trial(clusters))
        print(f"{', '.join(way.files)}: with every right: refused {refused or 'nothing'}; life {how}", flush=True)
        if refused or how != "went on":
            return 1
        for file in files:
            began, missed, rights = time.monotonic(), 0, 0
            for trial in way.trials(file, clusters):
                who, how = await lived(way, trial)
                said = f"without {trial.missing}: missed by {who or 'nobody'}; life {_brief(how)}"
                print(f"{file}: {trial.as_shipped(said)}", flush=True)
                rights, missed = rights + 1, missed + bool(who)
            print(f"{file}: {missed} of {rights} rights are missed ({time.monotonic() - began:.0f} s)", flush=True)
            complaints += rights - missed
    return complaints


async def main(arguments: Sequence[str]) -> int:
    """Go through the files; the exit code says whether each right was missed."""
    known = {file: way for way in WAYS for file in way.files}
    parser = argparse.ArgumentParser(description="Take each shipped right away in turn, and say who misses it.")
    parser.add_argument("files", nargs="*", metavar="FILE", help=", ".join(known))
    chosen = parser.parse_args(arguments).files or list(known)
    if unknown := set(chosen) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    complaints = 0
    for way in WAYS:
        if files := [file for file in chosen if known[file] is way]:
            complaints += await try_all(way, files)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
