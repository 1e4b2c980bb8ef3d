"""Jobs that are fenced: a lease which the lost worker's own Job controller enforces, and what Namespaces say (D14)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, condition, is_complete, is_over, job, runs, until
from e2e.manager import ManagerProcess

TTL = 300
"""Seconds, the shortest that the setting takes."""


def is_fenced(found: Json | None) -> bool:
    return condition(found or {}, "jobmirror.io/Placed").get("reason") == "PlacedWithFence"


async def test_what_a_namespace_says_holds_for_its_jobs(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Its Jobs are fenced; another value takes the lease off again, and one that means nothing is told in it."""
    settings = {"workers": {"onLossOfNamespaces": True, "fenceTTL": f"{TTL}s"}}
    async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
        team = scene.namespace
        await management.kubectl("annotate", "namespace", team, "jobmirror.io/on-worker-loss=Fence")
        await scene.create(job("train", manager.managed_by, run_for="never"))
        await scene.source_until("train", lambda found: runs()(found) and is_fenced(found))
        mirror = await scene.mirror("east", "train") or {}
        assert mirror["spec"]["activeDeadlineSeconds"] == TTL

        await management.kubectl("annotate", "namespace", team, "jobmirror.io/on-worker-loss=fence", "--overwrite")
        await scene.source_until("train", lambda found: found and not is_fenced(found))
        await until(
            lambda: scene.mirror("east", "train"), lambda found: found and "activeDeadlineSeconds" not in found["spec"]
        )
        told = await until(
            lambda: management.kubectl("get", "events", "-n", team), lambda text: "UnknownAnnotation" in text
        )
        assert f"namespace/{team}" in told
        assert "annotation jobmirror.io/on-worker-loss: the namespace's policy 'fence' is unknown; Wait holds" in told
        await scene.end_pods("east", "train")
        assert is_complete(await scene.source_until("train", is_over))
