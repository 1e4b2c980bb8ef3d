"""``bench`` measures a manager, the theoretical minimum and a Job controller; small, so that it is known to work."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bench.figures import Figures
from e2e.bench import ROOT, floor, manager
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, control_planes
from e2e.definitions import defined
from e2e.go_modules import definition_of

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A management cluster and a worker, both without controllers: the Jobs are played."""
    async with control_planes(workers=1, provider=Binaries(BARE, BARE)) as planes:
        management, worker = planes.management, planes.workers["east"]
        assert isinstance(management, Cluster)
        assert isinstance(worker, Cluster)
        yield management, worker


async def printed(module: str, *arguments: object) -> Figures:
    """What one run of a program prints in its first line."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    text, _ = await process.communicate()
    assert process.returncode == 0, text.decode()
    found: Figures = json.loads(text.splitlines()[0])
    return found


async def mirroring(clusters: tuple[Cluster, Cluster], *more: object) -> Figures:
    management, worker = clusters
    where = ("--management", management.kubeconfig, "--worker", worker.kubeconfig)
    return await printed("bench.mirroring", *where, "--jobs", 6, "--timeout", 120, *more)


async def test_the_manager_is_measured_from_outside(clusters: tuple[Cluster, Cluster]) -> None:
    """All Jobs complete; each has one copy, four statuses that were seen, and some requests; nothing is left."""
    async with manager(*clusters) as running:
        found = await mirroring(clusters, "--rate", 20, "--pid", f"manager={running.pid}")

    assert (found["jobs"], found["done"], found["create_to_copy"]["n"]) == (6, 6, 6)
    assert found["status_to_management"]["n"] == 6 * 5
    assert 0 < found["create_to_copy"]["p50_ms"] <= found["create_to_copy"]["max_ms"]
    assert found["jobs_per_second"] > 0
    # A record, statuses and an event here; a create there, and a delete where there is no retention.
    assert 4 <= found["requests_per_job"]["management"] <= 15
    assert 1 <= found["requests_per_job"]["workers"] <= 6
    assert found["cpu_ms_per_job"]["manager"] > 0
    assert 20 < found["rss_mib"]["manager"] < 500
    for cluster in clusters:
        async with cluster.client() as client:
            assert await client.list(JOBS) == []


@pytest.mark.parametrize("kind", ["JobSet", "MPIJob"])
async def test_other_kinds_are_measured_like_jobs(clusters: tuple[Cluster, Cluster], kind: str) -> None:
    """Each with its own statuses; the worker gets no more requests than for a Job."""
    clients = [cluster.client() for cluster in clusters]
    try:
        async with defined(clients, [definition_of(kind)]), manager(*clusters, kinds=[kind]) as running:
            found = await mirroring(clusters, "--rate", 20, "--pid", f"manager={running.pid}", "--kind", kind)
    finally:
        for client in clients:
            await client.close()

    assert (found["jobs"], found["done"], found["create_to_copy"]["n"]) == (6, 6, 6)
    assert found["status_to_management"]["n"] >= 6 * 4
    assert 4 <= found["requests_per_job"]["management"] <= 16
    assert 1 <= found["requests_per_job"]["workers"] <= 6


async def test_the_minimum_is_measured_in_the_same_way(clusters: tuple[Cluster, Cluster]) -> None:
    """One create there; a write for each status that is not overtaken by the next."""
    management, worker = clusters
    async with floor(management, worker) as pid:
        found = await mirroring(clusters, "--managed-by", "bench.jobmirror.io/minimum", "--pid", f"minimum={pid}")

    assert (found["done"], found["status_to_management"]["n"]) == (6, 30)
    assert found["requests_per_job"]["workers"] < 2
    assert 4 <= found["requests_per_job"]["management"] <= 8


async def test_a_job_controller_is_measured_from_outside(east: ControlPlane) -> None:
    """Here kube-controller-manager's, with pods that kwok ends."""
    load = ("--jobs", 2, "--completions", 3, "--parallelism", 2, "--small", 1)
    found = await printed("bench.jobs", "--cluster", east.kubeconfig, *load, "--timeout", 120)

    assert (found["jobs"], found["completions"], found["indexed"]) == (2, 3, False)
    assert found["pods_per_minute"] > 0
    assert found["job_writes_per_pod"] > 0
    assert found["small_job_seconds"]["p50"] > 0


async def test_the_page_is_measured_from_outside() -> None:
    """First and next pages, open ones, and a browser where there is one."""
    command = [sys.executable, "-m", "e2e.bench_page", "--jobs", "300", "--viewers", "3", "--seconds", "2"]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    text, _ = await process.communicate()
    lines = text.decode().splitlines()

    assert process.returncode == 0, lines
    assert [line.partition(":")[0] for line in lines[:3]] == ["first page", "next pages", "filtered"]
    assert re.fullmatch(r"3 open pages, 4 changes a second: [\d.]+% of a core", lines[3])
    assert re.fullmatch(r"a change is in each after \d\.\d{3} s \(p50\), \d\.\d{3} s \(p99\)", lines[4])
    assert re.match(r"first paint(:| after the navigation: \d+ ms)", lines[5])
