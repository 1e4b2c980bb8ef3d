"""``base.Kind`` of a kind that is data: each method asks the form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

import msgspec

from mirror.batch import conditions as lists
from mirror.batch import times, views
from mirror.kinds import following
from mirror.kinds.base import (
    BadDraft,
    Changes,
    Json,
    MirrorTransform,
    Progress,
    StatusSummary,
    UnsupportedSpec,
)
from mirror.kinds.declared import body, differences, record
from mirror.kinds.declared.form import Form, condition_of
from mirror.kinds.declared.readiness import Readiness
from mirror.kinds.declared.status import StoredSource, has_started
from mirror.kinds.declared.status_schema import StatusSchema
from mirror.kinds.dependencies import Reference
from mirror.kinds.explaining import reason_of
from mirror.kinds.pod_references import pod_references, pod_requirements
from mirror.kinds.pod_roles import PodRoles
from mirror.kinds.report import Report
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import Object, decode_object, decode_part
from mirror.kube.resources import Resource
from mirror.model import field_paths, names
from mirror.model.views import Moment
from mirror.settings.kinds import KindEntry
from mirror.telemetry.spans import Span

_VARIABLE = re.compile(r"\{([A-Za-z.]+)\}")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_MOST_REMEMBERED = 256
"""Summaries of a kind: one status is summarised ten times and more while it is the newest one."""
_LONGEST_REMEMBERED_BYTES = 8192
"""A status that is longer, which a worker may make it, is read each time."""
_NO_POD = "jobmirror.io/none"
"""A label that no pod has."""


class DeclaredKind:
    """See ``base.Kind``."""

    keeps_metadata_in_status = False
    can_move = False
    counts_pods = False
    fence = None
    retry = None
    can_vanish = True

    def __init__(self, entry: KindEntry) -> None:
        """From an entry that was checked (``choosing``)."""
        self._form = Form.of(entry)
        self._readiness = Readiness(self._form)
        self._followed = body.followed(self._form)
        self._summary = lru_cache(maxsize=_MOST_REMEMBERED)(self._summary_of)
        self._status_schema: StatusSchema | None = None
        self.is_schema_doubted = False
        """A status was refused since the definition was read."""
        self.unusable: tuple[str, ...] = ()
        """What of its entry leads nowhere in the management cluster's definition, though nothing works without it."""
        self.resource: Resource = self._form.resource
        self.name = entry.kind
        self.short_names = entry.short_names
        self.records_by_annotation = record.is_by_annotation(self._form)
        self.never_ends = entry.done.never
        self.honoured_since = entry.managed_by.since
        self.has_time_to_live = bool(entry.time_to_live)
        self.managed_by_field = entry.managed_by.path
        self.managed_by_value = entry.managed_by.value
        names_multikueue = entry.managed_by.value == names.MULTIKUEUE_MANAGED_BY
        self.is_shared = names_multikueue and not entry.beside_kueue
        """Whether a MultiKueue on the management cluster may run its objects, too (D25)."""
        self.pod_index = entry.pod_index
        self.pod_owners = self._form.pod_owners
        self.needed = tuple(dict.fromkeys(resource for _, resource, _ in self._form.needs if resource is not None))
        self.pod_roles = PodRoles(*(getattr(entry.pod_role, name) for name in ("label", "number", "first", "without")))

    @property
    def entry(self) -> KindEntry:
        """What it was made of."""
        return self._form.entry

    # -- what an object says -------------------------------------------------------------------------------------------

    def managed_by(self, found: Object) -> str | None:
        field = self._form.managed_by.steps[-1][0]
        return self._form.managed_by_of(_spec(found)) if f'"{field}"'.encode() in bytes(found.spec) else None

    def is_suspended(self, found: Object) -> bool:
        return self._form.is_held(_spec(found))

    def summary(self, found: Object) -> StatusSummary:
        text = record.text_in(self._form, found)
        is_usual = len(found.status) + len(text or "") <= _LONGEST_REMEMBERED_BYTES
        return (self._summary if is_usual else self._summary_of)(bytes(found.status), text)

    def _summary_of(self, raw: bytes, text: str | None) -> StatusSummary:
        status = self._merged(raw, text)
        placed, mirrored = condition_of(status, names.PLACED), condition_of(status, names.MIRRORED)
        is_finished = bool(self._form.end_of(status))
        return StatusSummary(
            placed=views.text(placed.get("message")) or None if placed.get("status") == "True" else None,
            is_finished=is_finished,
            mirror_uid=views.text(mirrored.get("message")) or None if mirrored.get("status") == "True" else None,
            reason="" if is_finished else reason_of(lists.of(status)),
        )

    def as_stored(self, status: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
        return record.split(status) if self.records_by_annotation else (status, None)

    def stored(self, found: Object) -> StoredSource:
        return StoredSource(self._form, found, self._status_schema)

    def progress(self, found: Object) -> Progress:
        status = self._status(found)
        end, placed = self._form.end_of(status), condition_of(status, names.PLACED)
        is_placed = placed.get("status") == "True"
        obstructed = condition_of(status, names.PROGRESSING)
        active, succeeded, failed = self._form.counted(status)
        return Progress(
            end=end,
            end_reason=self._form.end_reason(status),
            end_message=self._form.end_message(status),
            ended_at=self._form.ended_at(status),
            started_at=views.text(status.get("startTime")),
            placed_at=views.text(placed.get("lastTransitionTime")) if is_placed else "",
            placed=views.text(placed.get("message")) if is_placed else "",
            obstructed_at="" if end else views.text(obstructed.get("lastTransitionTime")),
            has_begun=has_started(self._form, status) if not any(self._form.counts) else self._form.has_begun(status),
            words="" if end else self._form.words_of(status),
            is_suspended=self.is_suspended(found),
            active=active,
            succeeded=succeeded,
            failed=failed,
        )

    @property
    def counts_ready(self) -> bool:
        return self._readiness.is_told

    def has_unready_pods(self, found: Object) -> bool:
        return self._readiness.is_incomplete(self._status(found), partial(_spec, found))

    def lacks_pods(self, found: Object) -> bool:
        return self._readiness.is_missing(self._status(found), partial(_spec, found))

    def is_unstarted(self, found: Object) -> bool:
        return not self._status(found)

    def check(self, found: Object) -> None:
        """Such kinds have no annotations of their own."""
        unmet = self._form.unmet(_spec(found))
        if unmet is not None:
            raise UnsupportedSpec(f"{unmet.path}: {unmet.because}")

    def priority_class(self, found: Object) -> str:
        pods = (views.text(pod.get("priorityClassName")) for pod, _ in self._pods(found))
        return next(filter(None, pods), "")

    @property
    def own_annotations(self) -> Mapping[str, Callable[[Object], str]]:
        return {}

    def is_awaited_by_cron_job(self, found: Object) -> bool:
        return False

    # -- the mirror ----------------------------------------------------------------------------------------------------

    def mirror_body(self, source: Object, *, namespace: str, transform: MirrorTransform) -> dict[str, Json]:
        made = body.mirror_body(self._form, source, namespace=namespace, transform=transform)
        return body.with_spec_noted(self._form, made, source)

    def stopping(self, mirror: Object) -> tuple[Mapping[str, Any], ...]:
        return ()

    def has_stopped(self, mirror: Object) -> bool:
        return False

    def is_resuming(self, mirror: Object) -> bool:
        return False

    def ends_when_suspended(self, mirror: Object) -> bool:
        return False

    def has_succeeded(self, found: Object) -> bool:
        return False

    def held_body(self, body: dict[str, Json]) -> dict[str, Json]:
        return body

    def is_held_for_seed(self, mirror: Object) -> bool:
        return False

    def is_as_sent(self, body: Mapping[str, Json], created: Object) -> bool:
        return following.is_as_sent(body, created, self._followed)

    def has_ended_for_now(self, found: Object) -> bool:
        return bool(self._form.withdrawable) and self._form.may_be_withdrawn(self._status(found))

    def changes(self, source: Object, mirror: Object, *, transform: MirrorTransform) -> Changes | None:
        if self.has_ended_for_now(mirror) or self.has_ended_for_now(source):
            source = body.suspended(self._form, source)
        wanted = body.mirror_body(self._form, source, namespace=mirror.metadata.namespace, transform=transform)
        wanted = body.with_own_of_worker(self._form, wanted, mirror)
        changes = following.changes(wanted, mirror, self._followed)
        return following.with_pod_labels(changes, mirror, transform.pod_labels(source), self._followed)

    def dry_run_body(self) -> dict[str, Json]:
        return {**self._type(), "spec": dict(self.entry.sample)}

    def references(self, source: Object) -> tuple[Reference, ...]:
        return tuple(one for pod, path in self._pods(source) for one in pod_references(pod, path))

    def requirements(self, source: Object) -> tuple[Reference, ...]:
        of_pods = (one for pod, path in self._pods(source) for one in pod_requirements(pod, path))
        return (*self.references(source), *of_pods, *self._form.needed(_spec(source)))

    def _pods(self, found: Object) -> Iterator[tuple[Mapping[str, Json], str]]:
        """The spec of each of its pod templates, and where it is."""
        whole = {"spec": _spec(found)}
        for path in self._form.templates:
            for place in path.places(whole):
                template = views.mapping(field_paths.at(whole, place))
                yield views.mapping(template.get("spec")), f"{field_paths.written(place)}.spec"

    def claim_operations(self, found: Object, managed_by: str) -> Sequence[Mapping[str, Any]]:
        whole: Json = {"spec": _spec(found)}
        place = tuple(name for name, _ in self._form.managed_by.steps)
        changed = field_paths.put(whole, place, managed_by)
        if self._form.suspend is not None and not self.is_suspended(found):
            place = tuple(name for name, _ in self._form.suspend.steps)
            changed = field_paths.put(changed, place, self.entry.suspend.held)
        return [{"op": "add", "path": "/spec", "value": changed["spec"]}]

    @property
    def can_be_suspended(self) -> bool:
        return bool(self.entry.suspend.path)

    def set_suspended(self, value: bool) -> Mapping[str, Any]:
        path = "/" + self.entry.suspend.path.replace(".", "/")
        said = self.entry.suspend.held if value else self.entry.suspend.running
        return {"op": "remove", "path": path} if said is None else {"op": "add", "path": path, "value": said}

    # -- the mirror's pods ---------------------------------------------------------------------------------------------

    @property
    def knows_pods(self) -> bool:
        return bool(self.entry.pods)

    def pod_selectors(self, mirror: Object) -> tuple[str, ...]:
        more = self.entry.more_pods
        return tuple(self._pod_selector(mirror, one) for one in (self.entry.pods, *([more] if more else ())))

    def _pod_selector(self, mirror: Object, wanted: Mapping[str, str]) -> str:
        status = self._status(mirror)

        def value(found: re.Match[str]) -> str:
            match found[1]:
                case "name":
                    return mirror.metadata.name
                case "uid":
                    return mirror.metadata.uid
                case path:
                    return views.text(field_paths.at(status, tuple(path.split(".")[1:])))

        labels = {key: _VARIABLE.sub(value, text) for key, text in wanted.items()}
        if not labels or not all(text and _LABEL_VALUE.fullmatch(text) for text in labels.values()):
            return _NO_POD
        return ",".join(f"{key}={text}" for key, text in sorted(labels.items()))

    def learn_status(self, schema: Mapping[str, object]) -> None:
        """Take what the management cluster's definition says of its status; empty: nothing (``kind_schemas``)."""
        self._status_schema = StatusSchema(schema) if schema else None
        self.is_schema_doubted = False

    def doubt_schema(self) -> None:
        self.is_schema_doubted = True

    # -- statuses ------------------------------------------------------------------------------------------------------

    def is_final(self, status: Mapping[str, Any] | None) -> bool:
        return bool(self._form.end_of(status or {}))

    def seconds_since_end(self, status: Mapping[str, object], now: datetime) -> float:
        ended = self._ended_seconds(status)
        return 0.0 if ended is None else now.timestamp() - ended

    def seconds_to_live(self, source: Object) -> float | None:
        return self._form.seconds_to_live(_spec(source)) if self.has_time_to_live else None

    def _ended_seconds(self, status: Mapping[str, object]) -> int | None:
        if not self._form.end_of(status):
            return None
        try:
            return times.seconds(self._form.ended_at(status))
        except times.BadTime:
            return None

    # -- for people ----------------------------------------------------------------------------------------------------

    def describe(self, status: Mapping[str, Any]) -> tuple[str, str]:
        end = self._form.end_of(status)
        if end:
            return "Finished", ": ".join(filter(None, (end, self._form.end_reason(status))))
        true = (views.text(one.get("type")) for one in lists.of(status) if one.get("status") == "True")
        said = ", ".join(one for one in true if not one.startswith(names.PREFIX)) or self._form.words_of(status)
        numbers = zip(("active", "succeeded", "failed"), self._form.counted(status), strict=True)
        return "Status", said or ", ".join(f"{name} {count}" for name, count in numbers if count)

    def steps(self, found: Object) -> Sequence[Moment]:
        listed = lists.of(self._status(found))
        return tuple(
            Moment(at=views.text(one.get("lastTransitionTime")), kind="Status", text=views.text(one.get("type")))
            for one in listed
            if one.get("status") == "True" and not views.text(one.get("type")).startswith(names.PREFIX)
        )

    def ended_at(self, status: Mapping[str, object]) -> int | None:
        ended = self._ended_seconds(status)
        return None if ended is None else ended * times.NANOSECONDS

    def spans(self, source: Object, status: Mapping[str, object], *, stored_at: int | None) -> tuple[Span, ...]:
        return ()

    def drafts_in(self, document: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
        if (document.get("apiVersion"), document.get("kind")) == (self.resource.api_version, self.name):
            yield document

    def draft(self, raw: bytes) -> Object:
        try:
            found, document = decode_object(raw), msgspec.json.decode(raw)
        except (BadAnswer, msgspec.DecodeError) as error:
            raise BadDraft(f"this is no {self.name}") from error
        if not list(self.drafts_in(document)):
            raise BadDraft(f"this is no {self.name} of {self.resource.api_version}")
        if not found.metadata.name and not found.metadata.generate_name:
            raise BadDraft(f"this {self.name} has no name: metadata.name is missing")
        return found

    def differences_before(self, source: Object, *, transform: MirrorTransform, managed_by: str) -> Report:
        return differences.before(self._form, source, managed_by=self.managed_by_value or managed_by)

    def differences_between(
        self, source: Object, mirror: Object, *, transform: MirrorTransform, managed_by: str
    ) -> Report:
        is_kept = self._form.may_be_withdrawn(self._status(source)) and self.is_suspended(mirror)
        wanted_of = body.suspended(self._form, source) if is_kept else source
        wanted = self.mirror_body(wanted_of, namespace=mirror.metadata.namespace, transform=transform)
        return differences.between(
            self._form,
            source,
            mirror,
            wanted=wanted,
            managed_by=self.managed_by_value or managed_by,
            is_kept_from_beginning_anew=is_kept and not self.is_suspended(source),
        )

    def _status(self, found: Object) -> dict[str, Json]:
        """Its status with our conditions in it; nothing where it cannot be read."""
        return self._merged(bytes(found.status), record.text_in(self._form, found))

    def _merged(self, raw: bytes, text: str | None) -> dict[str, Json]:
        try:
            return record.merged(self._form, decode_part(raw), text)
        except BadAnswer:
            return {}

    def _type(self) -> dict[str, Json]:
        return {"apiVersion": self.resource.api_version, "kind": self.name}


def _spec(found: Object) -> dict[str, Json]:
    """Its spec; nothing where it cannot be read: a worker may answer anything (D7)."""
    try:
        return found.spec_dict()
    except BadAnswer:
        return {}
