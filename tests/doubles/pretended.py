"""``model.views.Known`` without a manager: what a test puts in is known, so that the page meets what is rare.

Used by ``tests/page`` and by ``e2e/test_page.py`` for hostile texts, many Jobs and a picture of every state.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from mirror.model.keys import SourceKey
from mirror.model.views import JobView, Moment, WorkerView

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
_STATES = (
    "Running",
    "Complete",
    "Complete",
    "Complete",
    "Failed",
    "Waiting",
    "Placed",
    "Suspended",
    "Running",
    "Complete",
)


def before(*, now: datetime = NOW, **past: float) -> str:
    """A time as views have it: ``before(minutes=3)``."""
    return (now - timedelta(**past)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Pretended:
    """What is known; change it with ``put``, ``drop`` and ``put_worker``."""

    def __init__(self) -> None:
        self.by_name: dict[str, WorkerView] = {}
        self.by_key: dict[SourceKey, JobView] = {}
        self.stories: dict[SourceKey, tuple[Moment, ...]] = {}
        self.obstacles: dict[SourceKey, dict[str, str]] = {}
        self.elsewhere: dict[SourceKey, str] = {}
        self.owners = ""
        self.read = 0
        """How many Jobs were asked for."""
        self._readers: list[_Changes] = []

    def put(self, job: JobView, *story: Moment) -> JobView:
        """A Job as it is now, and what happened to it last."""
        key = SourceKey(job.kind, job.namespace, job.name)
        self.by_key[key] = job
        self.stories[key] = self.stories.get(key, ()) + story
        self._tell({key})
        return job

    def drop(self, namespace: str, name: str) -> None:
        """A Job is gone."""
        key = SourceKey("Job", namespace, name)
        del self.by_key[key]
        self._tell({key})

    def put_worker(self, worker: WorkerView) -> None:
        """A worker as it is now."""
        self.by_name[worker.name] = worker
        self._tell(set())

    @property
    def readers(self) -> int:
        """How many follow the changes."""
        return len(self._readers)

    # -- views.Known -------------------------------------------------------------------------------------------------

    def workers(self) -> tuple[WorkerView, ...]:
        return tuple(worker for _, worker in sorted(self.by_name.items()))

    def jobs(
        self, namespace: str | None = None, *, kind: str | None = None, most: int | None = None
    ) -> tuple[JobView, ...]:
        found = [job for job in self.by_key.values() if namespace in (None, job.namespace) and kind in (None, job.kind)]
        return tuple(sorted(found, key=lambda job: job.created, reverse=True)[:most])

    def keys(self) -> tuple[SourceKey, ...]:
        return tuple(self.by_key)

    def job(self, key: SourceKey) -> JobView | None:
        self.read += 1
        return self.by_key.get(key)

    def timeline(self, key: SourceKey) -> tuple[Moment, ...]:
        return self.stories.get(key, ())

    def kept_elsewhere(self, key: SourceKey) -> str:
        return self.elsewhere.get(key, "")

    def ownership(self) -> Hashable:
        return self.owners

    def placement_obstacles(self, key: SourceKey) -> Mapping[str, str]:
        return self.obstacles.get(key, {})

    def changes(self) -> AsyncIterator[frozenset[SourceKey]]:
        reader = _Changes(self._readers)
        self._readers.append(reader)
        return reader

    def _tell(self, keys: set[SourceKey]) -> None:
        for reader in self._readers:
            reader.tell(keys)


class _Changes(AsyncIterator[frozenset[SourceKey]]):
    def __init__(self, readers: list[_Changes]) -> None:
        self._readers = readers
        self._keys: set[SourceKey] = set()
        self._news = asyncio.Event()

    def tell(self, keys: set[SourceKey]) -> None:
        self._keys |= keys
        self._news.set()

    async def __anext__(self) -> frozenset[SourceKey]:
        try:
            await self._news.wait()
        except asyncio.CancelledError:
            self._readers.remove(self)  # who is cancelled here reads no more
            raise
        self._news.clear()
        changed, self._keys = frozenset(self._keys), set()
        return changed


def job(name: str, state: str = "Running", *, namespace: str = "default", **changes: object) -> JobView:
    """A Job with what its state needs."""
    has_ended = state in ("Complete", "Failed")
    has_begun = has_ended or state in ("Running", "Placed")
    made = JobView(
        namespace=namespace,
        name=name,
        uid=f"uid-of-{name}",
        state=state,
        worker="east" if has_begun else "",
        created=before(minutes=10),
        started=before(minutes=9, seconds=58) if has_begun and state != "Placed" else "",
        finished=before(minutes=2) if has_ended else "",
        active=int(state == "Running"),
        succeeded=int(state == "Complete"),
        failed=int(state == "Failed"),
        completions=1,
    )
    return msgspec.structs.replace(made, **changes)


def many(count: int) -> Pretended:
    """Jobs of all kinds on three workers, over some namespaces."""
    known = Pretended()
    for number, name in enumerate(("east", "north", "west")):
        known.by_name[name] = WorkerView(name=name, state="Connected", since=before(hours=number + 1), jobs=count // 9)
    for number in range(count):
        state, namespace = _STATES[number % len(_STATES)], f"team-{number % 7}"
        worker = "" if state in ("Waiting", "Suspended") else ("east", "north", "west")[number % 3]
        made = job(f"job-{number:05d}", state, namespace=namespace, worker=worker, created=before(seconds=number))
        known.by_key[SourceKey("Job", namespace, made.name)] = made
    return known


def picture(now: datetime = NOW) -> Pretended:
    """Few Jobs and workers, in every state there is, as they could be on some day; a pleasure to look at."""
    known = Pretended()

    def ago(**past: float) -> str:
        return before(now=now, **past)

    version = "v1.36.3"
    for worker in (
        WorkerView(name="east", state="Connected", since=ago(days=6, hours=3), jobs=18, capacity=40, version=version,
                   labels={"region": "eu", "tier": "general"}, token_expires=ago(hours=-17)),
        WorkerView(name="gpu-frankfurt", state="Connected", since=ago(hours=5), jobs=8, capacity=8, weight=2.5,
                   labels={"region": "eu", "gpu": "a100"}, version="v1.35.1", token_expires=ago(hours=-2)),
        WorkerView(name="north", state="Lost", since=ago(days=2), lost_since=ago(minutes=4, seconds=12), jobs=3,
                   because="cannot connect to 10.20.0.14:6443: connection refused", version=version,
                   labels={"region": "north"}),
        WorkerView(name="west", state="Connected", since=ago(days=1), jobs=7, cordoned=True, draining=True,
                   labels={"region": "us"}, version=version, token_expires=ago(days=-20)),
    ):  # fmt: skip
        known.by_name[worker.name] = worker
    for index, (namespace, name, state, place, made, extra) in enumerate(_day(now)):
        begun = state not in ("Waiting", "Suspended", "Placed")
        one = JobView(
            namespace=namespace,
            name=name,
            uid=f"5b0c7c1e-4d6a-4f0e-9a56-{index:012d}",
            state=state,
            worker=place,
            created=ago(seconds=made),
            started=ago(seconds=made - 1) if begun else "",
            finished=ago(seconds=made - min(made * 0.7, 900 + index % 7 * 260))
            if state in ("Complete", "Failed")
            else "",
        )
        known.by_key[SourceKey("Job", namespace, name)] = msgspec.structs.replace(one, **extra)
    known.stories[SourceKey("Job", "research", "train-resnet-large")] = (
        Moment(at=ago(minutes=42), kind="Created", text=""),
        Moment(at=ago(minutes=42), kind="Held", text="suspended until a worker is chosen"),
        Moment(at=ago(minutes=42), kind="Waiting", text="east: capacity reached; gpu-frankfurt: capacity reached"),
        Moment(
            at=ago(minutes=35),
            kind="Placed",
            text="lowest load of the eligible workers (next: gpu-paris)",
            worker="gpu-frankfurt",
        ),
        Moment(at=ago(minutes=35), kind="Mirrored", text="Job created on worker", worker="gpu-frankfurt"),
        Moment(at=ago(minutes=34, seconds=58), kind="Status", text="active 8, ready 8", worker="gpu-frankfurt"),
        Moment(at=ago(minutes=21), kind="Lost", text="no answer for 15 s", worker="gpu-frankfurt"),
        Moment(at=ago(minutes=20, seconds=30), kind="Back", text="", worker="gpu-frankfurt"),
        Moment(at=ago(minutes=9), kind="Error", text="status refused: conflict; tried again", worker="gpu-frankfurt"),
        Moment(at=ago(seconds=40), kind="Status", text="active 8, ready 8, succeeded 24", worker="gpu-frankfurt"),
    )
    known.obstacles[SourceKey("Job", "research", "embed-corpus-7")] = {
        "east": "does not match gpu=a100",
        "gpu-frankfurt": "capacity reached: 8 of 8 Jobs",
        "north": "unreachable for 4 minutes",
        "west": "cordoned",
    }
    known.stories[SourceKey("Job", "research", "embed-corpus-7")] = (
        Moment(at=ago(minutes=3), kind="Created", text=""),
        Moment(at=ago(minutes=3), kind="Waiting", text="no worker takes it: capacity reached (gpu-frankfurt)"),
    )
    return known


def _day(now: datetime) -> list[tuple[str, str, str, str, float, dict[str, object]]]:
    """Namespace, name, state, worker, how many seconds ago it was created, what else."""
    waits = {
        "because": "east: does not match gpu=a100; gpu-frankfurt: capacity reached; west: cordoned",
        "reason": "WorkersFull",
        "labels": {"team": "research", "gpu": "a100"},
    }
    stuck = {
        "because": "1 pod: ImagePullBackOff: registry.example.com/report:2.4 not found",
        "reason": "ImagePullBackOff",
        "obstructed_at": before(now=now, minutes=3),
    }
    lost = {
        "because": "worker north is unreachable: connection refused",
        "active": 4,
        "completions": 12,
        "succeeded": 5,
    }
    rows: list[tuple[str, str, str, str, float, dict[str, object]]] = [
        ("web", "thumbnails-28841", "Running", "east", 6, {"active": 5, "completions": 50, "succeeded": 12}),
        ("web", "sitemap-29411", "Placed", "west", 9, {"completions": 1}),
        ("billing", "invoices-november", "Complete", "east", 75, {"succeeded": 30, "completions": 30}),
        ("research", "embed-corpus-7", "Waiting", "", 180, {**waits, "completions": 4}),
        ("research", "embed-corpus-6", "Waiting", "", 185, {**waits, "completions": 4}),
        ("billing", "reconcile-2026-11-20", "Failed", "west", 320,
         {"failed": 3, "completions": 1, "because": "BackoffLimitExceeded"}),
        ("billing", "report-weekly", "Running", "east", 400, {**stuck, "active": 1, "completions": 6, "succeeded": 2}),
        ("research", "embed-corpus-5", "Waiting", "", 450,
         {"because": "no worker matches gpu=h100", "reason": "NoMatchingWorker", "completions": 4}),
        ("data", "ingest-eu-00317", "Running", "north", 610, lost),
        ("data", "ingest-eu-00316", "Complete", "east", 890, {"succeeded": 12, "completions": 12}),
        ("data", "vacuum-warehouse", "Suspended", "", 1500, {"because": "", "completions": 1}),
        ("research", "train-resnet-large", "Running", "gpu-frankfurt", 2520,
         {"active": 8, "succeeded": 24, "failed": 1, "completions": 64, "lag_seconds": 12.0}),
        ("web", "cleanup-old-uploads", "Deleting", "east", 4000, {"active": 1, "completions": 1}),
    ]  # fmt: skip
    for number in range(40):
        worker = ("east", "west", "gpu-frankfurt")[number % 3]
        failed = number % 13 == 5
        rows.append(
            ("data", f"nightly-aggregate-{number:03d}", "Failed" if failed else "Complete", worker, 5000 + number * 700,
             {"succeeded": 0 if failed else 8, "failed": 2 if failed else 0, "completions": 8,
              "because": "DeadlineExceeded" if failed else ""})
        )  # fmt: skip
    return rows
