"""A manager with all its parts, told to trace, on embedded clusters over HTTPS: what its collector gets."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from doubles.collector import Receiver, receiver
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from mirror.cli.embedded import manager
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.planes.fleet import fleet
from mirror.planes.samples import sample_jobs
from mirror.planes.shape import Shape
from mirror.settings.schema import Tracing
from mirror.telemetry.metrics import Metrics

JOBS = JOB.resource.path("default")


@pytest.fixture(autouse=True)
def thawed(frozen_again: None) -> Iterator[None]:
    """What a manager froze for its own good is not for the tests."""
    yield
    gc.unfreeze()


def spans(got: ExportTraceServiceRequest) -> list[Span]:
    return [span for one in got.resource_spans for scope in one.scope_spans for span in scope.spans]


def job_of(span: Span) -> str:
    return next(said.value.string_value for said in span.attributes if said.key == "k8s.job.name")


async def all_of(taking: Receiver, count: int) -> list[Span]:
    """All that has come as soon as there are that many roots."""
    found: list[Span] = []
    while sum(not span.parent_span_id for span in found) < count:
        found += spans((await taking.got.get())[1])
    return found


@pytest.mark.slow
async def test_each_job_of_a_real_manager_is_one_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the setting alone: one that completes and one that fails, each once and whole when the manager ends."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    samples = sample_jobs(names.DEFAULT_MANAGED_BY)
    wanted = [body for body in samples if body["metadata"]["name"] in ("plain-1", "failing-1")]
    async with receiver() as taking, fleet(["east"], tmp_path, Shape()) as made:
        tracing = Tracing(enabled=True, endpoint=taking.url)
        settings = msgspec.structs.replace(made.settings(), tracing=tracing)
        api = made.management.plane.api
        async with manager(settings, 1, metrics=Metrics(), stop=asyncio.Event()):
            uids = {body["metadata"]["name"]: (await api.create(JOBS, body))["metadata"]["uid"] for body in wanted}
            async with asyncio.timeout(120):
                found = await all_of(taking, len(wanted))
        while not taking.got.empty():
            found += spans(taking.got.get_nowait()[1])
    traces = {name: [span for span in found if job_of(span) == name] for name in map(job_of, found)}
    assert traces.keys() == {"plain-1", "failing-1"}
    for name, trace in traces.items():
        assert sorted(span.name for span in trace) == ["Job", "running", "starting", "status", "waiting"]
        assert {span.trace_id.hex() for span in trace} == {uids[name].replace("-", "")}
        assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in trace)
    roots = {name: next(span for span in trace if not span.parent_span_id) for name, trace in traces.items()}
    assert roots["plain-1"].status.code == Status.STATUS_CODE_UNSET
    assert roots["failing-1"].status.code == Status.STATUS_CODE_ERROR
    assert "BackoffLimitExceeded" in roots["failing-1"].status.message
