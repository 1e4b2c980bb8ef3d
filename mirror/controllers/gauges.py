"""Gauges of what is known anyway, read when somebody scrapes: counts come from indexes, so a scrape costs little.

``app`` has ``refresh`` called before each scrape. Not here: what is counted as it happens (``telemetry.metrics``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime

from mirror.controllers.mirroring import Mirroring
from mirror.kinds.base import Kind
from mirror.model.reasons import SHOWN
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Described, Informer
from mirror.telemetry.metrics import FIRST_KIND, MIRROR_STATES, Metrics
from mirror.workers.worker import Worker

Instances = Callable[[], Sequence[Mirroring]]


class Gauges:
    """What one manager's caches, queue and watches say about themselves."""

    def __init__(
        self, mirroring: Mirroring, *, beside: Instances = tuple, cluster: str, metrics: Metrics, clock: Clock
    ) -> None:
        """``cluster``: what the management cluster is called in metrics; ``beside``: those that work for slots now."""
        self._mirroring = mirroring
        self._beside = beside
        self._cluster = cluster
        self._metrics = metrics
        self._clock = clock
        self._used = {FIRST_KIND}
        self._followed: set[str] = set()

    def refresh(self) -> None:
        """Set them all; neither blocks nor fails."""
        metrics, mirroring = self._metrics, self._mirroring
        every = (mirroring, *self._beside())
        queues = [one.queue.describe() for one in every]
        depths: Counter[str] = Counter()
        for queue in queues:
            depths.update(queue.ready)
        metrics.set_queue_depths(depths)
        metrics.queue_oldest.set(max(queue.oldest_seconds for queue in queues))
        metrics.queue_longest_running.set(max(queue.longest_running_seconds for queue in queues))
        metrics.waiting_jobs.set(sum(one.assigner.waiting for one in every))
        metrics.waiting_oldest.set(max(one.assigner.longest_wait_seconds for one in every))
        metrics.jobs_of_other_managers.set(max(one.jobs_of_other_managers for one in every))
        kinds = self._kinds_in_use()
        for kind in kinds:
            metrics.set_jobs_by_reason(
                kind.name, {reason: mirroring.sources.count_by_reason(kind, reason) for reason in SHOWN}
            )
        self._look_at_cron_jobs()
        self._describe_watches(self._cluster, mirroring.informers)
        followed = {worker.name: worker for one in every if one.follows for worker in one.registry.workers.values()}
        for worker in followed.values():
            for kind in kinds:
                self._count_states(worker, kind)
            self._describe_watches(worker.name, worker.informers)
        self._forget_others(followed.keys(), kinds)

    def _forget_others(self, followed: Set[str], kinds: Sequence[Kind]) -> None:
        """What was counted of workers whose slot another replica holds by now, is that one's (S2)."""
        for name in (self._followed - followed) & self._mirroring.registry.workers.keys():
            for kind in kinds:
                for state in MIRROR_STATES:
                    self._metrics.of_kind(name, kind.name).mirrored_jobs[state].set(0)
                self._metrics.watch_staleness(name, kind.resource.plural).set(0)
        self._followed = set(followed)

    def _kinds_in_use(self) -> list[Kind]:
        """Those that series are for: the first one, and others once there has been something of them."""
        sources = self._mirroring.sources
        self._used.update(kind.name for kind in sources.kinds if len(sources.of(kind)))
        return [kind for kind in sources.kinds if kind.name in self._used]

    def _look_at_cron_jobs(self) -> None:
        found = self._mirroring.sources.unstarted()
        # RFC 3339 in UTC sorts as text: only the oldest is read.
        oldest = min((one.creation_timestamp or "" for one in found), default="")
        self._metrics.unstarted_cron_jobs.set(len(found))
        self._metrics.unstarted_cron_oldest.set(_age_seconds(oldest, self._clock.now()))

    def _describe_watches(self, cluster: str, informers: Iterable[Informer]) -> None:
        by_kind: defaultdict[str, list[Described]] = defaultdict(list)
        for informer in informers:
            by_kind[informer.resource.plural].append(informer.describe())
        for kind, described in by_kind.items():
            self._metrics.watch_staleness(cluster, kind).set(max(one.silent_for_seconds for one in described))
            self._metrics.set_watch_restarts(cluster, kind, sum(one.restarts for one in described))

    def _count_states(self, worker: Worker, kind: Kind) -> None:
        counts = {state: worker.watches.count_of(kind, state) for state in MIRROR_STATES}
        # Finished mirrors stay, their sources count no more: only those that go on are compared.
        going_on = counts["running"] + counts["suspended"]
        counts["creating"] = max(0, self._mirroring.sources.load_by_kind(worker.name, kind) - going_on)
        for state, count in counts.items():
            self._metrics.of_kind(worker.name, kind.name).mirrored_jobs[state].set(count)


def _age_seconds(created: str, now: datetime) -> float:
    return max(0.0, (now - datetime.fromisoformat(created)).total_seconds()) if created else 0.0
