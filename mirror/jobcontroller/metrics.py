"""The Job controller's metrics: upstream's names, labels and buckets, so that dashboards go on working (4.16).

They are added to a process' own ``telemetry.metrics.Metrics``, which has the requests to the API server, whether we
lead, and the HTTP side. Label values that users choose are bounded here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from itertools import accumulate, repeat
from operator import mul
from typing import TypeVar

from prometheus_client import Counter, Gauge, Histogram

from mirror.batch import rule_names
from mirror.model import names
from mirror.runtime.loop import Observer
from mirror.runtime.queue import WorkQueue
from mirror.telemetry.metrics import Metrics

K = TypeVar("K", bound=Hashable)

SYNC_SECONDS = tuple(0.004 * 2**power for power in range(15))
# Multiplied one by one, as upstream does: that makes labels such as ``9.999999999999999e-06``.
QUEUE_SECONDS = tuple(accumulate(repeat(10.0, 9), mul, initial=1e-8))
TTL_SECONDS = tuple(0.1 * 2**power for power in range(14))
MOST_REASONS = 100

INTERNAL_REASONS = frozenset(
    (
        "BackoffLimitExceeded",
        "CompletionsReached",
        "DeadlineExceeded",
        "FailedIndexes",
        "MaxFailedIndexesExceeded",
        rule_names.PLAIN_REASON,
        "SuccessPolicy",
        "",  # of a success, with the gate JobSuccessPolicy off
    )
)
"""Reasons of a finished Job that the controller itself gives (4.14); any other comes from a user."""


class JobMetrics:
    """All of 4.16; ``on_…`` methods are ``ports.Metrics``."""

    def __init__(self, metrics: Metrics, *, counts_external: bool = True) -> None:
        """Add them to a process' metrics.

        Args:
            metrics: of the process; counts Jobs of external controllers already where it mirrors Jobs.
            counts_external: whether nobody else in this process counts those.
        """
        self._metrics = metrics
        self._counts_external = counts_external
        self._queues: dict[str, QueueMetrics] = {}
        self._reasons: set[str] = set()
        self._make_syncs()
        self._make_ends()
        self._make_queues()
        text = "1 while this process holds the Lease of this name"
        leader = Gauge("leader_election_master_status", text, ("name",), registry=metrics.registry)
        self.leader = leader.labels(names.JOB_CONTROLLER_LEASE)
        metrics.before_scrape(self._refresh)

    def on_synced(self, mode: str, result: str, action: str, seconds: float) -> None:
        """One sync has ended; those of finished, missing and external Jobs are none (PM4)."""
        self._sync_seconds.labels(mode, result, action).observe(seconds)
        self._syncs.labels(mode, result, action).inc()

    def on_finished(self, mode: str, result: str, reason: str) -> None:
        """A final condition is stored."""
        self._finished.labels(mode, result, self._bounded(reason)).inc()

    def on_pods_finished(self, mode: str, result: str, count: int) -> None:
        """The difference that a stored status made (PM3); successes that were scaled away are none."""
        self._pods_finished.labels(mode, result).inc(max(0, count))

    def on_indexes_finished(self, status: str, backoff_limit: str, count: int) -> None:
        """As ``on_pods_finished``, for indexes."""
        self._indexes_finished.labels(status, backoff_limit).inc(max(0, count))

    def on_policy_action(self, action: str, count: int) -> None:
        """Failed pods that matched rules of a podFailurePolicy (T5)."""
        self._policy_actions.labels(action).inc(count)

    def on_tracking_finalizer(self, event: str) -> None:
        """``add``: a pod with our finalizer was seen to end; ``delete``: such a pod has lost it."""
        self._tracking_finalizers.labels(event).inc()

    def on_pods_created(self, reason: str, status: str, count: int) -> None:
        """Pods that were asked for. Upstream counts a refused one as succeeded, too (PM2); its caller here need not."""
        self._pods_created.labels(reason, status).inc(count)

    def on_external_job(self, controller_name: str) -> None:
        """A Job was seen for the first time that names another controller (H1)."""
        if self._counts_external:
            self._metrics.on_external_job(controller_name)

    def on_stale_skip(self, group: str, resource: str) -> None:
        """A sync was put off, since the cache has not seen our own write yet (Y1)."""
        self._stale_skips.labels(group, resource).inc()

    def on_expired(self, late_seconds: float) -> None:
        """A finished Job was deleted, so long after it was due (PM1)."""
        self._expired.observe(max(0.0, late_seconds))

    def queue_observer(self, name: str) -> Observer:
        """What the loop of one queue reports (PM4)."""
        return self._queue(name)

    def watch_queue(self, name: str, queue: WorkQueue[K]) -> None:
        """Have a queue's depth and ages read at each scrape."""
        self._queue(name).watch(queue)

    def _queue(self, name: str) -> QueueMetrics:
        found = self._queues.get(name)
        if found is None:
            bound = {what: metric.labels(name) for what, metric in self._gauges.items()}
            histograms = self._queue_seconds.labels(name), self._work_seconds.labels(name)
            found = self._queues[name] = QueueMetrics(bound, *histograms, self._retries.labels(name))
        return found

    def _bounded(self, reason: str) -> str:
        """Users choose names of rules (RN2) and may write conditions (Q15): only so many get a series of their own."""
        if reason in INTERNAL_REASONS or reason in self._reasons:
            return reason
        if len(self._reasons) < MOST_REASONS:
            self._reasons.add(reason)
            return reason
        return rule_names.PLAIN_REASON if reason.startswith(rule_names.PREFIX) else "other"

    def _refresh(self) -> None:
        for queue in self._queues.values():
            queue.refresh()

    # -- what there is --------------------------------------------------------------------------------------------

    def _make_syncs(self) -> None:
        registry, labels = self._metrics.registry, ("completion_mode", "result", "action")
        name, text = "job_controller_job_sync_duration_seconds", "The time it took to sync a job"
        self._sync_seconds = Histogram(name, text, labels, registry=registry, buckets=SYNC_SECONDS)
        self._syncs = self._counter("job_syncs", "The number of job syncs", *labels)
        text = "Job syncs put off because the watch had not brought our own last write yet"
        self._stale_skips = self._counter("stale_sync_skips", text, "group", "resource")

    def _make_ends(self) -> None:
        counter, mode = self._counter, "completion_mode"
        self._finished = counter("jobs_finished", "The number of finished jobs", mode, "result", "reason")
        self._pods_finished = counter("job_pods_finished", "Finished pods that are fully tracked", mode, "result")
        text = "Failed pods that matched a rule of a podFailurePolicy, by its action"
        self._policy_actions = counter("pod_failures_handled_by_failure_policy", text, "action")
        text = "Terminated pods that have the finalizer batch.kubernetes.io/job-tracking (add) and lose it (delete)"
        self._tracking_finalizers = counter("terminated_pods_tracking_finalizer", text, "event")
        self._indexes_finished = counter("job_finished_indexes", "Finished indexes", "status", "backoffLimit")
        self._pods_created = counter("job_pods_creation", "Pods created, by why and how it went", "reason", "status")
        name, text = "ttl_after_finished_controller_job_deletion_duration_seconds", "Due to deleted, of finished jobs"
        self._expired = Histogram(name, text, registry=self._metrics.registry, buckets=TTL_SECONDS)

    def _make_queues(self) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"workqueue_{name}", text, ("name",), registry=self._metrics.registry)

        def histogram(name: str, text: str) -> Histogram:
            labels, registry = ("name",), self._metrics.registry
            return Histogram(f"workqueue_{name}", text, labels, registry=registry, buckets=QUEUE_SECONDS)

        self._gauges: dict[str, Gauge | Counter] = {
            "depth": gauge("depth", "Current depth of workqueue"),
            "unfinished": gauge("unfinished_work_seconds", "Seconds of work under way, all keys together"),
            "longest": gauge("longest_running_processor_seconds", "Age of the longest work under way"),
            "adds": Counter("workqueue_adds", "Keys added", ("name",), registry=self._metrics.registry),
        }
        self._queue_seconds = histogram("queue_duration_seconds", "How long a key waits in workqueue")
        self._work_seconds = histogram("work_duration_seconds", "How long the work on a key takes")
        self._retries = Counter(
            "workqueue_retries", "Keys added after a delay", ("name",), registry=self._metrics.registry
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"job_controller_{name}", text, labels, registry=self._metrics.registry)


class QueueMetrics:
    """``workqueue_*`` of one queue; an ``Observer`` for its loop."""

    def __init__(self, bound: dict[str, Gauge | Counter], waits: Histogram, works: Histogram, retries: Counter) -> None:
        self._bound = bound
        self._waits = waits
        self._works = works
        self._retries = retries
        self._describe: Callable[[], tuple[int, float, int]] = lambda: (0, 0.0, 0)
        self._taken = 0
        self._counted_adds = self._counted_delayed = 0
        # Of the work under way: how much there is, and the sum of when it began.
        self._working = 0
        self._begun_sum = 0.0

    def watch(self, queue: WorkQueue[K]) -> None:
        """Read its depth and ages from now on."""

        def describe() -> tuple[int, float, int]:
            described = queue.describe()
            return sum(described.ready.values()), described.longest_running_seconds, queue.delayed_adds

        self._describe = describe

    def on_taken(self, waited_seconds: float) -> None:
        self._waits.observe(waited_seconds)
        self._taken += 1
        self._working += 1
        self._begun_sum += time.monotonic()

    def on_worked(self, seconds: float) -> None:
        self._works.observe(seconds)
        self._working -= 1
        self._begun_sum -= time.monotonic() - seconds

    def on_retry(self) -> None:
        """Not counted here: client-go takes each key that is added with a delay for a retry, so the queue counts."""

    def refresh(self) -> None:
        """Set what is read only when somebody asks."""
        depth, longest_seconds, delayed = self._describe()
        unfinished = self._working * time.monotonic() - self._begun_sum if self._working else 0.0
        adds = max(0, self._taken + depth - self._counted_adds)
        self._counted_adds += adds
        self._bound["adds"].inc(adds)
        self._retries.inc(delayed - self._counted_delayed)
        self._counted_delayed = delayed
        for what, value in (
            ("depth", float(depth)),
            ("unfinished", max(0.0, unfinished)),
            ("longest", longest_seconds),
        ):
            gauge = self._bound[what]
            assert isinstance(gauge, Gauge)
            gauge.set(value)
