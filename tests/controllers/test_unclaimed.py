"""A ``managedBy`` that is almost ours, on a Job that nobody runs."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest
from doubles.jobs import job
from doubles.world import World, manager_of

from mirror.controllers.unclaimed import UNCLAIMED_AFTER_SECONDS, Unclaimed
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.client import Client
from mirror.kube.objects import Object, decode_object
from mirror.kube.requests import Request
from mirror.runtime.clock import SystemClock
from mirror.settings.kinds import KindEntry

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


async def test_the_value_of_the_kind_is_meant_where_it_has_one_of_its_own() -> None:
    """D25: with the CRD alone a PyTorchJob takes the setting's value, too, and that makes it nobody's."""
    kind = kinds_of([KindEntry(kind="PyTorchJob")])["PyTorchJob"]
    spec = {"runPolicy": {"managedBy": "jobmirror.io/controller"}}
    body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a", "uid": "1"}, "spec": spec}
    found, told = decode_object(json.dumps(body).encode()), list[str]()

    class Management:
        async def send_object(self, request: Request) -> Object:
            return found

    def warn(_: object, __: object, ___: str, text: str) -> None:
        told.append(text)

    unclaimed = Unclaimed(cast(Client, Management()), warn, managed_by="jobmirror.io/controller", clock=SystemClock())
    unclaimed.note(kind, found, "jobmirror.io/controller")
    running = asyncio.create_task(unclaimed.run())
    await asyncio.sleep(2 * UNCLAIMED_AFTER_SECONDS)
    running.cancel()
    assert told == [
        "nobody runs this PyTorchJob: spec.runPolicy.managedBy is jobmirror.io/controller "
        "(did you mean kueue.x-k8s.io/multikueue?); it cannot be changed, so create it anew"
    ]
