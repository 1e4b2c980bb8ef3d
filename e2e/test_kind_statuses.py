"""What mirrors of other kinds say by chance, against a real API server with their definitions (``kind_statuses``)."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.kind_statuses.run import play, store
from mirror.kinds.declared.choosing import built_in

KIB = 1024
AT = "2026-03-01T12:00:00Z"


@pytest.mark.parametrize("name", ["TrainJob", "AppWrapper"])
async def test_no_status_that_we_write_is_refused(management: ControlPlane, name: str) -> None:
    """Valid and hostile ones in random sequences (D7); the command sees thousands of every kind."""
    async with management.client(user_agent="e2e-statuses") as client:
        outcome = await play(client, name, 150)
    assert not outcome.wrong, outcome.wrong[:3]
    assert not outcome.unseen


def end(type_name: str) -> Json:
    return {"type": type_name, "status": "True", "reason": "Done", "message": "", "lastTransitionTime": AT}


def job_sets_status(size: int, *, longest: int) -> Json:
    """Of a JobSet with replicated jobs that have names as long: managed fields name each of its numbers beside that."""
    numbers = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    one = {"name": "x" * longest, **numbers}
    count = (size - 500) // (len(msgspec.json.encode(one)) + 1)
    listed = [{**one, "name": f"{number:04}".rjust(longest, "x")} for number in range(count)]
    return {"conditions": [end("Completed")], "replicatedJobsStatus": listed}


def runs_status(size: int) -> Json:
    """Of a PipelineRun: the pipeline that it ran, and results."""
    half = (size - 500) // 2
    results = [{"name": f"r{number}", "value": "x" * (half // 8 - 40)} for number in range(8)]
    return {"conditions": [end("Succeeded")], "pipelineSpec": {"description": "x" * half}, "results": results}


@dataclass(frozen=True, slots=True)
class Large:
    """A source and the status of its mirror, in KiB."""

    kind: str
    status: Json
    spec: int = 0
    annotations: int = 0
    """As ``kubectl apply`` makes one, which no mirror has: at most 256 KiB."""
    is_whole: bool = True
    """Whether nothing of the status is left out."""
    kept: tuple[str, ...] = field(default=("conditions",))


LARGE = {
    "a JobSet at its bound": Large(
        "JobSet", job_sets_status(256 * KIB, longest=200), kept=("conditions", "replicatedJobsStatus")
    ),
    "a JobSet of more values than anybody reads": Large(
        "JobSet", job_sets_status(256 * KIB, longest=19), is_whole=False
    ),
    "a PipelineRun at its bound": Large(
        "PipelineRun", runs_status(1024 * KIB), kept=("conditions", "pipelineSpec", "results")
    ),
    "a PipelineRun with a large spec": Large(
        "PipelineRun", runs_status(1024 * KIB), spec=717, is_whole=False, kept=("conditions", "results")
    ),
    "a PipelineRun that was applied": Large(
        "PipelineRun",
        runs_status(1024 * KIB),
        spec=250,
        annotations=255,
        is_whole=False,
        kept=("conditions", "results"),
    ),
    "a PipelineRun with hardly any room": Large("PipelineRun", runs_status(1024 * KIB), spec=1000, is_whole=False),
}


@pytest.mark.parametrize("large", LARGE.values(), ids=LARGE)
async def test_the_largest_status_is_stored(management: ControlPlane, large: Large) -> None:
    """An API server stores objects of at most 1.5 MiB: a source whose end does not fit in would never be over."""
    limit = built_in()[large.kind].status.limit_bytes
    assert limit - 1024 < len(msgspec.json.encode(large.status)) <= limit
    spec = {"pipelineSpec": {"description": "x" * (large.spec * KIB), "tasks": []}} if large.spec else {}
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "x" * (large.annotations * KIB)}
    async with management.client(user_agent="e2e-statuses") as client:
        outcome, source, cut = await store(
            client, large.kind, large.status, spec=spec, annotations=applied if large.annotations else {}
        )
    assert not outcome.wrong, outcome.wrong[0][:600]
    assert (cut == 0) is large.is_whole
    ours = {one["type"] for one in source["status"]["conditions"]} - {end["type"] for end in large.status["conditions"]}
    assert ours == {"jobmirror.io/Placed"}
    assert tuple(sorted(source["status"])) == large.kept
