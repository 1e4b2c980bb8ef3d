"""The suite on clusters that others started (``e2e/kind``): a file of scenarios, played in a run of its own."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from e2e.controlplane.components import JOB_CONTROLLERS, Shape
from e2e.controlplane.provider import Binaries, control_planes

TOP = Path(__file__).resolve().parents[1]
SCENARIOS = "e2e/test_deletion.py"
ORDINARY = Shape(controllers=JOB_CONTROLLERS, scheduler=True)
"""Like a cluster of kind whose nodes are tainted: nobody here plays a node, and there is no audit log."""


@pytest.mark.controlplane
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("binaries")
async def test_scenarios_pass_on_existing_clusters() -> None:
    """Named by kubeconfigs alone, with nodes that the run simulates itself: everything passes, nothing is skipped."""
    async with control_planes(workers=2, provider=Binaries(ORDINARY, ORDINARY)) as planes:
        environment = {
            **os.environ,
            "USE_EXISTING_CLUSTER": "true",
            "MIRROR_E2E_SIMULATE_NODES": "true",
            "MIRROR_E2E_MANAGEMENT": str(planes.management.kubeconfig),
            "MIRROR_E2E_WORKERS": ":".join(str(worker.kubeconfig) for worker in planes.workers.values()),
        }
        code, said = await run(sys.executable, "-m", "pytest", SCENARIOS, "-q", "-p", "no:cacheprovider", **environment)
        nodes = [await worker.kubectl("get", "nodes", "--output", "name") for worker in planes.workers.values()]

    assert code == 0, said
    assert re.search(r"^\d+ passed in ", said, re.MULTILINE), said
    assert nodes == ["", ""]


async def run(*command: str, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=TOP, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(800):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, said.decode()
