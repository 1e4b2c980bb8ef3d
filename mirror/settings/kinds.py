"""A kind of Job as data: the form of an entry of ``kinds``, and of the table of those that are built in (D24).

The fields are explained in ``docs/kinds.md``. Not here: what follows from them (``mirror.kinds.declared``).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from mirror.settings import kind_rules as rules
from mirror.settings.section import Section

KIB = 1024


class ManagedByField(Section, frozen=True):
    """Where an object says who runs it, and what makes it ours."""

    path: Annotated[str, rules.PATH] = "spec.managedBy"
    value: Annotated[str, rules.MANAGED_BY] = ""
    """Empty: the setting ``managedBy``."""
    since: Annotated[str, rules.TEXT] = ""
    """The first version of its controller that honours the field, for people."""


class SuspendField(Section, frozen=True):
    """Where and how an object is suspended."""

    path: Annotated[str, rules.OPTIONAL_PATH] = ""
    """Empty: it cannot be suspended."""
    held: Annotated[Any, rules.SCALAR] = True
    running: Annotated[Any, rules.SCALAR] = False
    """None: the field is left out."""


class Done(Section, frozen=True):
    """What its status says when it is over; all clauses of a list hold then."""

    succeeded: Annotated[tuple[str, ...], rules.CLAUSES] = ()
    failed: Annotated[tuple[str, ...], rules.CLAUSES] = ()
    withdrawable: Annotated[tuple[str, ...], rules.CLAUSES] = ()
    """Of an end that its controller may take back, to begin anew: it counts once the mirror is suspended."""
    never: Annotated[bool, rules.SWITCH] = False
    """It lives until it is deleted."""


class Requirement(Section, frozen=True):
    """What a spec must say, or must not, for an object to be mirrored."""

    path: Annotated[str, rules.PATH] = ""
    value: Annotated[Any, rules.SCALAR] = None
    """None: the field is absent or empty."""
    because: Annotated[str, rules.REQUIRED_TEXT] = ""
    """Why, and the way out; users read it."""

    REQUIRED: ClassVar[tuple[str, ...]] = ("path", "because")


class Replacement(Section, frozen=True):
    """A value that a mirror has in place of its source's."""

    path: Annotated[str, rules.PATH] = ""
    value: Annotated[Any, rules.VALUE] = ""
    """Of a source; others stay."""
    by: Annotated[Any, rules.VALUE] = ""

    REQUIRED: ClassVar[tuple[str, ...]] = ("path", "value", "by")


class Autoscaling(Section, frozen=True):
    """Fields that an autoscaler on the worker writes, where an object asks for one."""

    path: Annotated[str, rules.OPTIONAL_PATH] = ""
    """The field that asks for it, by being there and not false."""
    theirs: Annotated[tuple[str, ...], rules.PATHS] = ()


class Carry(Section, frozen=True):
    """What of a spec follows to the mirror after it was created (D9); labels and annotations always do."""

    always: Annotated[tuple[str, ...], rules.PATHS] = ()
    suspended: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Only while the mirror is suspended."""


class StatusForm(Section, frozen=True):
    """How a mirror's status is copied."""

    limit_bytes: Annotated[int, rules.SIZE] = msgspec.field(name="limit", default=256 * KIB)
    generation: Annotated[str, rules.GENERATION] = "rewrite"
    """``rewrite``: ``observedGeneration`` tells of the source's generation; ``keep``: it is copied as it is."""
    own: Annotated[str, rules.PLACE] = "first"
    """Where our conditions stand; printer columns often show the last one."""
    max_conditions: Annotated[int, rules.COUNT] = 0
    """What the CRD allows; 0: as many as come."""
    complete: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Fields without which the CRD's rules take nothing of what they are in: that is left out then."""
    drop: Annotated[tuple[str, ...], rules.PATHS] = ()
    defaults: Annotated[dict[str, Any], rules.MAPPING] = msgspec.field(default_factory=dict)
    """What the CRD requires of every status."""


class Condition(Section, frozen=True):
    """A condition that we write in the kind's own words."""

    type: Annotated[str, rules.CONDITION_TYPE] = ""
    status: Annotated[str, rules.CONDITION_STATUS] = "True"
    reason: Annotated[str, rules.REASON] = ""
    """Empty: ours."""

    REQUIRED: ClassVar[tuple[str, ...]] = ("type",)


class StatusPatch(Section, frozen=True):
    """What we write into a status where no mirror can."""

    conditions: tuple[Condition, ...] = ()
    set: Annotated[dict[str, Any], rules.MAPPING] = msgspec.field(default_factory=dict)
    """Values by path; ``now`` is the time, ``{reason}`` and ``{message}`` are what a condition would say."""
    zero: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Counters that become 0 where they are."""


class Counts(Section, frozen=True):
    """Where its status counts what it consists of, pods or Jobs; several numbers are added."""

    active: Annotated[tuple[str, ...], rules.PATHS] = ()
    succeeded: Annotated[tuple[str, ...], rules.PATHS] = ()
    failed: Annotated[tuple[str, ...], rules.PATHS] = ()
    ready: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Of what is active, or desired; none: nothing is said of pods that are not ready, but where they are watched."""
    desired: Annotated[tuple[str, ...], rules.WHOLE_PATHS] = ()
    """How much should run, of the spec or the status; none: what is active."""


class PodRole(Section, frozen=True):
    """The labels of a pod that say what part of its object it is."""

    label: Annotated[str, rules.LABEL] = ""
    number: Annotated[str, rules.LABEL] = ""
    """Where a role has several Jobs, which of them."""
    first: Annotated[tuple[str, ...], rules.ROLES] = ()
    """Whose logs are shown where nothing else is said."""
    without: Annotated[str, rules.ROLE] = ""
    """The role of pods that do not have the label."""


class KindEntry(Section, frozen=True):
    """One kind. Of one that is built in only ``kind`` is needed, and what differs from the table."""

    kind: Annotated[str, rules.KIND] = ""
    resource: Annotated[str, rules.RESOURCE] = ""
    """``plural.version.group``."""
    short_names: Annotated[tuple[str, ...], rules.WORDS] = ()
    managed_by: ManagedByField = ManagedByField()
    beside_kueue: Annotated[bool, rules.SWITCH] = False
    """Where ``managedBy.value`` is MultiKueue's: no queue on the management cluster dispatches its objects."""
    suspend: SuspendField = SuspendField()
    done: Done = Done()
    started: Annotated[tuple[str, ...], rules.CLAUSES] = ()
    """What its status says once it has begun, where no time, number or condition that is True does; all of it holds."""
    strip: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Besides ``managedBy.path``."""
    replace: tuple[Replacement, ...] = ()
    carry: Carry = Carry()
    theirs: Annotated[tuple[str, ...], rules.PATHS] = ()
    """What a worker's own controllers write: never compared."""
    time_to_live: Annotated[str, rules.OPTIONAL_PATH] = ""
    """The field with the seconds after its end in which it is to be deleted; not carried, and honoured here (D25)."""
    autoscaling: Autoscaling = Autoscaling()
    requires: tuple[Requirement, ...] = ()
    namespaces: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Fields that may hold the object's own namespace: a mirror's have that of the mirror."""
    record: Annotated[str, rules.RECORD] = "condition"
    """Where we write what we know of it: a condition, or an annotation where its status has no conditions (D25)."""
    templates: Annotated[tuple[str, ...], rules.PATHS] = ()
    """Its pod templates."""
    status: StatusForm = StatusForm()
    counts: Counts = Counts()
    pods: Annotated[dict[str, str], rules.LABELS] = msgspec.field(default_factory=dict)
    """The labels of a mirror's pods; ``{name}`` and ``{uid}`` are the mirror's, ``{status.x}`` is of its status."""
    more_pods: Annotated[dict[str, str], rules.LABELS] = msgspec.field(default_factory=dict)
    """Those of further pods, which do not have the labels above."""
    pod_index: Annotated[str, rules.TEXT] = ""
    """The label or annotation of a pod that holds its index."""
    pod_owners: Annotated[tuple[str, ...], rules.OWNERS] = ()
    """What may stand between a mirror and its pods: ``Kind plural.version.group``."""
    pod_role: PodRole = PodRole()
    needs: Annotated[tuple[str, ...], rules.NEEDS] = ()
    """What it names beside its pod templates, and a worker has to have: ``Kind path``, or with its resource between."""
    suspended: StatusPatch = StatusPatch()
    """The status of one that is suspended and has no mirror."""
    lost: StatusPatch = StatusPatch()
    """The status of one whose mirror is gone for good."""
    sample: Annotated[dict[str, Any], rules.MAPPING] = msgspec.field(default_factory=dict)
    """The least spec that its API server takes, for trying whether a worker would."""

    SHORTHAND: ClassVar[str] = "kind"
    """The field that a plain string stands for."""
