"""Hands spans to OpenTelemetry's SDK, whose thread sends them to an OTLP/HTTP collector.

The only module that knows OpenTelemetry; ``app`` imports it where the settings want traces (extra ``otel``). Spans are
built as the SDK's values rather than by its tracers: they are over before they are told, and their ids are theirs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from mirror.model.failures import failure_words
from mirror.model.text import clean
from mirror.model.version import version
from mirror.telemetry.logs import Log
from mirror.telemetry.spans import Span

CLOSE_SECONDS = 2.0
QUIET_SECONDS = 60.0
MOST_WAITING = 10_000
"""Spans; of more the oldest go."""
_PATH = "/v1/traces"
_SENT_EVERY_MILLISECONDS = 1_000
_AT_ONCE = 500


class Collector:
    """Where finished traces go."""

    def __init__(self, processor: SpanProcessor) -> None:
        self._processor = processor
        # What the environment says of us goes first.
        said = {"service.name": "jobmirror", "service.version": version(), **OTELResourceDetector().detect().attributes}
        self._resource = Resource.create(said)
        self._scope = InstrumentationScope("jobmirror", version())

    def send(self, spans: Iterable[Span]) -> None:
        """Put spans in the queue. Never waits; what does not get there is told by the log alone."""
        for span in spans:
            self._processor.on_end(self._told(span))

    def _told(self, span: Span) -> ReadableSpan:
        return ReadableSpan(
            span.name,
            context=_context(span.trace, span.id),
            parent=_context(span.trace, span.parent) if span.parent else None,
            resource=self._resource,
            attributes={key: clean(one) for key, one in span.attributes},
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, clean(span.error)),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )


def _context(trace: int, span: int) -> SpanContext:
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


@asynccontextmanager
async def collector(endpoint: str, *, log: Log) -> AsyncIterator[Collector]:
    """Send while the block runs; what is left at its end is sent within two seconds, or lost.

    Args:
        endpoint: the collector's address; empty: what the variables ``OTEL_EXPORTER_OTLP_*`` say.
        log: told at most once a minute why traces are not sent.

    Raises:
        ImportError: a part of the extra ``otel`` is missing.
    """
    exporter = OTLPSpanExporter(endpoint=traces_url(endpoint) or None)
    complaints = _Complaints(log)
    library = logging.getLogger("opentelemetry")
    library.addHandler(complaints)
    library.propagate = False
    processor = BatchSpanProcessor(
        exporter,
        max_queue_size=MOST_WAITING,
        schedule_delay_millis=_SENT_EVERY_MILLISECONDS,
        max_export_batch_size=_AT_ONCE,
    )
    try:
        yield Collector(processor)
    finally:
        if not await _within(CLOSE_SECONDS, processor.shutdown):
            log.warning("traces not sent", because="the collector is too slow for the end")
            complaints.is_over = True
            exporter.shutdown()  # type: ignore[no-untyped-call]  # wakes what waits before it tries again
        else:
            library.removeHandler(complaints)
            library.propagate = True


def traces_url(endpoint: str) -> str:
    """Where a collector takes traces; empty for an empty address."""
    return endpoint if not endpoint or endpoint.endswith(_PATH) else endpoint + _PATH


async def _within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether it was done in time. In a thread that nobody waits for: the process may end before it does."""
    done, loop = asyncio.Event(), asyncio.get_running_loop()

    def run() -> None:
        work()
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="close traces", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await done.wait()
    except TimeoutError:
        return False
    return True


class _Complaints(logging.Handler):
    """What the SDK logs, from any of its threads, as our own lines: one a minute, whatever goes wrong."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.is_over = False
        self._log = log
        self._quiet_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if self.is_over or now < self._quiet_until:
            return
        self._quiet_until = now + QUIET_SECONDS
        error = record.exc_info[1] if record.exc_info else None
        why = f": {failure_words(error)}" if error else ""
        self._log.warning("traces not sent", because=record.getMessage() + why)
