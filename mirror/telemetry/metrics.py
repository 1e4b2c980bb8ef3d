"""Every metric that we offer: names, labels, and cheap ways to count.

One ``Metrics`` belongs to one running manager and has its own registry, so several can live in one process. Children
of labelled metrics are bound once and kept by who counts; nothing here looks a label up in a path that runs often.
Gauges of things that somebody else knows (depths, ages) are read when scraped, by ``refresh``.
Series of a worker end with ``forget_worker``. Not here: HTTP (``server``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase

from mirror.model.version import version

M = TypeVar("M", bound=MetricWrapperBase)

LATENCY = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SHORT = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)

MIRROR_STATES = ("creating", "running", "suspended", "finished")
"""Values of the label ``state``: worker recorded but no mirror seen yet, mirror unsuspended, suspended, ended."""

MOST_CONTROLLERS = 100
_SUCCESSES = ("200", "201", "202")
_REFUSALS = ("400", "401", "403", "404", "405", "409", "410", "413", "415", "422", "429")
_FAILURES = ("500", "502", "503", "504", "error")
_KNOWN_CODES = frozenset((*_SUCCESSES, *_REFUSALS, *_FAILURES))


FIRST_KIND = "Job"
"""The kind whose series are there from the start; those of another begin when there is something of it."""


@dataclass(frozen=True, slots=True)
class KindMetrics:
    """The bound children of one kind on one worker."""

    mirrored_jobs: Mapping[str, Gauge]
    """By ``MIRROR_STATES``."""
    placements: Counter
    refused_status_writes: Counter
    refused_mirrors: Counter
    """Creates that the worker definitely refused."""
    name_conflicts: Counter
    """Creates that met an object of somebody else's (D1)."""


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """The bound children of one worker."""

    kinds: dict[str, KindMetrics]
    """By name of the kind; see ``Metrics.of_kind``."""
    status_lag: Histogram
    """Seconds from seeing a change of a mirror to having it stored on the source."""
    up: Gauge
    content_cut: Counter
    unknown_objects_dropped: Counter
    mirrors_too_large: Counter
    """Times that a mirror was too large to be kept (D29)."""
    sweep_halted: Counter
    sweep_deleted: Counter
    sweep_held_back: Gauge
    left_behind_deleted: Counter
    """Copies deleted that sources had left there (D14)."""
    leases_renewed: Counter
    leases_refused: Counter
    fence_breaches: Counter
    """Copies that ran although their lease was over, or their worker was declared dead."""


class Metrics:
    """All metrics of one manager. Attributes are the library's own objects; ``on_…`` methods suit observers."""

    def __init__(self, program: str = "manager") -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # else twice the series
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._by_worker: list[tuple[MetricWrapperBase, str]] = []
        self._before_scrape: list[Callable[[], None]] = []
        self._workers: dict[str, WorkerMetrics] = {}
        self._requests: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        self._controllers: set[str] = set()
        self._restarts: dict[tuple[str, str], int] = {}
        self._copies: dict[str, Histogram] = {}
        self._foreign_writes: dict[str, Counter] = {}
        self._make_mirroring()
        self._make_requests()
        self._make_queue()
        self._make_tokens_and_webhook()
        self._make_process(program)

    # -- what others count with -----------------------------------------------------------------------------------

    def worker(self, name: str) -> WorkerMetrics:
        """The children of one worker; the same ones until it is forgotten."""
        found = self._workers.get(name)
        if found is None:
            found = self._workers[name] = WorkerMetrics(
                kinds={FIRST_KIND: self._bind_kind(name, FIRST_KIND)},
                status_lag=self._status_lag.labels(name),
                up=self._worker_up.labels(name),
                content_cut=self._content_cut.labels(name),
                unknown_objects_dropped=self._unknown_dropped.labels(name),
                mirrors_too_large=self._mirrors_too_large.labels(name),
                sweep_halted=self._sweep_halted.labels(name),
                sweep_deleted=self._sweep_deleted.labels(name),
                sweep_held_back=self._sweep_held_back.labels(name),
                left_behind_deleted=self._left_behind_deleted.labels(name),
                leases_renewed=self._leases_renewed.labels(name),
                leases_refused=self._leases_refused.labels(name),
                fence_breaches=self._fence_breaches.labels(name),
            )
        return found

    def of_kind(self, worker: str, kind: str) -> KindMetrics:
        """The children of one kind on a worker; which kinds there are, the settings say."""
        kinds = self.worker(worker).kinds
        found = kinds.get(kind)
        if found is None:
            found = kinds[kind] = self._bind_kind(worker, kind)
        return found

    def create_to_copy(self, kind: str) -> Histogram:
        """Seconds from seeing that a source of this kind may run to the creation of its mirror."""
        found = self._copies.get(kind)
        if found is None:
            found = self._copies[kind] = self._create_to_copy.labels(kind)
        return found

    def foreign_status_writes(self, kind: str) -> Counter:
        """Statuses of placed sources of this kind that another program has written (D20)."""
        found = self._foreign_writes.get(kind)
        if found is None:
            found = self._foreign_writes[kind] = self._foreign_status_writes.labels(kind)
        return found

    def forget_worker(self, name: str) -> None:
        """End every series of a worker, once its client and watches are closed (what counts later starts a new one)."""
        self._workers.pop(name, None)
        self._requests = {key: found for key, found in self._requests.items() if key[0] != name}
        self._restarts = {key: found for key, found in self._restarts.items() if key[0] != name}
        for metric, label in self._by_worker:
            metric.remove_by_labels({label: name})

    def set_worker_token(self, worker: str, *, expires: float | None, lifetime_seconds: float = 0.0) -> None:
        """When the token of a worker ends, as a Unix time, and how long it is good altogether; None: it never ends."""
        if expires is None:
            self._token_expiry.remove_by_labels({"worker": worker})
            self._token_lifetime.remove_by_labels({"worker": worker})
        else:
            self._token_expiry.labels(worker).set(expires)
            self._token_lifetime.labels(worker).set(lifetime_seconds)

    def on_token_renewal(self, worker: str, result: str) -> None:
        """A worker was asked for a new token; ``result`` is ``renewed``, ``refused`` or ``failed``."""
        self._token_renewals.labels(worker, result).inc()

    def on_webhook(self, hook: str, answer: str, seconds: float) -> None:
        """An admission review was answered: by ``mutate`` or ``validate``; ``allowed``, ``denied`` or ``error``."""
        self._webhook_answers.labels(hook, answer).inc()
        self._webhook_seconds.labels(hook).observe(seconds)

    def on_passed_on(self, result: str) -> None:
        """How it went with a user's request that only another manager can answer: an ``access.elsewhere.PassedOn``."""
        self._access_passed_on.labels(result).inc()

    def on_request(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        """One request has ended; ``code`` is the HTTP status or ``error``."""
        found = self._requests.get((cluster, verb, code))
        if found is None:
            found = self._bind_request(cluster, verb, code)
        found[0].inc()
        found[1].observe(seconds)

    def on_taken(self, waited_seconds: float) -> None:
        """A consumer took a key that had waited so long."""
        self.queue_wait.observe(waited_seconds)

    def on_worked(self, seconds: float) -> None:
        """The work on a key took so long."""
        self.work.observe(seconds)

    def on_retry(self) -> None:
        """A key will be retried."""
        self.queue_retries.inc()

    def on_task_restart(self, task: str) -> None:
        """A supervised task failed and is started again; counted by its name's first word, others may name a worker."""
        self.task_restarts.labels(task.partition(" ")[0]).inc()

    def on_external_job(self, controller_name: str) -> None:
        """A Job that names an external controller was seen for the first time (KEP-4368).

        Users choose the name; after the first hundred different ones the rest counts as ``other``.
        """
        if controller_name not in self._controllers:
            if len(self._controllers) >= MOST_CONTROLLERS:
                controller_name = "other"
            self._controllers.add(controller_name)
        self.external_jobs.labels(controller_name).inc()

    def watch_staleness(self, cluster: str, kind: str) -> Gauge:
        """The child for one watch: seconds since it last said anything."""
        return self._watch_staleness.labels(cluster, kind)

    def set_watch_restarts(self, cluster: str, kind: str, restarts: int) -> None:
        """How often a cluster's watches have been restarted; fewer than before means that they are new ones."""
        before = self._restarts.get((cluster, kind), 0)
        self._restarts[cluster, kind] = restarts
        self._watch_restarts.labels(cluster, kind).inc(restarts - before if restarts >= before else restarts)

    def set_queue_depths(self, ready: Mapping[str, int]) -> None:
        """How many keys wait in each lane; lanes that are not mentioned have no series any more."""
        self.queue_depth.clear()
        for lane, keys in ready.items():
            self.queue_depth.labels(lane).set(keys)

    def set_jobs_by_reason(self, kind: str, counts: Mapping[str, int]) -> None:
        """How many of a kind wait or make no progress, by reason (D22)."""
        for reason, jobs in counts.items():
            self._jobs_by_reason.labels(reason, kind).set(jobs)

    def before_scrape(self, refresh: Callable[[], None]) -> None:
        """Have ``refresh`` called before each scrape, for gauges that copy a ``describe()``; it must not fail."""
        self._before_scrape.append(refresh)

    def refresh(self) -> None:
        """What is due before a scrape, in the loop's thread, whose state it reads."""
        for refresh in self._before_scrape:
            refresh()

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything in the text format that an ``Accept`` header asks for, and its content type; in any thread."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    # -- what there is --------------------------------------------------------------------------------------------

    def _make_mirroring(self) -> None:
        gauge, counter = self._gauge, self._counter
        self._mirrored_jobs = gauge("mirrored_jobs", "Jobs recorded on a worker", "worker", "state", "kind")
        self._placements = counter("placements", "Workers recorded on sources", "worker", "kind")
        self._worker_up = gauge("worker_up", "1 while the worker answers and its watches run", "worker")
        self._status_lag = self._histogram("status_lag_seconds", "Mirror changed to source changed", LATENCY, "worker")
        self._refused_status_writes = counter(
            "refused_status_writes", "Status writes that the management cluster rejected", "worker", "kind"
        )
        self._content_cut = counter("worker_content_cut", "Parts of statuses left out as unusable", "worker")
        self._unknown_dropped = counter("unknown_objects_dropped", "Objects beyond the bound of unknown ones", "worker")
        self._mirrors_too_large = counter("mirrors_too_large", "Mirrors seen that are too large to be kept", "worker")
        self._refused_mirrors = counter("refused_mirrors", "Mirrors that a worker would not take", "worker", "kind")
        text = "Mirrors whose name was another's on the worker"
        self._name_conflicts = counter("name_conflicts", text, "worker", "kind")
        self._sweep_halted = counter("sweep_halted", "Sweeps that wanted to delete too much at once", "worker")
        self._sweep_deleted = counter("sweep_deleted", "Mirrors deleted because their source is gone", "worker")
        text = "Mirrors without a source that are too many at once to be deleted"
        self._sweep_held_back = gauge("sweep_held_back", text, "worker")
        text = "Copies deleted since their source was moved to another worker"
        self._left_behind_deleted = counter("left_behind_deleted", text, "worker")
        self._leases_renewed = counter("leases_renewed", "Leases of fenced mirrors that were set anew", "worker")
        self._leases_refused = counter("leases_refused", "Leases of fenced mirrors that a worker rejected", "worker")
        text = "Copies that still ran on a worker that is back, although their lease was over or it was declared dead"
        self._fence_breaches = counter("fence_breaches", text, "worker")
        self.moves_held = gauge(
            "moves_held", "1 while nothing is moved because most workers, or the management cluster, are unreachable"
        )
        text = "Source may run to mirror created"
        self._create_to_copy = self._histogram("create_to_copy_seconds", text, LATENCY, "kind")
        self.create_to_copy(FIRST_KIND)
        self.waiting_jobs = gauge("waiting_jobs", "Sources that wait for a worker")
        text = "Sources that wait for a worker or make no progress on one, by the reason that is written on them"
        self._jobs_by_reason = gauge("jobs_by_reason", text, "reason", "kind")
        self.waiting_oldest = gauge("waiting_oldest_seconds", "How long the one that waits longest has waited here")
        self.unstarted_cron_jobs = gauge("cronjob_jobs_unstarted", "Sources of CronJobs that may run and have no start")
        text = "Age of the oldest of jobmirror_cronjob_jobs_unstarted"
        self.unstarted_cron_oldest = gauge("cronjob_jobs_unstarted_oldest_seconds", text)
        text = "Statuses of sources that somebody else has written"
        self._foreign_status_writes = counter("foreign_status_writes", text, "kind")
        self.foreign_status_writes(FIRST_KIND)
        text = "Unfinished sources that another manager of this cluster has placed, so that they are left alone"
        named = "Paths in the entry of a kind that are no fields of it on a cluster"
        self.kind_unknown_fields = gauge("kind_unknown_fields", named, "cluster", "kind")
        self.jobs_of_other_managers = gauge("jobs_of_other_managers", text)
        text = "Looks at a Job that were put off, because it had made as many requests as one Job may"
        self.throttled_keys = counter("throttled_keys", text)
        self.secondary_mirrors = counter("secondary_mirrors", "Mirrors made anew because a user asked for it", "why")
        text = "Attempts to run a source on another worker, as no pod of it became ready where it is, by what they did"
        self.retries = counter("retries", text, "worker", "outcome")
        self.external_jobs = Counter(
            "job_controller_jobs_by_external_controller",
            "Jobs whose spec.managedBy names an external controller (KEP-4368: jobs_by_external_controller_total)",
            ("controller_name",),
            registry=self.registry,
        )

    def _make_requests(self) -> None:
        counter, seconds = self._counter, "api_request_seconds"
        self._api_requests = counter("api_requests", "Requests to API servers", "cluster", "verb", "code")
        self._api_seconds = self._histogram(seconds, "Sent to answer read", LATENCY, "cluster", "verb")
        self._watch_staleness = self._gauge("watch_staleness_seconds", "Since a watch spoke last", "cluster", "kind")
        self._watch_restarts = counter("watch_restarts", "Watches that were restarted", "cluster", "kind")

    def _make_queue(self) -> None:
        self.queue_depth = self._gauge("queue_depth", "Keys ready to be worked on", "lane")
        self.queue_wait = self._histogram("queue_wait_seconds", "From being wanted to being taken", SHORT)
        self.work = self._histogram("work_seconds", "Working on one key", LATENCY)
        self.queue_retries = self._counter("queue_retries", "Retries of keys after a failure")
        self.queue_longest_running = self._gauge("queue_longest_running_seconds", "Age of the longest work under way")
        self.queue_oldest = self._gauge("queue_oldest_seconds", "Age of the oldest key that waits")

    def _make_tokens_and_webhook(self) -> None:
        gauge, counter = self._gauge, self._counter
        self._token_expiry = gauge("worker_token_expiry_timestamp_seconds", "When a worker's token ends", "worker")
        self._token_lifetime = gauge("worker_token_lifetime_seconds", "From issue to expiry", "worker")
        self._token_renewals = counter("token_renewals", "Workers asked for a new token", "worker", "result")
        self._webhook_answers = counter("webhook_answers", "Admission reviews answered", "hook", "answer")
        self._webhook_seconds = self._histogram("webhook_seconds", "Review read to answer made", LATENCY, "hook")
        self._access_passed_on = counter("access_passed_on", "Users' requests for another manager's answer", "result")
        self.certificate_expiry = gauge("certificate_expiry_timestamp_seconds", "When what we serve HTTPS with ends")

    def _make_process(self, program: str) -> None:
        self.leader = self._gauge("leader", "1 while this process holds the Lease")
        self.slot_holders = self._gauge("slot_holders", "1 while this process holds the slot", "slot")
        self.task_restarts = self._counter("task_restarts", "Supervised tasks started again after a failure", "task")
        self.loop_lag = self._gauge("loop_lag_seconds", "How late the event loop recently was, at worst")
        what = self._gauge("build_info", "Always 1; the labels say what runs", "version", "program")
        what.labels(version(), program).set(1)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return self._noted(Gauge(f"jobmirror_{name}", text, labels, registry=self.registry), labels)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._noted(Counter(f"jobmirror_{name}", text, labels, registry=self.registry), labels)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        made = Histogram(f"jobmirror_{name}", text, labels, registry=self.registry, buckets=buckets)
        return self._noted(made, labels)

    def _noted(self, metric: M, labels: tuple[str, ...]) -> M:
        """Remember what has series per worker, for ``forget_worker``."""
        self._by_worker += [(metric, label) for label in labels if label in ("worker", "cluster", "lane")]
        return metric

    def _bind_kind(self, worker: str, kind: str) -> KindMetrics:
        return KindMetrics(
            mirrored_jobs={state: self._mirrored_jobs.labels(worker, state, kind) for state in MIRROR_STATES},
            placements=self._placements.labels(worker, kind),
            refused_status_writes=self._refused_status_writes.labels(worker, kind),
            refused_mirrors=self._refused_mirrors.labels(worker, kind),
            name_conflicts=self._name_conflicts.labels(worker, kind),
        )

    def _bind_request(self, cluster: str, verb: str, code: str) -> tuple[Counter, Histogram]:
        """The children of a request; a code that Kubernetes does not use counts as its class: a worker may send any."""
        known = code if code in _KNOWN_CODES else f"{code[:1]}xx" if code[:1] in "12345" and len(code) == 3 else "error"
        found = self._api_requests.labels(cluster, verb, known), self._api_seconds.labels(cluster, verb)
        if known == code:
            self._requests[cluster, verb, code] = found
        return found
