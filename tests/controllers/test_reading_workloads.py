"""Why queues of workers hold mirrors: what is read, of whom, and who is told (D26)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from doubles.jobs import as_object, job

from mirror.controllers import reading_workloads
from mirror.controllers.reading_workloads import WorkloadReasons
from mirror.controllers.sources import Sources
from mirror.kinds.registry import BUILT_IN
from mirror.kube.errors import BadAnswer, Forbidden, PageNotFound
from mirror.kube.objects import decode_object
from mirror.kube.resources import Resource
from mirror.model.keys import SourceKey
from mirror.model.reasons import Reason
from mirror.workers.worker import Worker

AT = "2026-03-01T12:00:00Z"
KEY = SourceKey("Job", "default", "train")


def held_source(name: str = "train", worker: str = "east", reason: str = Reason.SUSPENDED_ON_WORKER) -> Any:
    """A source that shows that its mirror, ``m-NAME``, is held."""
    body = job(name)
    body["metadata"] |= {"uid": f"s-{name}", "resourceVersion": "1", "namespace": "default"}
    told = [("Placed", "True", "Placed", worker), ("Mirrored", "True", "MirrorCreated", f"m-{name}")]
    told.append(("Progressing", "False", reason, "…"))
    body["status"] = {
        "conditions": [
            {
                "type": f"jobmirror.io/{kind}",
                "status": status,
                "reason": why,
                "message": message,
                "lastTransitionTime": AT,
                "lastProbeTime": AT,
            }
            for kind, status, why, message in told
        ]
    }
    return as_object(body)


def workload(uid: str, message: str) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/job-uid": uid}
    conditions = [{"type": "QuotaReserved", "status": "False", "message": message}]
    return {"metadata": {"name": f"job-{uid}", "labels": labels}, "spec": {}, "status": {"conditions": conditions}}


class Scene:
    """Sources of one manager, and workers whose Workloads are these."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *found: dict[str, Any], version: str = "v1beta2") -> None:
        self.woken: list[SourceKey] = []
        self.asked: list[str | None] = []
        self.workloads = list(found)
        self.version = version
        self.error: Exception | None = None
        self.sources = Sources(BUILT_IN)
        self.reasons = WorkloadReasons(self.sources, self.woken.append)
        worker = SimpleNamespace(name="east", client="east", namespace_of=lambda namespace: f"p-{namespace}")
        self.worker = cast(Worker, worker)
        monkeypatch.setattr(reading_workloads, "list_pages", self._pages)

    def add(self, *sources: Any) -> None:
        for one in sources:
            self.sources.of(BUILT_IN["Job"]).read_own_write(one)

    async def look(self) -> None:
        self.reasons.report("east", await self.reasons.read(self.worker))

    async def _pages(self, client: str, resource: Resource, *, namespace: str | None) -> AsyncIterator[Any]:
        self.asked.append(namespace)
        if self.error is not None:
            raise self.error
        if resource.version != self.version:
            raise PageNotFound("404 without a Status")
        yield SimpleNamespace(objects=[decode_object(msgspec.json.encode(one)) for one in self.workloads])


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
async def test_a_job_that_is_held_is_told_why(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """In whichever version is served, of its own mirror; it is looked at when that is news, and when it is not so."""
    scene = Scene(monkeypatch, workload("m-train", "no quota"), workload("other", "x"), version=version)
    scene.add(held_source())
    await scene.look()
    await scene.look()
    assert scene.reasons.of("east", "m-train") == "no quota"
    assert (scene.reasons.of("east", "other"), scene.reasons.of("west", "m-train")) == ("", "")
    assert scene.woken == [KEY]
    assert set(scene.asked) == {"p-default"}
    scene.workloads.clear()
    await scene.look()
    assert scene.reasons.of("east", "m-train") == ""
    assert scene.woken == [KEY, KEY]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(None, id="there are none"),
        pytest.param(held_source(worker="west"), id="they are elsewhere"),
        pytest.param(held_source(reason=Reason.PODS_NOT_READY), id="something else is in their way"),
    ],
)
async def test_while_no_job_is_held_nothing_is_read(monkeypatch: pytest.MonkeyPatch, source: Any) -> None:
    """No request is made."""
    scene = Scene(monkeypatch, workload("m-train", "no quota"))
    if source is not None:
        scene.add(source)
    await scene.look()
    assert (scene.asked, scene.woken) == ([], [])


async def test_without_kueue_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its API is not served: somebody else holds the mirror."""
    scene = Scene(monkeypatch, version="none")
    scene.add(held_source())
    await scene.look()
    assert (scene.reasons.of("east", "m-train"), scene.woken) == ("", [])


async def test_what_cannot_be_read_is_the_callers_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing permission, and more than is read."""
    scene = Scene(monkeypatch)
    scene.add(held_source())
    scene.error = Forbidden("workloads is forbidden")
    with pytest.raises(Forbidden):
        await scene.look()
    scene.error, scene.workloads = None, [workload(str(number), "x") for number in range(3)]
    monkeypatch.setattr(reading_workloads, "MOST_WORKLOADS", 2)
    with pytest.raises(BadAnswer):
        await scene.look()
