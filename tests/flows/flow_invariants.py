"""What must hold at every single write, on every cluster, whatever happens (D1–D15, and what a Job promises).

``Invariants`` sees each write at the moment when it is done, with who did it. It only collects what is wrong, since it
runs inside the API servers; tests ask ``check`` after each step. What must hold when all is quiet is ``flow_settled``.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from doubles.managers import conditions, placed
from flow_world import MANAGER, FlowWorld, has_ended

from mirror.batch import indexes
from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Event
from mirror.embedded.apiserver.storage.subscriptions import Subscription
from mirror.embedded.faults.targets import Target
from mirror.model import names
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane

JOBS, PODS = "jobs.batch", "pods"
JOB_CONTROLLER = "job"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
MANAGEMENT = "management"

decoded = msgspec.json.Decoder(dict[str, Any]).decode


class Invariants:
    """Looks over everybody's shoulder."""

    def __init__(self, world: FlowWorld) -> None:
        self.world = world
        self.violations: list[str] = []
        self.on_wrong: Callable[[], object] | None = None
        """Told of each."""
        self.writes = 0
        self.written_by: defaultdict[str, int] = defaultdict(int)
        """Writes of Jobs and pods, by peer."""
        self.latest: deque[str] = deque(maxlen=10)
        """The manager's last writes."""
        self.sources: dict[str, Json] = {}
        """By uid, as stored now."""
        self.placed_on: defaultdict[str, set[str]] = defaultdict(set)
        """The workers that were ever recorded on a source."""
        self.created_on: defaultdict[str, set[str]] = defaultdict(set)
        """The workers on which a source ever had a mirror."""
        self.live: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """Mirrors that may run pods, as (worker, uid), by the uid of their source."""
        self._source_of: dict[str, str] = {}
        """By a mirror's uid."""
        self.counted: defaultdict[str, dict[str, set[str]]] = defaultdict(lambda: {"succeeded": set(), "failed": set()})
        """Uids of pods that were ever listed as ended, by the uid of their Job."""
        self.begun_with: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """What a Job had counted before its first pod, by its uid: of one that was moved, what its source had."""
        self._pods: dict[str, dict[str, Json]] = defaultdict(dict)
        """Pods that neither ended nor are going, by uid, by cluster."""
        self._widest: defaultdict[str, int] = defaultdict(int)
        """The largest parallelism that a Job ever had, by its uid."""
        self._fewest: dict[str, int] = {}
        """The fewest completions that a Job ever had, by its uid: who is behind judges by them."""
        self._readers: dict[tuple[str, str], tuple[Storage, Subscription]] = {}
        for plane in world.planes.values():
            plane.faults.on_answer = self._listener(plane)
            for stored_as in (JOBS, PODS):
                self._events(plane, stored_as)

    def check(self) -> None:
        """Raise AssertionError if something was ever wrong."""
        assert not self.violations, "\n".join(self.violations)

    def _listener(self, plane: ControlPlane) -> Callable[[Request, Target, Answer], None]:
        def on_answer(request: Request, target: Target, answer: Answer) -> None:
            if request.method == "GET":
                return
            self.read(plane, request)
            if answer.status == 422 and request.peer == MANAGER and target.subresource == "status":
                self._wrong(f"D7: a status of ours is refused: {getattr(answer, 'body', b'')[:1500]!r}")

        return on_answer

    def read(self, plane: ControlPlane, request: Request) -> None:
        """Judge what was written since the last look as what this request has done."""
        for stored_as in (JOBS, PODS):
            for event in self._events(plane, stored_as):
                self._look(plane, stored_as, event, request)

    def _events(self, plane: ControlPlane, stored_as: str) -> list[Event]:
        """What was written since the last look."""
        key, storage = (plane.name, stored_as), plane.storage
        reader = self._readers.get(key)
        if reader is None or reader[0] is not storage:
            reader = self._readers[key] = storage, storage.watch(stored_as, storage.version)
        return reader[1].take()

    def _look(self, plane: ControlPlane, stored_as: str, event: Event, request: Request) -> None:
        self.writes += 1
        self.written_by[request.peer] += 1
        if request.peer == MANAGER:
            self.latest.append(f"{self.world.clock.now():%H:%M:%S} {plane.name} {request.path} {request.body[:300]!r}")
        old = None if event.previous is None else decoded(event.previous.raw)
        new = None if event.is_deletion else decoded(event.record.raw)
        uid = event.record.uid
        if stored_as == PODS:
            self._look_at_pod(plane, uid, old, new, request)
            return
        self._look_at_job(uid, new)
        if self._is_source(plane, event.record.namespace):
            self._look_at_source(uid, old, new, request)
        else:
            self._look_at_mirror(plane.name, uid, old, new, request)

    def _is_source(self, plane: ControlPlane, namespace: str) -> bool:
        """Whether a Job there is no mirror."""
        return plane.name == MANAGEMENT

    def _wrong(self, text: str) -> None:
        self.violations.append(f"{self.world.clock.now():%H:%M:%S} {text}")
        if self.on_wrong is not None:
            self.on_wrong()

    # -- sources -------------------------------------------------------------------------------------------------------

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        if new is None:
            self.sources.pop(uid, None)
            if request.peer == MANAGER:
                self._wrong("nobody told the manager to delete a source")
            return
        self.sources[uid] = new
        worker, before = placed(new), placed(old)
        if worker is not None:
            self.placed_on[uid].add(worker)
        if old is None:
            return
        name = new["metadata"]["name"]
        if request.peer == MANAGER:
            if old["spec"].get("managedBy") != names.DEFAULT_MANAGED_BY:
                self._wrong(f"D1: the manager changed {name}, whose managedBy is another")
            if old["spec"] != new["spec"] and not _is_release(old, new):
                self._wrong(f"D3: the manager changed the spec of source {name}")
            for field in ("finalizers", "ownerReferences", "labels"):
                if old["metadata"].get(field) != new["metadata"].get(field):
                    self._wrong(f"D10: the manager changed {field} of source {name}")
        if before is not None and worker != before and self._was_created(uid, before):
            self._wrong(f"D1, D13: {name} was moved from {before}, where it has a mirror, to {worker}")
        if has_ended(old) and not has_ended(new):
            self._wrong(f"D7: {name} has ended, and then it has not")

    def _was_created(self, source_uid: str, worker: str) -> bool:
        """Whether it ever had a mirror on the worker that is recorded."""
        return worker in self.created_on[source_uid]

    # -- mirrors -------------------------------------------------------------------------------------------------------

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        body = new or old
        assert body is not None
        labels = (old or body)["metadata"].get("labels") or {}
        # Whose it is stays true when somebody takes its labels away, and deletes it afterwards.
        source_uid = (body["metadata"].get("labels") or {}).get(names.SOURCE_UID) or labels.get(names.SOURCE_UID)
        source_uid = self._source_of.setdefault(uid, source_uid) if source_uid else self._source_of.get(uid, "")
        if source_uid:
            self.live[source_uid].discard((worker, uid))
            if new is not None and not has_ended(new) and "deletionTimestamp" not in new["metadata"]:
                self.live[source_uid].add((worker, uid))
        if request.peer != MANAGER:
            return
        name = body["metadata"]["name"]
        if old is None:
            self._look_at_new_mirror(worker, uid, source_uid, body)
        elif labels.get(names.ORIGIN) != self.world.origin and not self._was_ours(source_uid, worker):
            self._wrong(f"D1: the manager touched {name} on {worker}, which is not its own")
        elif new is None or ("deletionTimestamp" in new["metadata"]) > ("deletionTimestamp" in old["metadata"]):
            self._look_at_deletion(worker, uid, source_uid, name)

    def _was_ours(self, source_uid: str, worker: str) -> bool:
        """Whether somebody has only taken the labels away."""
        return worker in self.created_on[source_uid]

    def _look_at_new_mirror(self, worker: str, uid: str, source_uid: str, body: Json) -> None:
        metadata, spec = body["metadata"], body["spec"]
        name = metadata["name"]
        self.created_on[source_uid].add(worker)
        if worker not in self.placed_on[source_uid]:
            self._wrong(f"D5: {name} was created on {worker} before that was recorded")
        others = self.live[source_uid] - {(worker, uid)}
        if others:
            self._wrong(f"D2: {name} has mirrors on {worker} and as {others}")
        for problem in _not_stripped(metadata, spec, self.world.origin):
            self._wrong(f"D4: the mirror of {name} has {problem}")

    def _look_at_deletion(self, worker: str, uid: str, source_uid: str, name: str) -> None:
        source = self.sources.get(source_uid)
        if source is None or "deletionTimestamp" in source["metadata"] or has_ended(source):
            return
        recorded = (source["metadata"].get("annotations") or {}).get(names.MIRROR_UID)
        if placed(source) == worker and recorded in (None, uid):
            self._wrong(f"D8: the mirror of {name} on {worker} was deleted while its source lives and has not ended")

    # -- Jobs and pods -------------------------------------------------------------------------------------------------

    def _look_at_job(self, uid: str, job: Json | None) -> None:
        if job is None:
            return
        self._widest[uid] = max(self._widest[uid], job["spec"].get("parallelism", 1))
        completions = job["spec"].get("completions") or 0
        self._fewest[uid] = min(self._fewest.get(uid, completions), completions)
        uncounted = (job.get("status") or {}).get("uncountedTerminatedPods") or {}
        for kind, uids in self.counted[uid].items():
            uids.update(uncounted.get(kind) or ())

    def _look_at_pod(self, plane: ControlPlane, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        pods = self._pods[plane.name]
        pods.pop(uid, None)
        if new is not None and _is_active(new):
            pods[uid] = new
        if request.peer != JOB_CONTROLLER:
            return
        pod = new or old
        assert pod is not None
        owner = _owner(pod)
        if old is None and owner:
            self._look_at_new_pod(plane.name, pod, owner, pods)
        elif old is not None and _is_tracked(old) and (new is None or not _is_tracked(new)):
            self._look_at_released_pod(plane, uid, old, owner)

    def _look_at_new_pod(self, cluster: str, pod: Json, owner: str, pods: dict[str, Json]) -> None:
        siblings = [one for one in pods.values() if _owner(one) == owner]
        if len(siblings) > self._widest[owner]:
            self._wrong(f"Q2: {len(siblings)} active pods of one Job on {cluster}, parallelism {self._widest[owner]}")
        indexes = [one["metadata"].get("annotations", {}).get(INDEX) for one in siblings]
        index = pod["metadata"].get("annotations", {}).get(INDEX)
        if index is not None and indexes.count(index) > 1:
            self._wrong(f"Q2: two active pods of index {index} on {cluster}")

    def _look_at_released_pod(self, plane: ControlPlane, uid: str, pod: Json, owner: str) -> None:
        if pod["status"].get("phase") not in ("Succeeded", "Failed"):
            return
        namespace = pod["metadata"]["namespace"]
        record = next((one for one in plane.storage.records(JOBS, namespace) if one.uid == owner), None)
        if record is None:
            return
        job = decoded(record.raw)
        is_counted = any(uid in uids for uids in self.counted[owner].values()) or _is_index_done(job, pod)
        if "deletionTimestamp" in pod["metadata"] and "SuccessCriteriaMet" in conditions(job):
            return  # nor is what success ends, if it was active then (Z2)
        if _is_beyond(self._fewest[owner], pod):
            return  # nor what a Job was scaled down from (Y10), though it may have grown again, unseen
        if any(rule["action"] == "Ignore" for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
            return  # nor is what its user said to ignore
        if not is_counted and not has_ended(job) and "deletionTimestamp" not in job["metadata"]:
            name, status = pod["metadata"]["name"], job.get("status")
            self._wrong(f"T9: pod {name} ({uid}) on {plane.name} is let go before it was counted: {pod} of {status}")


def _is_beyond(completions: int, pod: Json) -> bool:
    """Whether a Job of so many completions has no such index."""
    index = pod["metadata"].get("annotations", {}).get(INDEX)
    return index is not None and int(index) >= completions


def _not_stripped(metadata: Json, spec: Json, origin: str) -> Iterator[str]:
    """What a new mirror must not have, or lacks (D4)."""
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if labels.get(names.ORIGIN) != origin:
        yield "another origin"
    for field in ("managedBy", "ttlSecondsAfterFinished"):
        if field in spec:
            yield f"spec.{field}"
    yield from (field for field in ("finalizers", "ownerReferences") if metadata.get(field))
    ours = (key for key in (*labels, *annotations) if key.startswith(names.PREFIX))
    yield from (key for key in ours if key not in KEPT)
    template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    others = [
        value for key, value in template_labels.items() if key != names.SOURCE_UID
    ]  # ours, where pods are watched
    if labels.get(names.SOURCE_UID) in others:
        yield "labels that were generated for its source"


KEPT = (names.ORIGIN, names.SOURCE_UID, names.MANAGEMENT_UID, names.CARRIED, names.RULE_NAMES, names.SEED, names.FENCE)
"""Labels and annotations of ours that mirrors have."""


def counters_that_fell(old: Json, new: Json) -> Iterator[str]:
    """What a source has counted less of than before, though its mirror counts on."""
    before, after = old.get("status") or {}, new.get("status") or {}
    for counter in ("succeeded", "failed"):
        if after.get(counter, 0) < before.get(counter, 0) and "completionMode" not in new["spec"]:
            yield f"{counter} went from {before[counter]} to {after.get(counter, 0)}"


def _is_active(pod: Json) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and "deletionTimestamp" not in pod["metadata"]


def _is_index_done(job: Json, pod: Json) -> bool:
    """Whether its success is noted as that of its index, which stands for the uids of all its pods."""
    index = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    done = (job.get("status") or {}).get("completedIndexes") or ""
    if not index.isdecimal() or pod["status"].get("phase") != "Succeeded":
        return False
    return any(first <= int(index) <= last for first, last in indexes.read(done, 10**6))


def _is_tracked(pod: Json) -> bool:
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def _owner(pod: Json) -> str:
    """The uid of the Job that controls it."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), "")


def _is_release(old: Json, new: Json) -> bool:
    """A Job that was held is unsuspended where it is placed, and loses its mark; nothing else changes (D16)."""
    marks = [(one["metadata"].get("annotations") or {}).get(names.HELD) for one in (old, new)]
    specs = [{**one["spec"], "suspend": None} for one in (old, new)]
    suspended = [one["spec"].get("suspend") for one in (old, new)]
    return marks == ["true", None] and specs[0] == specs[1] and suspended == [True, False] and placed(old) is not None
