"""One Job in a toy cluster: an API that checks statuses, pods that end when told to, the shell's requests in order.

Any request can be the last one before a crash, and any can be refused; what is stored then stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace
from syncs import ALL_GATES, NOW, Json

from mirror.batch import conditions
from mirror.batch.feature_gates import FeatureGates
from mirror.batch.status_rules import check_status_update
from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.facts import Facts
from mirror.jobcontroller.decide.track import settle, track
from mirror.jobcontroller.decide.values import (
    Assessment,
    BackoffRecord,
    Constants,
    Container,
    Done,
    Enacted,
    Pod,
    PodCondition,
    PodCreate,
    Snapshot,
    Status,
    Tracking,
)


class Crashed(Exception):
    """The controller is gone before its next request."""


class Refused(Exception):
    """A request failed; the sync ends with an error."""


NO_WAITING = Constants(pod_failure_backoff_seconds=0, max_uncounted_pods=4, max_pod_create_delete_per_sync=5)
QUIET_AFTER = 60


class Toy:
    """The cluster and, until it crashes, the controller."""

    def __init__(self, spec: Json, *, gates: FeatureGates = ALL_GATES, constants: Constants = NO_WAITING) -> None:
        self.spec = spec
        self.status: Status = {}
        self.pods: list[Pod] = []
        self.now: datetime = NOW
        self.gates = gates
        self.constants = constants
        self.is_deleting = False
        self.tracked_successes = 0
        """Pods that lost their finalizer to the tracking after they had succeeded: what must have been counted."""
        self.tracked_failures = 0
        self.log: list[str] = []
        """Requests and events, in their order, in the words of the reference's §5."""
        self.requests = 0
        self.crashes: set[int] = set()
        """The numbers of requests before which the controller crashes, once each."""
        self.refused: Collection[int] = ()
        self._backoff: BackoffRecord | None = None
        self._enacted: Enacted | None = None
        self._created = 0

    @property
    def is_finished(self) -> bool:
        return conditions.is_finished(self.status.get("conditions", ()))

    @property
    def outcome(self) -> Json:
        """What a user sees in the end."""
        found = self.status.get("conditions", ())
        verdicts = [(one["type"], one.get("reason"), one.get("message")) for one in found if one["status"] == "True"]
        fields = ("active", "terminating", "succeeded", "failed", "completedIndexes", "failedIndexes")
        return {name: self.status.get(name) for name in fields} | {"verdicts": verdicts}

    # What happens to the Job and its pods.

    def end(self, pod: Pod, phase: str, code: int, *, has: str = "") -> None:
        containers = (Container("main", exit_code=code, finished_at=self.now),)
        kept = tuple(one for one in pod.conditions if one.type == "DisruptionTarget")
        found = (PodCondition(has, "True", self.now),) if has else kept
        self._change(pod, phase=phase, containers=containers, conditions=found)

    def delete(self, pod: Pod) -> None:
        """What is unscheduled or has ended goes at once, unless a finalizer holds it."""
        if pod.deleted is None:
            self._change(pod, deleted=self.now)

    def evict(self, pod: Pod) -> None:
        """As a drain does it: whoever sees the pod can tell."""
        if pod.deleted is None:
            self._change(pod, conditions=(*pod.conditions, PodCondition("DisruptionTarget", "True", self.now)))
            self._change(pod, deleted=self.now)

    def make_ready(self, pod: Pod) -> None:
        self._change(pod, phase="Running", conditions=(PodCondition("Ready", "True", self.now),))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def active(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.is_active]

    def terminating(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.is_terminating]

    # What the controller does.

    def restart(self) -> None:
        """All that the process remembered is lost."""
        self._backoff = self._enacted = None

    def settle(self) -> None:
        """Sync until a sync changes nothing."""
        for _ in range(QUIET_AFTER):
            before = self.requests
            try:
                self.sync()
            except (Refused, Crashed):
                continue
            if self.requests == before:
                return
        raise AssertionError(f"never gets quiet: {self.spec} {self.status} {self.pods}")

    def sync(self, *, expectations_met: bool = True) -> None:
        if self.is_finished:
            return
        seen = self._snapshot(expectations_met=expectations_met)
        assessment = assess(seen)
        self._enacted = assessment.enacted
        tracking = track(seen, assessment, self._perform(assessment))
        self.log += [event.reason for event in tracking.events]
        if tracking.flush:
            self._store(tracking.status)
        self._backoff = tracking.backoff
        removed = self._let_go(tracking, assessment.facts)
        settled = settle(tracking, removed, self.now)
        if settled.flush:
            self._store(settled.status)
        self.log += [event.reason for event in settled.events]
        if len(removed) < len(tracking.removals):
            raise Refused

    def _let_go(self, tracking: Tracking, facts: Facts) -> set[str]:
        is_failure = conditions.is_true(tracking.status.get("conditions", ()), conditions.FAILURE_TARGET)
        removed = set()
        for pod in tracking.removals:
            if self._strip(pod.uid):
                removed.add(pod.uid)
                self.tracked_successes += pod.phase == "Succeeded"
                self.tracked_failures += pod.phase != "Succeeded" and (is_failure or facts.judge.is_failed(pod))
        return removed

    def _snapshot(self, *, expectations_met: bool) -> Snapshot:
        return Snapshot(
            key="n/train",
            uid="job",
            spec=self.spec,
            status=self.status,
            annotations={},
            is_deleting=self.is_deleting,
            pods=[pod for pod in self.pods if pod.has_finalizer or not pod.is_finished],
            settled_failed=[pod for pod in self.pods if pod.phase == "Failed" and not pod.has_finalizer],
            expectations_met=expectations_met,
            backoff=self._backoff,
            enacted=self._enacted,
            now=self.now,
            constants=self.constants,
            gates=self.gates,
        )

    def _perform(self, assessment: Assessment) -> Done:
        deleted = [pod for pod in assessment.deletes if self._delete_one(pod, strips_first=assessment.strips_first)]
        created = 0
        for birth in assessment.births:
            if not self._request():
                break
            self._bear(birth)
            created += 1
        return Done(
            deleted=len(deleted),
            deleted_ready=sum(pod.is_ready for pod in assessment.deletes),
            created=created,
            complete=len(deleted) == len(assessment.deletes) and created == len(assessment.births),
        )

    def _delete_one(self, pod: Pod, *, strips_first: bool) -> bool:
        if strips_first and pod.has_finalizer and not self._strip(pod.uid):
            return False
        if not self._request():
            return False
        self.log.append("DELETE")
        for found in self.pods:
            if found.uid == pod.uid:
                self.delete(found)
        return True

    def _bear(self, birth: PodCreate) -> None:
        self._created += 1
        self.log.append("POST" if birth.index is None else f"POST {birth.index}")
        self.pods.append(
            Pod(
                uid=f"uid-{self._created}",
                name=f"train-{self._created}",
                namespace="n",
                phase="Pending",
                node="node",
                created=self.now,
                index=birth.index,
                index_failures=birth.index_failures or 0,
                index_ignored_failures=birth.index_ignored_failures or 0,
            )
        )

    def _strip(self, uid: str) -> bool:
        if not self._request():
            return False
        self.log.append("fin-")
        for pod in self.pods:
            if pod.uid == uid:
                self._change(pod, has_finalizer=False)
        return True

    def _store(self, status: Status) -> None:
        """As an API server does, which refuses what breaks the rules."""
        if not self._request():
            raise Refused
        violations = check_status_update({"spec": self.spec, "status": self.status}, status)
        assert violations == [], (violations, self.spec, self.status, status)
        self.log.append(f"S{{{_changes(self.status, status)}}}")
        self.status = status

    def _request(self) -> bool:
        """Whether this request succeeds."""
        if self.requests in self.crashes:
            self.crashes.remove(self.requests)
            self.restart()
            raise Crashed
        self.requests += 1
        return self.requests not in self.refused

    def _change(self, pod: Pod, **changes: Any) -> None:
        self.pods = [_changed(one, changes) if one.uid == pod.uid else one for one in self.pods]
        self.pods = [one for one in self.pods if not _is_gone(one)]


def _changed(pod: Pod, changes: Json) -> Pod:
    return replace(pod, **changes)


def _changes(old: Status, new: Status) -> str:
    """What is new in a status, briefly."""
    counters = ("active", "ready", "terminating", "succeeded", "failed")
    words = [f"{name} {new.get(name, 0)}" for name in counters if new.get(name, 0) != old.get(name, 0)]
    for name in ("succeeded", "failed"):
        before, after = (len(one.get("uncountedTerminatedPods", {}).get(name, ())) for one in (old, new))
        if before != after:
            words.append(f"uncounted.{name} {after}")
    for name in ("startTime", "completionTime", "completedIndexes", "failedIndexes"):
        if new.get(name) != old.get(name):
            shown = f" {new[name]}" if name.endswith("Indexes") and name in new else ""
            words.append(f"{'' if name in new else 'no '}{name}{shown}")
    added = [one for one in new.get("conditions", ()) if one not in old.get("conditions", ())]
    return ", ".join([*words, *(f"+{one['type']} {one['status']} {one.get('reason', '')}" for one in added)])


def _is_gone(pod: Pod) -> bool:
    return pod.deleted is not None and not pod.has_finalizer and (pod.is_finished or not pod.node)


def choose(found: Iterable[Pod], number: int) -> Pod | None:
    """One of the pods, if there is any."""
    listed = list(found)
    return listed[number % len(listed)] if listed else None
