"""The webhook and JobSets beside a real API server: claimed, held and released as Jobs are (D16, D24).

The configurations are the chart's for ``config.kinds: [JobSet]``. The player is on the worker alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from e2e import jobsets
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.plane import ControlPlane
from e2e.drills import has, true_conditions
from e2e.jobs import Scene, annotation, job
from e2e.jobsets import JOBSETS, job_set
from e2e.test_webhook import home, hooked, scene
from mirror.model import names

__all__ = ["home", "scene"]


@pytest_asyncio.fixture(loop_scope="session")
async def served(home: Cluster, east: ControlPlane) -> AsyncIterator[None]:
    """JobSets, here and there."""
    clients = [plane.client() for plane in (home, east)]
    try:
        async with jobsets.defined(*clients), jobsets.played(east):
            yield
    finally:
        for client in clients:
            await client.close()


def users(name: str) -> Json:
    """One of a user who knows nothing of us."""
    body = job_set(name, "", ends="Completed")
    del body["spec"]["managedBy"]
    return body


async def test_a_users_job_set_is_held_placed_released_and_run_elsewhere(
    served: None, home: Cluster, east: ControlPlane, scene: Scene
) -> None:
    """The answer to the create shows it held; the Jobs of a JobSet that its user keeps here stay here, too."""
    path = JOBSETS.path(scene.namespace)
    async with hooked(home, east, kinds=["JobSet"]) as (manager, _):
        made = await scene.client.create(path, users("train"))
        assert (made["spec"]["managedBy"], made["spec"]["suspend"]) == (manager.managed_by, True)
        assert annotation(made, "held") == "true"
        ended = await scene.client.wait_until(f"{path}/train", has("Completed"))
        assert true_conditions(ended)[names.PLACED] == "east"
        assert ended["spec"]["suspend"] is False
        assert annotation(ended, "held") == ""

        kept = users("kept")
        kept["spec"]["managedBy"] = "jobset.sigs.k8s.io/jobset-controller"
        owner = await scene.client.create(path, kept)
        assert owner["spec"] == {**owner["spec"], "managedBy": "jobset.sigs.k8s.io/jobset-controller"}
        child = job("kept-main-0")
        reference = {"apiVersion": JOBSETS.api_version, "kind": JOBSETS.kind, "name": "kept", "controller": True}
        child["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"]}]
        (there,) = await scene.create(child)
        assert "managedBy" not in there["spec"]
