"""``base.Kind`` of batch/v1 Jobs: each method hands on to the module that knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mirror.batch.rule_names import BadRuleNames
from mirror.kinds.base import BadAnnotation, Changes, Json, MirrorTransform, is_held
from mirror.kinds.batch_job import (
    body,
    changes,
    differences,
    manifests,
    needs,
    reading,
    retry,
    rule_names,
    seeding,
    status_moved,
    status_own,
    stopping,
    timeline,
    trace,
)
from mirror.kinds.batch_job.fence import JobFence
from mirror.kinds.batch_job.retry import JobRetry
from mirror.kinds.batch_job.spec_facts import facts_of
from mirror.kinds.batch_job.status import next_status
from mirror.kinds.batch_job.status_stored import StoredJob
from mirror.kinds.dependencies import Reference
from mirror.kinds.pod_roles import NO_ROLES
from mirror.kinds.report import Report
from mirror.kinds.stored_source import NextStatus, Status
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS, Resource
from mirror.model import names
from mirror.model.moves import Moves
from mirror.model.reasons import Obstruction
from mirror.model.retries import Retries
from mirror.model.views import Moment
from mirror.telemetry.spans import Span


class JobSource(StoredJob, frozen=True):
    """``base.StoredSource`` of a Job."""

    def next_status(
        self,
        mirror: Object,
        *,
        now: datetime,
        mirror_suspended: bool = False,
        clock_offset_seconds: float | None = None,
        settled: bool = False,
    ) -> NextStatus:
        return next_status(
            self,
            rule_names.named(mirror, mirror.status_dict()),
            now=now,
            mirror_suspended=mirror_suspended,
            clock_offset_seconds=clock_offset_seconds,
            settled=settled,
        )

    def suspended_status(self, now: datetime) -> Status | None:
        return status_own.suspended_status(self, now)

    def lost_status(self, now: datetime, *, message: str, reason: str) -> Status | None:
        return status_own.lost_status(self, now, message=message, reason=reason)

    def placed_status(self, worker: str | None, now: datetime) -> Status | None:
        return status_own.placed_status(self, worker, now)

    def leaving_status(
        self, status: Mapping[str, Any] | None, worker: str, mirror_uid: str, now: datetime
    ) -> Status | None:
        return status_moved.leaving_status(self, status, worker, mirror_uid, now)

    def moved_status(
        self, moves: Moves, now: datetime, *, is_drained: bool = False, because: str = ""
    ) -> Status | None:
        return status_moved.moved_status(self, moves, now, is_drained=is_drained, because=because)

    def retrying_status(self, status: Mapping[str, Any] | None, retries: Retries, now: datetime) -> Status | None:
        return retry.retrying_status(self, status, retries, now)

    def retried_status(self, retries: Retries, now: datetime) -> Status | None:
        return retry.retried_status(self, retries, now)

    @property
    def has_seed(self) -> bool:
        return seeding.has_seed(self)

    def seeded_status(self, mirror: Object) -> Status | None:
        return seeding.seeded_status(self, mirror)

    def returned_status(self, status: Mapping[str, Any] | None, worker: str, moves: Moves, now: datetime) -> Status:
        return status_moved.returned_status(self, status, worker, moves, now)

    def mirrored_status(self, status: Mapping[str, Any] | None, mirror_uid: str, now: datetime) -> Status:
        return status_own.mirrored_status(self, status, mirror_uid, now)

    def explained_status(
        self, status: Mapping[str, Any] | None, why: Obstruction | None, *, is_placed: bool, now: datetime
    ) -> Status | None:
        return status_own.explained_status(self, status, why, is_placed=is_placed, now=now)


class BatchJob:
    """See ``base.Kind``."""

    resource: Resource = JOBS
    name = JOBS.kind
    short_names: tuple[str, ...] = ()
    managed_by_field = "spec.managedBy"
    managed_by_value = ""
    pod_index = reading.POD_INDEX
    pod_roles = NO_ROLES
    pod_owners: tuple[Resource, ...] = ()
    needed: tuple[Resource, ...] = ()
    keeps_metadata_in_status = True
    records_by_annotation = False
    never_ends = False
    counts_pods = True
    counts_ready = True
    honoured_since = ""
    unusable: tuple[str, ...] = ()
    has_time_to_live = False
    can_move = True
    fence = JobFence()
    retry = JobRetry()
    can_vanish = False

    # -- what an object says -------------------------------------------------------------------------------------------

    managed_by = staticmethod(reading.managed_by)
    is_suspended = staticmethod(reading.is_suspended)
    summary = staticmethod(reading.summary)
    progress = staticmethod(reading.progress)
    priority_class = staticmethod(reading.priority_class)
    has_unready_pods = staticmethod(reading.has_unready_pods)
    lacks_pods = staticmethod(reading.lacks_pods)
    is_unstarted = staticmethod(reading.is_unstarted)
    is_final = staticmethod(reading.is_final)

    def doubt_schema(self) -> None:
        """Its definition is known."""

    def as_stored(self, status: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
        return status, None

    def seconds_to_live(self, source: Object) -> float | None:
        """kube-controller-manager sees to it."""
        return None

    def stored(self, found: Object) -> JobSource:
        facts = facts_of(found.spec)
        spec = found.spec_dict() if facts.asked is None else facts.asked
        return JobSource.of(spec, found.status_dict(), wanted=facts.wanted)

    def check(self, found: Object) -> None:
        try:
            rule_names.check(found)
        except BadRuleNames as error:
            raise BadAnnotation(f"annotation {names.RULE_NAMES}: {error}") from error

    @property
    def own_annotations(self) -> Mapping[str, Callable[[Object], str]]:
        return {names.RULE_NAMES: rule_names.problem}

    def is_awaited_by_cron_job(self, found: Object) -> bool:
        metadata = found.metadata
        owners = metadata.owner_references
        if not owners or not any(owner.kind == "CronJob" and owner.controller for owner in owners):
            return False
        if metadata.deletion_timestamp is not None or b'"startTime"' in bytes(found.status):
            return False
        waits_for_user = self.is_suspended(found) and not is_held(self, found)
        return not waits_for_user and not self.summary(found).is_finished

    # -- the mirror ----------------------------------------------------------------------------------------------------

    def mirror_body(self, source: Object, *, namespace: str, transform: MirrorTransform) -> dict[str, Json]:
        return body.mirror_body(source, namespace=namespace, transform=transform)

    def stopping(self, mirror: Object) -> tuple[Mapping[str, Any], ...]:
        return stopping.operations(mirror)

    def has_stopped(self, mirror: Object) -> bool:
        return stopping.has_stopped(mirror)

    def is_resuming(self, mirror: Object) -> bool:
        return stopping.is_resuming(mirror)

    def ends_when_suspended(self, mirror: Object) -> bool:
        return stopping.ends_when_suspended(mirror)

    def has_succeeded(self, found: Object) -> bool:
        return stopping.has_succeeded(found)

    def held_body(self, body: dict[str, Json]) -> dict[str, Json]:
        return seeding.held_body(body)

    def is_held_for_seed(self, mirror: Object) -> bool:
        return seeding.is_held(mirror)

    def has_ended_for_now(self, found: Object) -> bool:
        return False

    def is_as_sent(self, body: Mapping[str, Json], created: Object) -> bool:
        return changes.is_as_sent(body, created)

    def changes(self, source: Object, mirror: Object, *, transform: MirrorTransform) -> Changes | None:
        return changes.changes(source, mirror, transform=transform)

    def dry_run_body(self) -> dict[str, Json]:
        return manifests.dry_run_body()

    def references(self, source: Object) -> tuple[Reference, ...]:
        return needs.references(source)

    def requirements(self, source: Object) -> tuple[Reference, ...]:
        return needs.requirements(source)

    def claim_operations(self, found: Object, managed_by: str) -> Sequence[Mapping[str, Any]]:
        operations: list[Mapping[str, Any]] = [{"op": "add", "path": "/spec/managedBy", "value": managed_by}]
        if not self.is_suspended(found):
            operations.append({"op": "add", "path": "/spec/suspend", "value": True})
        return operations

    @property
    def can_be_suspended(self) -> bool:
        return True

    def set_suspended(self, value: bool) -> Mapping[str, Any]:
        return {"op": "replace", "path": "/spec/suspend", "value": value}

    # -- the mirror's pods ---------------------------------------------------------------------------------------------

    @property
    def knows_pods(self) -> bool:
        return True

    def pod_selectors(self, mirror: Object) -> tuple[str, ...]:
        return (reading.pod_selector(mirror),)

    # -- statuses ------------------------------------------------------------------------------------------------------

    def seconds_since_end(self, status: Mapping[str, object], now: datetime) -> float:
        return reading.seconds_since_end(status, now)

    # -- for people ----------------------------------------------------------------------------------------------------

    def describe(self, status: Mapping[str, Any]) -> tuple[str, str]:
        return timeline.describe(status)

    def steps(self, found: Object) -> Sequence[Moment]:
        return tuple(timeline.steps(found.status_dict()))

    def ended_at(self, status: Mapping[str, object]) -> int | None:
        return trace.ended_at(status)

    def spans(self, source: Object, status: Mapping[str, object], *, stored_at: int | None) -> tuple[Span, ...]:
        metadata = source.metadata
        ended = trace.Ended(
            uid=metadata.uid,
            namespace=metadata.namespace,
            name=metadata.name,
            created=metadata.creation_timestamp or "",
            status=status,
        )
        return trace.spans_of(ended, stored_at=stored_at)

    def drafts_in(self, document: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
        return manifests.drafts_in(document)

    def draft(self, raw: bytes) -> Object:
        return differences.draft(raw)

    def differences_before(self, source: Object, *, transform: MirrorTransform, managed_by: str) -> Report:
        return differences.before(source, transform=transform, managed_by=managed_by)

    def differences_between(
        self, source: Object, mirror: Object, *, transform: MirrorTransform, managed_by: str
    ) -> Report:
        return differences.between(source, mirror, transform=transform, managed_by=managed_by)
