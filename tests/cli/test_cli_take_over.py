"""``mirror take-over``: an installation was moved to another namespace (D2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result
from test_cli_worker import HOME, Clusters, clusters, place

from mirror.cli.main import main
from mirror.cli.worker.operations.taking_over import holder_of, obstacle
from mirror.kube.objects import decode_object
from mirror.model import names
from mirror.planes.api import Api
from mirror.workers.inventory import Entry

__all__ = ["clusters"]

FORMER = "old-system"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


async def moved(api: Api, *jobs: str, there: Any = None, here: Any = None) -> None:
    """Jobs that a manager in another namespace has placed on east; each as recorded there and here."""
    await api.create("/api/v1/namespaces", {"metadata": {"name": FORMER}})
    for namespace, entry in ((FORMER, there), (HOME, here)):
        if entry is not None:
            record = {"metadata": {"name": names.WORKERS_CONFIGMAP}, "data": {"east": json.dumps(entry)}}
            await api.create(f"/api/v1/namespaces/{namespace}/configmaps", record)
    for job in jobs:
        await place(api, job)
        await api.merge(f"{JOBS}/{job}", {"metadata": {"annotations": {names.MANAGER: FORMER}}})


async def run(clusters: Clusters, *more: str) -> Result:
    import asyncio

    words = ["take-over", FORMER, "--kubeconfig", clusters.where.kubeconfig, *more]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


async def managers(api: Api, *jobs: str) -> Sequence[str]:
    return [(await api.get(f"{JOBS}/{job}"))["metadata"]["annotations"][names.MANAGER] for job in jobs]


async def test_jobs_on_the_same_workers_are_taken_over(clusters: Clusters) -> None:
    """Those that have ended, and those of others, stay as they are."""
    api = clusters.management.api
    await moved(api, "a", "b", "ended", "others", there={"uid": "u"}, here={"uid": "u"})
    await api.merge(f"{JOBS}/others", {"metadata": {"annotations": {names.MANAGER: "third"}}})
    now = "2026-01-01T00:00:00Z"
    ends = [{"type": one, "status": "True", "lastTransitionTime": now} for one in ("SuccessCriteriaMet", "Complete")]
    placed = (await api.get(f"{JOBS}/ended"))["status"]["conditions"]
    status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": placed + ends}
    await api.merge(f"{JOBS}/ended/status", {"status": status})
    dry = await run(clusters, "--dry-run")
    assert (dry.exit_code, dry.stdout) == (
        0,
        f"✓ 2 Jobs of the manager in namespace {FORMER} would be taken over (dry run)\n",
    )
    assert await managers(api, "a", "b") == [FORMER, FORMER]
    done = await run(clusters)
    assert (done.exit_code, done.stdout) == (0, f"✓ 2 Jobs of the manager in namespace {FORMER} taken over\n")
    assert await managers(api, "a", "b", "ended", "others") == [HOME, HOME, FORMER, "third"]


async def test_a_manager_that_runs_keeps_its_jobs(clusters: Clusters) -> None:
    """Its Lease says so; one that was given back, or that ran out, says nothing."""
    api = clusters.management.api
    await moved(api, "a", there={"uid": "u"}, here={"uid": "u"})
    spec = {"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": f"{datetime.now(UTC):%FT%T.%fZ}"}
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{FORMER}/leases"
    await api.create(leases, {"metadata": {"name": names.LEASE}, "spec": spec})
    refused = await run(clusters)
    assert refused.exit_code == 1
    assert f"the manager in namespace {FORMER} runs: pod-1 holds Lease {FORMER}/jobmirror-manager" in refused.stderr
    assert await managers(api, "a") == [FORMER]
    await api.merge(f"{leases}/{names.LEASE}", {"spec": {"holderIdentity": ""}})
    assert (await run(clusters)).exit_code == 0
    assert await managers(api, "a") == [HOME]


async def test_jobs_on_another_cluster_of_that_name_are_left(clusters: Clusters) -> None:
    """There they would run twice, whatever a person says."""
    api = clusters.management.api
    await moved(api, "a", there={"uid": "u"}, here={"uid": "v"})
    refused = await run(clusters, "--same-workers")
    assert refused.exit_code == 1
    assert "! left: Job default/a: worker east is another cluster here: register" in refused.stderr
    assert f"1 Job left with namespace {FORMER}" in refused.stderr
    assert await managers(api, "a") == [FORMER]


async def test_without_the_record_there_a_person_says_it(clusters: Clusters) -> None:
    """The old namespace was deleted before."""
    api = clusters.management.api
    await moved(api, "a", here={"uid": "v"})
    refused = await run(clusters)
    assert refused.exit_code == 1
    assert "if it is the same, use --same-workers" in refused.stderr
    assert (await run(clusters, "--same-workers")).exit_code == 0
    assert await managers(api, "a") == [HOME]


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        (Entry(), Entry(uid="u"), "was never reached from here"),
        (Entry(uid="u"), Entry(uid="u", namespace_prefix="b-"), "has another jobmirror.io/namespace-prefix here"),
        (Entry(uid="u", namespace_prefix="b-"), Entry(uid="u", namespace_prefix="b-"), ""),
    ],
    ids=["not reached", "another prefix", "the same"],
)
def test_a_worker_is_the_same_where_its_mirrors_are(here: Entry, there: Entry, why: str) -> None:
    """By its cluster, and by the namespaces there."""
    found = obstacle(here, there, same_workers=False)
    assert found.startswith(why) if why else not found


@pytest.mark.parametrize(
    ("spec", "holder"),
    [
        ({"holderIdentity": "p", "renewTime": "{-59}"}, "p"),
        ({"holderIdentity": "p", "renewTime": "{-61}"}, ""),
        ({"holderIdentity": "p", "renewTime": "{-61}", "leaseDurationSeconds": 120}, "p"),
        ({"holderIdentity": "p", "renewTime": "{30}"}, "p"),
        ({"holderIdentity": "", "renewTime": "{0}"}, ""),
        ({"holderIdentity": "p", "renewTime": "soon"}, ""),
        ({"holderIdentity": 7}, ""),
        ({}, ""),
    ],
    ids=["lately", "long ago", "lasts longer", "a clock ahead", "given back", "no time", "junk", "empty"],
)
def test_a_lease_is_held_for_as_long_as_it_says_or_a_minute(spec: dict[str, Any], holder: str) -> None:
    """A minute is more than clocks differ by, and the holder of a shorter one has renewed it by then."""
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    if (text := spec.get("renewTime", "")).startswith("{"):
        spec = {**spec, "renewTime": f"{now + timedelta(seconds=int(text[1:-1])):%FT%TZ}"}
    lease = {"metadata": {"name": "l", "uid": "u", "resourceVersion": "1"}, "spec": spec}
    assert holder_of(decode_object(json.dumps(lease).encode()), now) == holder


def test_both_namespaces_are_not_one() -> None:
    """Invalid usage, before any cluster is asked."""
    result = CliRunner().invoke(main, ["take-over", HOME])
    assert result.exit_code == 2
    assert f"NAMESPACE and --namespace are both {HOME}" in result.stderr
