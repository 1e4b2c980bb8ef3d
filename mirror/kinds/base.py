"""What the rest of the manager needs of a kind of Job (D24). Pure; implemented by one module or package per kind.

Nothing outside ``kinds`` knows where a kind keeps its ``managedBy``, what its status looks like, or when it is over: it
takes the kind from the key, and asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeAlias

import msgspec

from mirror.kinds.dependencies import DependencyPolicy, Reference
from mirror.kinds.fenceable import Fence
from mirror.kinds.movable import MovableKind
from mirror.kinds.pods_seen import KindWithPods
from mirror.kinds.report import Report
from mirror.kinds.stored_source import StoredSource
from mirror.kube.objects import Object
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.moves import LeftBehind
from mirror.model.reasons import Reason
from mirror.model.views import Moment
from mirror.telemetry.spans import Span

Json: TypeAlias = Any

HELD = "true"
"""The value of the annotation ``held``."""


class BadAnnotation(ValueError):
    """An annotation of a source is malformed, so it is not placed; the text names it and says why."""

    reason = Reason.INVALID_ANNOTATION


class UnsupportedSpec(BadAnnotation):
    """The spec of a source says what cannot be mirrored; the text names the field, and the way out."""

    reason = Reason.UNSUPPORTED_SPEC


class BadDraft(ValueError):
    """What should be an object of this kind is none; the text says where."""


class MirrorTransform(msgspec.Struct, frozen=True):
    """How sources are changed on their way (settings ``mirrors.strip``, ``mirrors.replace`` and ``mirrors.set``)."""

    origin: str
    strip_labels: tuple[str, ...] = ()
    strip_annotations: tuple[str, ...] = ()
    set_labels: tuple[tuple[str, str], ...] = ()
    set_annotations: tuple[tuple[str, str], ...] = ()
    strip_node_selectors: tuple[str, ...] = ()
    strip_tolerations: tuple[str, ...] = ()
    replace_node_selectors: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = ()
    """Pairs of a node's label, key and value: of the management cluster's nodes, and of workers' (D26)."""
    label_pods: bool = False
    """Pods of mirrors get our labels, so that they can be watched (setting ``workers.watchPods``)."""
    server_knows_rule_names: bool = False
    """The management cluster's stores names of podFailurePolicy rules (D17)."""
    dependencies: DependencyPolicy | None = None
    """What goes along (D27); None: nobody knows, since the manager's settings are not at hand."""
    fence_ttl_seconds: int = 1800
    """The deadline that a mirror is made with where its source is to be fenced (D14)."""
    management_uid: str = ""
    """Of the management cluster, where ``origin`` is another text; empty: it is that uid, or nobody knows."""

    def own_labels(self, source_uid: str) -> dict[str, str]:
        """Whose a mirror is: all labels of ours that it has."""
        return self.cluster_labels | {names.SOURCE_UID: source_uid}

    @property
    def cluster_labels(self) -> dict[str, str]:
        """Which management cluster an object on a worker is of."""
        more = {names.MANAGEMENT_UID: self.management_uid} if self.management_uid else {}
        return {names.ORIGIN: self.origin, **more}

    def pod_labels(self, source: Object) -> dict[str, str]:
        """What pods of a source's mirror are found by, and whose they are; nothing where pods are not watched."""
        return {names.ORIGIN: self.origin, names.SOURCE_UID: source.metadata.uid} if self.label_pods else {}


class StatusSummary(msgspec.Struct, frozen=True):
    """What indexes and routes need of a status."""

    placed: str | None
    """The worker that is recorded (D5)."""
    is_finished: bool
    mirror_uid: str | None = None
    """The uid of the mirror that is recorded (D1)."""
    reason: str = ""
    """Why it waits or makes no progress (D22); empty once it is finished."""
    left_behind: tuple[LeftBehind, ...] = ()
    """Copies on workers that it was moved from (D14)."""
    moves: int = 0
    """How often it was moved or started over: what is known of its mirror before is of another one."""


class Changes(msgspec.Struct, frozen=True):
    """What has to be written to a mirror so that it is as its source wants it."""

    operations: tuple[Mapping[str, Any], ...] = ()
    digest: str = ""
    """Names this write, for telling a repeated attempt from a new one."""
    reverted: tuple[str, ...] = ()
    """Fields, where only such differ as were changed on the worker: not the user's change."""
    only_note: bool = False
    """The mirror is as it should be; only the note on it is not."""
    overridden: tuple[str, ...] = ()
    """Fields of the pod template that the worker has otherwise, and that are left so (D9)."""
    is_run_by_queue: bool = False
    """Its source is suspended, and a queue on the worker has resumed it, which is not fought (D26)."""
    must_wait_for_pods: bool = False
    """The template changed and the mirror's pods are not gone yet (U4): its next status decides."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far an object is, as people see it. Times are RFC 3339, empty where there is none."""

    end: str = ""  # the type of the final condition; empty while it goes on
    end_reason: str = ""
    end_message: str = ""  # of a failure alone
    ended_at: str = ""
    started_at: str = ""
    placed_at: str = ""
    placed: str = ""
    obstructed_at: str = ""
    """Since when it makes no progress on its worker, for the reason that its conditions give (D22)."""
    has_begun: bool = False
    """It has, though its status tells neither when nor how many of its pods run."""
    words: str = ""
    """What its status says while it goes on, where that is no number and no condition: ``phase is Queued``."""
    is_suspended: bool = False
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    completions: int | None = None
    why_no_pods: str = ""
    """What of its spec keeps it from running any, though it is not suspended."""


class Kind(MovableKind, KindWithPods, Protocol):
    """One kind of Job. Objects are such as its API server has served, or a worker has: those may hold anything."""

    @property
    def resource(self) -> Resource: ...

    @property
    def name(self) -> str:
        """As in keys, events and logs: ``Job``."""

    @property
    def short_names(self) -> tuple[str, ...]:
        """What kubectl takes for its resource beside plural and singular, as its CRD has them."""

    @property
    def managed_by_field(self) -> str:
        """Where it says who runs it, for people: ``spec.managedBy``."""

    @property
    def managed_by_value(self) -> str:
        """What makes one ours where its API server takes only some values; empty: the setting ``managedBy``."""

    @property
    def keeps_metadata_in_status(self) -> bool:
        """Whether annotations in a request to ``/status`` are stored; the API server drops a custom resource's."""
        ...

    @property
    def records_by_annotation(self) -> bool:
        """Whether our conditions are in an annotation, which users can write, since its status has none (D25)."""

    def doubt_schema(self) -> None:
        """A status was refused, so that what is known of its definition here may be old."""
        ...

    def as_stored(self, status: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
        """What of a status goes to ``/status``, and what to the annotation ``conditions``, if it is kept there."""
        ...

    @property
    def never_ends(self) -> bool:
        """Whether one lives until it is deleted: there is no final status, and what is lost begins anew (D8, D11)."""

    @property
    def honoured_since(self) -> str:
        """The first version of its controller that leaves foreign objects alone, for people; empty: all do."""

    @property
    def unusable(self) -> tuple[str, ...]:
        """What of its entry no object of it has here, though nothing can be mirrored without; empty: all is well."""

    @property
    def fence(self) -> Fence | None:
        """Its deadline, by which its worker ends it; None: it has none, and is never fenced (D14)."""

    @property
    def can_vanish(self) -> bool:
        """Whether a cluster may serve it or not, as its definition comes and goes with all its objects (D23)."""

    # -- what an object says -------------------------------------------------------------------------------------------

    def managed_by(self, found: Object) -> str | None:
        """Who runs it; None when nobody is named."""
        ...

    def is_suspended(self, found: Object) -> bool: ...

    def summary(self, found: Object) -> StatusSummary:
        """Where it is recorded, and whether it is over, without decoding the rest."""
        ...

    def stored(self, found: Object) -> StoredSource:
        """A source, decoded.

        Raises:
            BadAnswer: it cannot be.
        """
        ...

    def progress(self, found: Object) -> Progress:
        """How far it is; whatever cannot be read is left out."""
        ...

    def check(self, found: Object) -> None:
        """Look at this kind's own annotations, and the spec, of a source that is to be placed.

        Raises:
            BadAnnotation: one cannot be understood.
            UnsupportedSpec: it cannot be mirrored.
        """
        ...

    def priority_class(self, found: Object) -> str:
        """The PriorityClass of its pods; empty: they name none, or it cannot be read."""

    @property
    def own_annotations(self) -> Mapping[str, Callable[[Object], str]]:
        """Annotations that only this kind has, and that are fixed once a source is placed: how each is checked.

        A check returns what is wrong with a source's annotation and the way out, for people; empty if nothing is.
        """
        ...

    def is_awaited_by_cron_job(self, found: Object) -> bool:
        """Whether a CronJob counts it as active although nothing moves; that may keep its next one from being made."""
        ...

    # -- the mirror ----------------------------------------------------------------------------------------------------

    def mirror_body(self, source: Object, *, namespace: str, transform: MirrorTransform) -> dict[str, Json]:
        """The whole mirror of a source, as it is created (D4).

        Each of its pod templates has ``transform.pod_labels``: that is all that watching pods asks of a kind (D22).
        """
        ...

    def is_as_sent(self, body: Mapping[str, Json], created: Object) -> bool:
        """Whether a worker has stored a new mirror as it was sent, as far as we compare it."""
        ...

    def has_ended_for_now(self, found: Object) -> bool:
        """Whether a worker's controller may withdraw the end that an object tells of, and begin anew.

        It cannot while the mirror is suspended. So ``changes`` wants that, also where the source has stored such an
        end, and ``next_status`` waits for it.
        """
        ...

    def changes(self, source: Object, mirror: Object, *, transform: MirrorTransform) -> Changes | None:
        """What of a mirror is not as its source wants it; None: nothing is to be done or said (D9)."""
        ...

    def dry_run_body(self) -> dict[str, Json]:
        """The least object that a worker which takes this kind would take; it is tried, and never made."""
        ...

    def references(self, source: Object) -> tuple[Reference, ...]:
        """What the pod templates of a source refer to in its namespace (D27)."""
        ...

    def requirements(self, source: Object) -> tuple[Reference, ...]:
        """Everything that its pods name and a worker has to have: ``references``, and what never goes along."""
        ...

    @property
    def needed(self) -> tuple[Resource, ...]:
        """Of what its ``requirements`` may be, beside Kubernetes' own kinds; all in the namespace of the mirror."""

    def claim_operations(self, found: Object, managed_by: str) -> Sequence[Mapping[str, Any]]:
        """The JSON Patch that makes a new object ours, and suspends it unless it is suspended (D16)."""
        ...

    @property
    def can_be_suspended(self) -> bool:
        """Whether one can be held at all before it is placed (D16)."""
        ...

    def set_suspended(self, value: bool) -> Mapping[str, Any]:
        """The JSON Patch operation that suspends or resumes an object which says either."""
        ...

    # -- statuses ------------------------------------------------------------------------------------------------------

    def is_final(self, status: Mapping[str, Any] | None) -> bool:
        """Whether a status says that it is over."""
        ...

    def seconds_since_end(self, status: Mapping[str, object], now: datetime) -> float:
        """Since the final condition of a status; 0 without one, or without a time that makes sense."""
        ...

    @property
    def has_time_to_live(self) -> bool:
        """Whether its own controller leaves it to us to delete a source some time after its end (D25)."""
        ...

    def seconds_to_live(self, source: Object) -> float | None:
        """After its end, as it says; None: it does not, or others see to it."""
        ...

    # -- for people ----------------------------------------------------------------------------------------------------

    def describe(self, status: Mapping[str, Any]) -> tuple[str, str]:
        """A status as an entry of a timeline: ``Finished`` or ``Status``, and a text."""
        ...

    def steps(self, found: Object) -> Sequence[Moment]:
        """What a source's status says of the way to its end, as entries of a timeline, in any order."""
        ...

    def ended_at(self, status: Mapping[str, object]) -> int | None:
        """When it ended, by its final status; nanoseconds since 1970."""
        ...

    def spans(self, source: Object, status: Mapping[str, object], *, stored_at: int | None) -> tuple[Span, ...]:
        """The trace of a source whose final status this is, its root first.

        Args:
            source: the source.
            status: its final status.
            stored_at: when that was stored, nanoseconds since 1970; None where nobody knows any more.
        """
        ...

    def drafts_in(self, document: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
        """The objects of this kind that a document of a manifest stands for: itself, or what it makes."""
        ...

    def draft(self, raw: bytes) -> Object:
        """An object of this kind that no API server has seen yet, from its JSON.

        Raises:
            BadDraft: it is none.
        """
        ...

    def differences_before(self, source: Object, *, transform: MirrorTransform, managed_by: str) -> Report:
        """What will differ once this source is mirrored; it need not exist yet."""
        ...

    def differences_between(
        self, source: Object, mirror: Object, *, transform: MirrorTransform, managed_by: str
    ) -> Report:
        """What differs now between a source and its mirror."""
        ...


def is_held(kind: Kind, found: Object) -> bool:
    """Whether our webhook suspended it and nobody has released it since, by taking the annotation away (D16)."""
    return found.annotations.get(names.HELD) == HELD and kind.is_suspended(found)
