"""Two managers of one installation: one works, the other takes over, and neither writes out of its turn (D20).

And two installations, of which one takes the other's place: somebody has moved it to another namespace (D2).
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from e2e import access, shipped
from e2e.commands import Said, said_by
from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.intercept import Interceptor
from e2e.jobs import Scene, annotation, is_complete, is_over, job, runs, until
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.shipped import user_of
from e2e.waves import assert_ran_once, until_over
from mirror.model import names as wire

LEASE_SECONDS = 10
ELECTION = {"leaseDuration": f"{LEASE_SECONDS}s", "renewDeadline": "8s", "retryPeriod": "500ms"}
READS = ("get", "list", "watch")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
MIRROR = Path(sys.executable).with_name("mirror")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@asynccontextmanager
async def pair(
    management: ControlPlane, workers: dict[str, ControlPlane]
) -> AsyncIterator[tuple[ManagerProcess, ManagerProcess]]:
    """A leader and one that stands by; each is a user of its own, so that the audit log tells them apart."""
    users = {name: management.kubeconfig_for(name, groups=["system:masters"]) for name in ("one", "two")}
    settings: dict[str, Json] = {
        name: {"kubeconfig": str(path), "leaderElection": ELECTION} for name, path in users.items()
    }
    async with (
        ManagerProcess.start(management, workers, settings=settings["one"]) as first,
        ManagerProcess.start(management, identity=first.identity, settings=settings["two"]) as second,
    ):
        yield first, second


async def test_one_leads_and_the_other_takes_over_when_it_dies(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Standing by means no writes; after SIGKILL the other works once the lease's time is over; no Job runs twice."""
    workers = {"east": east, "west": west}
    names = [f"wave-{number}" for number in range(30)]
    async with (
        pair(management, workers) as (first, second),
        Recorder.watching(workers.values(), scene.namespace) as seen,
    ):
        before = len(await management.audit_entries())
        await scene.create(*(job(name, first.managed_by, run_for="2s") for name in names[:15]))
        await scene.event("wave-0", "Mirrored")
        assert not await writes(management, "two", since=before)

        await first.kill()
        died = time.monotonic()
        await scene.create(*(job(name, first.managed_by) for name in names[15:]))
        await second.wait_until_ready()
        took = time.monotonic() - died

        print(f"SIGKILL to the other leading: {took:.2f} s")
        assert took < 2 * LEASE_SECONDS
        await assert_ran_once(scene, await until_over(scene, names), seen)


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """After SIGTERM the lease is given back; the other works at once, not after the lease's time."""
    async with pair(management, {"east": east}) as (first, second):
        await first.stop()
        stopped = time.monotonic()
        await second.wait_until_ready()
        took = time.monotonic() - stopped
        await scene.create(job("after", first.managed_by))

        print(f"SIGTERM to the other leading: {took:.2f} s")
        assert took < LEASE_SECONDS
        assert is_complete((await until_over(scene, ["after"]))["after"])


async def test_a_leader_whose_lease_is_taken_stops_writing_and_ends(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Somebody else's name in the lease ends our right to write: the process ends, with a code that says so."""
    async with ManagerProcess.start(management, {"east": east}) as manager:
        manager.expect_complaints("lease")
        await scene.create(job("before", manager.managed_by))
        await until_over(scene, ["before"])
        lease = f"{LEASES.format(manager.namespace)}/{wire.LEASE}"
        held = await manager.client.get(lease)
        await manager.client.merge(lease, {"spec": {"holderIdentity": "thief"}})

        code = await manager.wait_until_ended()
        ended = datetime.now(UTC)
        await scene.create(job("after", manager.managed_by))
        await asyncio.sleep(0.5)  # nothing announces that nothing happens

        assert code == 1
        assert held["spec"]["holderIdentity"] != "thief"
        assert (await manager.client.get(lease))["spec"]["holderIdentity"] == "thief"
        # The manager that other tests share is at work in its own namespace meanwhile.
        left = [
            entry
            for entry in await management.audit_entries()
            if entry.received > ended and entry.namespace in (manager.namespace, scene.namespace)
        ]
        assert not [entry for entry in left if entry.user_agent.startswith("jobmirror/")]


async def test_a_leader_that_was_frozen_alone_writes_nothing_when_it_wakes(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """SIGSTOP past its lease in the middle of work, SIGCONT: no request that changes anything leaves it any more (D28).

    Nobody took the lease meanwhile; the audit log of the management cluster and a proxy before the worker tell. Writes
    wait for the rate limit when it is stopped, and their turn has come when it wakes.
    """
    names = [f"frozen-{number}" for number in range(30)]
    robot = await access.account(east, "frozen")
    settings: Json = {
        "kubeconfig": str(management.kubeconfig_for("frozen", groups=["system:masters"])),
        "leaderElection": ELECTION,
        "management": {"qps": 5, "burst": 5},
        "workers": {"qps": 5, "burst": 5},
    }
    async with (
        Interceptor.before(east) as before_east,
        ManagerProcess.start(management, settings=settings) as manager,
        Recorder.watching([east], scene.namespace) as seen,
    ):
        manager.expect_complaints("lease", "Lease")
        await manager.register("east", kubeconfig=before_east.kubeconfig(robot).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        await scene.create(*(job(name, manager.managed_by, run_for="1s") for name in names))
        await until(lambda: scene.mirrors(names[0]), bool)

        manager.send(signal.SIGSTOP)
        await scene.delete(names[-1])
        await scene.create(job("later", manager.managed_by))
        await asyncio.sleep(LEASE_SECONDS + 2)  # its Jobs end, and so does its lease
        woken = datetime.now(UTC)
        manager.send(signal.SIGCONT)

        assert await manager.wait_until_ended() == 1
        entries = await management.audit_entries()
        late = [entry for entry in entries if entry.user == "frozen" and entry.received > woken]
        assert not [entry.uri for entry in late if entry.verb not in READS]
        assert not [what for at, what in before_east.received if at > woken and not what.startswith("GET ")]

        manager.launch()
        await manager.wait_until_ready()
        await assert_ran_once(scene, await until_over(scene, [*names[:-1], "later"]), seen)


async def test_a_leader_that_was_frozen_and_overtaken_writes_nothing_when_it_wakes(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """The other has taken the lease and works; the one that wakes up ends, and disturbs nothing (D20, D28)."""
    names = [f"overtaken-{number}" for number in range(12)]
    async with (
        pair(management, {"east": east}) as (first, second),
        Recorder.watching([east], scene.namespace) as seen,
    ):
        first.expect_complaints("lease", "Lease")
        await scene.create(*(job(name, first.managed_by, run_for="5s") for name in names))
        # Nothing is to be on its way when it is frozen: that would arrive when it wakes. The ends come after.
        for name in names:
            await scene.event(name, "Mirrored")
            await scene.source_until(name, runs())

        first.send(signal.SIGSTOP)
        await second.wait_until_ready()
        await scene.create(job("later", first.managed_by))
        woken = datetime.now(UTC)
        first.send(signal.SIGCONT)

        assert await first.wait_until_ended() == 1
        late = [entry for entry in await management.audit_entries() if entry.user == "one" and entry.received > woken]
        assert not [entry.uri for entry in late if entry.verb not in READS]
        await assert_ran_once(scene, await until_over(scene, [*names, "later"]), seen)


async def test_an_installation_that_was_moved_takes_over_what_it_had_placed(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Until somebody says so, its Jobs are left alone and say why; from then on they are followed, and none runs twice.

    As docs/operating.md has it: by an operator with the permissions that are named there and no others.
    """
    async with (
        Recorder.watching([east], scene.namespace) as seen,
        ManagerProcess.start(management, {"east": east}) as old,
    ):
        names = ("runs", "ends")
        await scene.create(*(job(name, old.managed_by, run_for="never") for name in names))
        await scene.sources_until(names, runs())
        settings = {"managedBy": old.managed_by, "origin": old.origin}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as new:
            new.expect_complaints("two managers")
            for name in names:
                event = await scene.only_event(name, "OtherManager")
                assert event["type"] == "Warning"
                assert (
                    f"; if it has moved here: mirror take-over {old.namespace} --namespace {new.namespace}"
                    in (event["message"])
                )
            listed = await management.kubectl("get", "events", "-A", "--field-selector", "reason=OtherManager")
            assert all(f"job/{name}" in listed for name in names)
            await until(new.metrics, lambda found: found.value("jobmirror_jobs_of_other_managers") == len(names))

            operator = await operator_of(scene, old, new)
            refused = await take_over(old, new, operator)
            assert refused.code == 1
            assert f"the manager in namespace {old.namespace} runs: " in refused.errors
            await old.stop()

            await scene.end_pods("east", "ends")
            await scene.mirror_until("east", "ends", is_complete)
            await scene.create(job("later", old.managed_by))
            await until_over(scene, ["later"])
            assert not is_over(await scene.source("ends"))
            for plane in (management, east):
                made = [entry for entry in await plane.audit_entries() if entry.user == user_of(new.namespace)]
                assert not [entry for entry in made if entry.name in names and entry.verb not in READS]

            said = f"✓ {len(names)} Jobs of the manager in namespace {old.namespace}"
            planned = await take_over(old, new, operator, "--dry-run")
            assert (planned.code, planned.output) == (0, f"{said} would be taken over (dry run)\n"), planned
            assert annotation(await scene.source("runs"), "manager") == old.namespace
            taken = await take_over(old, new, operator)
            assert (taken.code, taken.output) == (0, f"{said} taken over\n"), taken

            assert is_complete((await until_over(scene, ["ends"]))["ends"])
            await until(new.metrics, lambda found: found.value("jobmirror_jobs_of_other_managers") == 0)
            await scene.end_pods("east", "runs")
            await assert_ran_once(scene, await until_over(scene, [*names, "later"]), seen)
            for name in names:
                assert len(await scene.pods("east", name)) == 1
                assert annotation(await scene.source(name), "manager") == new.namespace


def test_a_manager_may_not_take_over_by_itself() -> None:
    """Its shipped Roles let it see Leases and records in no namespace but its own: it takes a person who may."""
    given = shipped.rights(shipped.read("management", "management-sharding", namespace="new"))
    looked_at = [right for right in given if right.resource in ("leases", "configmaps")]
    assert {(right.resource, right.namespace) for right in looked_at} == {("leases", "new"), ("configmaps", "new")}


async def take_over(old: ManagerProcess, new: ManagerProcess, kubeconfig: Path, *more: str) -> Said:
    """Have the new manager follow what the old one has placed."""
    where = (f"--kubeconfig={kubeconfig}", f"--namespace={new.namespace}")
    pipe = asyncio.subprocess.PIPE
    return await said_by(
        await asyncio.create_subprocess_exec(
            MIRROR, "take-over", old.namespace, *where, *more, stdout=pipe, stderr=pipe
        )
    )


async def operator_of(scene: Scene, old: ManagerProcess, new: ManagerProcess) -> Path:
    """Somebody who may do what docs/operating.md says that it takes, and nothing else."""
    name, client = f"operator-{scene.namespace}", scene.client
    path = await scene.management.service_account_kubeconfig(scene.namespace, name)
    record = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}
    jobs = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "patch"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": scene.namespace}
    for place, kind, plural, rules in (
        (f"namespaces/{old.namespace}/", "Role", "roles", [record, lease]),
        (f"namespaces/{new.namespace}/", "Role", "roles", [record]),
        ("", "ClusterRole", "clusterroles", [jobs]),
    ):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding: Json = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        await client.create(f"{RBAC}/{place}{plural}", {"metadata": {"name": name}, "rules": rules})
        await client.create(f"{RBAC}/{place}{plural[:-1]}bindings", binding)
    asked = {"group": "batch", "resource": "jobs", "verb": "patch"}
    review = {"spec": {"user": f"system:serviceaccount:{scene.namespace}:{name}", "resourceAttributes": asked}}
    await until(lambda: client.create(REVIEWS, review), lambda found: found["status"]["allowed"])
    return path


async def writes(plane: ControlPlane, user: str, *, since: int) -> list[AuditEntry]:
    """What this user changed, or tried to change, after the first so many requests."""
    entries = (await plane.audit_entries())[since:]
    return [entry for entry in entries if entry.user == user and entry.verb not in READS]
