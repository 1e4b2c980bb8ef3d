"""Traces on their way out: what a collector gets, and how little one that is ill disturbs."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from doubles.collector import receiver
from doubles.loglines import Lines
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Told
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from mirror.telemetry import otlp
from mirror.telemetry.logs import get_log
from mirror.telemetry.otlp import collector, traces_url
from mirror.telemetry.spans import Span

ROOT = Span(trace=7, id=1, name="Job", start=10, end=90, attributes=(("k8s.job.name", "train"),), error="it did not")
CHILD = Span(trace=7, id=2, parent=1, name="waiting", start=10, end=20)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's proxy or collector."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(otlp, "_SENT_EVERY_MILLISECONDS", 10)


async def test_a_collector_gets_the_spans() -> None:
    """OTLP over HTTP, as protobuf: ids, parent, times, attributes, status, and who sends."""
    async with receiver() as taking:
        async with collector(taking.url, log=get_log("traces")) as to:
            to.send((ROOT, CHILD))
        path, got = taking.got.get_nowait()
    (resource,) = got.resource_spans
    said = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert path == "/v1/traces"
    assert said["service.name"] == "jobmirror"
    (scope,) = resource.scope_spans
    root, child = scope.spans
    assert (root.trace_id, root.span_id, root.parent_span_id) == ((7).to_bytes(16, "big"), (1).to_bytes(8, "big"), b"")
    assert (child.trace_id, child.parent_span_id) == (root.trace_id, root.span_id)
    assert (root.name, root.start_time_unix_nano, root.end_time_unix_nano) == ("Job", 10, 90)
    assert [(one.key, one.value.string_value) for one in root.attributes] == [("k8s.job.name", "train")]
    assert root.kind == Told.SPAN_KIND_INTERNAL
    assert (root.status.code, root.status.message) == (Status.STATUS_CODE_ERROR, "it did not")
    assert child.status.code == Status.STATUS_CODE_UNSET


async def test_spans_are_sent_soon_and_not_only_at_the_end() -> None:
    """A thread sends while the manager works."""
    async with receiver() as taking, collector(taking.url, log=get_log("traces")) as to:
        to.send((ROOT,))
        async with asyncio.timeout(60):
            await taking.got.get()


async def test_without_an_address_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard variables, and what they say of the sender."""
    async with receiver() as taking:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", taking.url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=blue,service.name=mine")
        async with collector("", log=get_log("traces")) as to:
            to.send((ROOT,))
        _, got = taking.got.get_nowait()
    said = {one.key: one.value.string_value for one in got.resource_spans[0].resource.attributes}
    assert (said["k8s.cluster.name"], said["service.name"]) == ("blue", "mine")


async def test_a_collector_that_refuses_is_told_of_once_a_minute(log_lines: Lines) -> None:
    """Batches may fail by the dozen; the library's own lines do not reach the log."""
    async with receiver(400) as taking, collector(taking.url, log=get_log("traces")) as to:
        for _ in range(3):
            to.send((ROOT,))
            async with asyncio.timeout(60):
                await taking.got.get()
    (line,) = log_lines
    assert (line["logger"], line["event"]) == ("traces", "traces not sent")
    assert "400" in line["because"]
    assert logging.getLogger("opentelemetry").propagate


async def test_a_collector_that_hangs_does_not_keep_the_manager(
    monkeypatch: pytest.MonkeyPatch, log_lines: Lines
) -> None:
    """The end waits a bounded time and no longer; sending never waits."""
    monkeypatch.setattr(otlp, "CLOSE_SECONDS", 0.1)
    async with receiver() as taking:
        taking.hold.clear()
        async with collector(taking.url, log=get_log("traces")) as to:
            to.send((ROOT,))
            async with asyncio.timeout(60):
                await taking.got.get()
            begin = time.monotonic()
            for _ in range(otlp.MOST_WAITING + 5):
                to.send((CHILD,))
        assert time.monotonic() - begin < 30
    told = [line["because"] for line in log_lines]
    assert told == ["Queue full, dropping Span.", "the collector is too slow for the end"]


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("", ""),
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("https://all.example.com/otlp", "https://all.example.com/otlp/v1/traces"),
        ("http://collector:4318/v1/traces", "http://collector:4318/v1/traces"),
    ],
)
def test_the_path_is_added_where_it_is_missing(endpoint: str, url: str) -> None:
    """An address of a collector, as people know it, or the whole of it."""
    assert traces_url(endpoint) == url
