"""A ``managedBy`` that is almost ours, on a Job that nobody runs."""

from __future__ import annotations

import pytest
from doubles.jobs import job
from doubles.world import World, manager_of

pytestmark = pytest.mark.looptime


async def test_a_misspelt_manager_is_told_on_the_job() -> None:
    """D22: nobody else can tell it; one that another manager runs, or that is not like ours, is none of ours."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for name, value in {
            "misspelt": "jobmirror.io/Controler",
            "domain": "jobmirrors.io/controller",
            "kueue": "kueue.x-k8s.io/multikueue",
            "anothers": "jobmirror.io/controller-2",
            "ours": "jobmirror.io/controller",
        }.items():
            world.create(job(name, managed_by=value))
        await manager.settle(2)
        started = {"startTime": "2026-01-01T00:00:00Z", "active": 1}
        world.management.server.edit("jobs", "anothers", lambda body: body.update(status=started), "default")
        await manager.settle(50)
        assert world.texts("UnknownManagedBy") == []
        await manager.settle(70)
        told = sorted(world.texts("UnknownManagedBy"))
        assert told == [
            "nobody runs this Job: spec.managedBy is jobmirror.io/Controler (did you mean jobmirror.io/controller?); "
            "it cannot be changed, so create it anew",
            "nobody runs this Job: spec.managedBy is jobmirrors.io/controller (did you mean jobmirror.io/controller?); "
            "it cannot be changed, so create it anew",
        ]
        assert world.mirrors("ours") == ["east"]
