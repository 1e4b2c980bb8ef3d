"""``mirror managers``: who leads, or who holds which slots, by the Leases in the manager's namespace (S1–S4)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from test_cli_worker import HOME, Clusters, clusters

from mirror.cli.main import main
from mirror.cli.worker.clusters import home
from mirror.cli.worker.operations.managers import Managers, managers_of, no_leader_of
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.declared.recorded import text_of
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.settings.kinds import KindEntry
from mirror.sharding.slots import Slot

__all__ = ["clusters"]

NOW = datetime(2026, 11, 27, 8, 0, tzinfo=UTC)


def lease(name: str, holder: str | None, *, age: float = 3.0, slots: int = 0, now: datetime = NOW, **more: str) -> Any:
    """As a manager writes it; ``slots``: what it says of its settings."""
    annotations = {names.SLOTS: f"{slots} {holder}"} if slots else {}
    renewed = (now - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 30, "renewTime": renewed}
    return {"metadata": {"name": name, "annotations": {**annotations, **more}}, "spec": spec}


def member(name: str, *, age: float = 3.0, ready: str = "true", now: datetime = NOW) -> Any:
    more = {names.READY: ready, names.ADDRESS: f"https://{name}:8443"}
    return lease(f"{names.MEMBER_LEASE}-{name}", name, age=age, slots=4, now=now, **more)


def slot(index: int, holder: str | None, *, of: int = 4, age: float = 3.0, now: datetime = NOW) -> Any:
    return lease(Slot(index, of).lease, holder, age=age, slots=of, now=now)


def shared(now: datetime = NOW) -> Sequence[Any]:
    """Three managers: the first assigns, the second is not ready any more, the third was killed."""
    return (
        lease(names.LEASE, "a", slots=4, now=now),
        *(member("a", now=now), member("b", ready="false", now=now), member("c", age=45, now=now)),
        *(slot(0, "a", now=now), slot(2, "b", now=now), slot(3, "c", age=45, now=now)),
    )


def found(*leases: Any) -> Managers:
    return managers_of([decode_object(msgspec.json.encode(one)) for one in leases], NOW)


def told(of: Managers) -> list[tuple[Any, ...]]:
    return [(row.name, row.state, row.role, tuple(one.index for one in row.slots)) for row in of.rows]


def test_without_slots_there_is_who_leads() -> None:
    """No standby has a Lease."""
    leads = found(lease(names.LEASE, "a"), lease(names.JOB_CONTROLLER_LEASE, "x"), lease("of-others", "y"))
    assert told(leads) == [("a", "Ready", "leads", ())]
    assert leads.nobodys == ()


def test_with_slots_there_are_all_of_them() -> None:
    """What was not renewed in time is nobody's; a slot that nobody has taken has no Lease."""
    all_of_them = found(*shared())
    assert told(all_of_them) == [
        ("a", "Ready", "assigns", (0,)),
        ("b", "NotReady", "", (2,)),
        ("c", "Expired", "", ()),
    ]
    assert all_of_them.nobodys == (Slot(1, 4), Slot(3, 4))
    assert [row.address for row in all_of_them.rows] == ["https://a:8443", "https://b:8443", "https://c:8443"]


def test_who_was_killed_is_seen_to_be_gone() -> None:
    """Its Lease stays until another manager takes it; one that was given back has no holder."""
    assert told(found(lease(names.LEASE, "a", age=31))) == [("a", "Expired", "", ())]
    assert told(found(lease(names.LEASE, None), lease(names.LEASE, ""))) == []


def test_while_their_number_changes_both_are_shown() -> None:
    """S3: the new ones take nothing before the last of the old ones is gone."""
    both = found(lease(names.LEASE, "a", slots=4), member("a"), slot(0, "a"), slot(5, "b", of=8))
    assert [row.slots for row in both.rows] == [(Slot(0, 4),), (Slot(5, 8),)]


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": 7}, {"holderIdentity": "a", "renewTime": "yesterday"}])
def test_what_is_no_lease_of_a_manager_disturbs_nothing(spec: Any) -> None:
    """Others may write Leases in that namespace."""
    strange = {"metadata": {"name": names.LEASE}, "spec": spec}
    assert [state for _, state, *_ in told(found(strange))] in ([], ["Expired"])


@pytest.mark.parametrize(
    ("leases", "told"),
    [
        pytest.param((), "", id="no manager has been there"),
        pytest.param((lease(names.LEASE, "a"),), "", id="one leads"),
        pytest.param((lease(names.LEASE, "a", age=31),), "last renewed at 2026-11-27T07:59:29", id="it was killed"),
        pytest.param((lease(names.LEASE, ""),), "no manager leads", id="it was stopped"),
        pytest.param((lease(names.JOB_CONTROLLER_LEASE, "x", age=99),), "", id="another's Lease"),
    ],
)
def test_that_nobody_leads_is_told(leases: Sequence[Any], told: str) -> None:
    """States of workers are then as somebody has left them."""
    said = no_leader_of([decode_object(msgspec.json.encode(one)) for one in leases], NOW)
    assert bool(said) == bool(told)
    assert told in said


@pytest.mark.parametrize("command", [("worker", "list"), ("worker", "check")], ids=" ".join)
async def test_commands_for_workers_tell_that_nobody_leads(clusters: Clusters, command: Sequence[str]) -> None:
    """Beside the output, so that programs that read it are not disturbed."""
    gone = lease(names.LEASE, "a", age=99, now=datetime.now(UTC))
    await clusters.management.api.create(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases", gone)
    said = await run(clusters, "-o", "json", command=command)
    assert said.stderr.startswith("Note: no manager leads (Lease jobmirror-manager, last renewed at ")
    assert json.loads(said.stdout)["items"] == []


async def run(clusters: Clusters, *more: str, command: Sequence[str] = ("managers",)) -> Result:
    words = [*command, "--kubeconfig", clusters.where.kubeconfig, *more]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


async def test_the_command_lists_them(clusters: Clusters) -> None:
    """As a table, for scripts, and what is nobody's beside it."""
    empty = await run(clusters)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert empty.stderr == f"no manager holds a Lease in namespace {HOME}\n"
    for one in shared(datetime.now(UTC)):
        await clusters.management.api.create(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases", one)

    shown = await run(clusters)
    heading, *lines = shown.stdout.splitlines()
    assert heading.split() == ["NAME", "STATE", "ROLE", "SLOTS", "RENEWED"]
    assert [line.split()[:-1] for line in lines] == [
        ["a", "Ready", "assigns", "0", "of", "4"],
        ["b", "NotReady", "-", "2", "of", "4"],
        ["c", "Expired", "-", "-"],
    ]
    assert shown.stderr == "! nobody holds 1, 3 of 4: Jobs on the workers of these slots are not followed\n"
    assert "https://a:8443" in (await run(clusters, "-o", "wide")).stdout
    assert (await run(clusters, "-o", "name")).stdout.split() == ["a", "b", "c"]
    items = json.loads((await run(clusters, "-o", "json")).stdout)["items"]
    assert items[1]["slots"] == [{"index": 2, "of": 4}]


async def test_what_the_holders_of_slots_have_written_of_workers_is_read(clusters: Clusters) -> None:
    """By all commands for workers, without a look at Leases: states, kinds, the origin of mirrors."""
    api, where = clusters.management.api, f"/api/v1/namespaces/{HOME}"
    for name in ("east", "north"):
        labels = {names.WORKER: "true"}
        await api.create(f"{where}/secrets", {"metadata": {"name": name, "labels": labels}})
    kinds = text_of(kinds_of([KindEntry(kind="JobSet")]))
    noted = {names.KINDS: kinds, names.ORIGIN: "shared", names.SLOTS: "4 30 5d0c1f2a"}
    entries = {name: json.dumps({"uid": name, "state": "Connected"}) for name in ("east", "north")}
    metadata = {"name": names.WORKERS_CONFIGMAP, "annotations": noted}
    await api.create(f"{where}/configmaps", {"metadata": metadata, "data": entries})
    listed = json.loads((await run(clusters, "-o", "json", command=("worker", "list"))).stdout)["items"]
    assert [(one["name"], one["state"]) for one in listed] == [("east", "Connected"), ("north", "Connected")]
    async with home(clusters.where) as here:
        assert [kind.name for kind in await here.kinds()] == ["Job", "JobSet"]
        assert await here.origin() == "shared"
    refused = await run(clusters, "east", "--all-dead", command=("worker", "forget"))
    assert "worker east is reachable" in refused.stderr
