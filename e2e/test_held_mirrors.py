"""A Job that its worker's queue holds says why, with the rights that are shipped (D26)."""

from __future__ import annotations

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene
from e2e.manager import ManagerProcess
from e2e.queued_life import READING, queued_life


async def test_a_held_job_says_why_in_the_words_of_its_workload(
    management: ControlPlane, east: ControlPlane, fresh_namespace: str
) -> None:
    """The right to list Workloads is enough; nothing else of Kueue is needed."""
    scene = Scene(management, {"east": east}, fresh_namespace)
    async with ManagerProcess.start(management, {"east": east}, settings=READING) as manager:
        await queued_life(manager, scene)
    await scene.close()
