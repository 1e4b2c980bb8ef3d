"""A pod and an event of a worker as users see them: known fields only, and whose a pod is. Pure.

Worker content is hostile until cleaned (D18): what has another shape than it should is left out, or refused whole;
``answers`` makes the texts safe. Shapes are the API's own, so that clients may treat them like what kubectl gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import msgspec

from mirror.kinds.pod_roles import NO_ROLES, PodRoles
from mirror.kube.objects import JUNK, OwnerReference

T = TypeVar("T")

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
MOST_CONTAINERS = 64
MOST_CONDITIONS = 16
MOST_LABELS = 64
MOST_OWNERS = 64
MOST_ITEM_BYTES = 3 << 20
"""Of one pod or event; no API server stores longer ones."""
MOST_PARTS = 1_000_000
"""Values in one answer: tiny ones by the million, which nobody's pods are, would cost a hundred times their length."""

Json = dict[str, Any]


class BadList(ValueError):
    """What should be a list is none."""


class _ListMeta(msgspec.Struct, rename={"continue_token": "continue"}):
    continue_token: str = ""


class _List(msgspec.Struct):
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None


class _Meta(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    def __post_init__(self) -> None:
        self.labels = _first(self.labels, MOST_LABELS)
        self.owner_references = _cut(self.owner_references, MOST_OWNERS)


class _Container(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    image: str = ""
    restart_policy: str | None = None


class _ResourceClaim(msgspec.Struct, omit_defaults=True):
    name: str = ""


class _PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    node_name: str = ""
    scheduler_name: str = ""
    resource_claims: list[_ResourceClaim] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None

    def __post_init__(self) -> None:
        self.resource_claims = _cut(self.resource_claims, MOST_CONTAINERS)
        self.containers = _cut(self.containers, MOST_CONTAINERS)
        self.init_containers = _cut(self.init_containers, MOST_CONTAINERS)
        self.ephemeral_containers = _cut(self.ephemeral_containers, MOST_CONTAINERS)


class _Terminated(msgspec.Struct, rename="camel", omit_defaults=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class _Running(msgspec.Struct, rename="camel", omit_defaults=True):
    started_at: str | None = None


class _Waiting(msgspec.Struct, omit_defaults=True):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct, omit_defaults=True):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    image: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State | None = None
    last_state: _State | None = None


class _Condition(msgspec.Struct, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _PodStatus(msgspec.Struct, rename="camel", omit_defaults=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None

    def __post_init__(self) -> None:
        self.conditions = _cut(self.conditions, MOST_CONDITIONS)
        self.container_statuses = _cut(self.container_statuses, MOST_CONTAINERS)
        self.init_container_statuses = _cut(self.init_container_statuses, MOST_CONTAINERS)


class Pod(msgspec.Struct, rename="camel"):
    """What we read of a pod."""

    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        """Its owner, by reference: labels prove nothing, anyone may write them."""
        return tuple(self.metadata.owner_references or ())

    @property
    def containers(self) -> tuple[str, ...]:
        """Names, in the order in which they start."""
        spec = self.spec
        every = (spec.init_containers, spec.containers, spec.ephemeral_containers)
        return tuple(one.name for listed in every for one in listed or ())[:MOST_CONTAINERS]

    @property
    def default_container(self) -> str:
        """The one that is meant where none is named."""
        wanted = (self.metadata.annotations or {}).get(DEFAULT_CONTAINER, "")
        own = [one.name for one in self.spec.containers or ()]
        return wanted if wanted in self.containers else own[0] if own else ""

    def shown(self) -> Json:
        """As the API has it, as far as it is of use."""
        parts = {"metadata": self.metadata, "spec": self.spec, "status": self.status}
        built: Json = msgspec.to_builtins(parts)
        return {"apiVersion": "v1", "kind": "Pod", **built}


class _Reference(msgspec.Struct, rename="camel", omit_defaults=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class _EventSource(msgspec.Struct, omit_defaults=True):
    component: str = ""
    host: str = ""


class _Series(msgspec.Struct, rename="camel", omit_defaults=True):
    count: int = 0
    last_observed_time: str | None = None


class _EventMeta(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None


class Event(msgspec.Struct, rename="camel", omit_defaults=True):
    """What we read of an event."""

    metadata: _EventMeta = msgspec.field(default_factory=_EventMeta)
    involved_object: _Reference = msgspec.field(default_factory=_Reference)
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    reporting_component: str = ""
    source: _EventSource | None = None
    series: _Series | None = None

    @property
    def at(self) -> str:
        """When it was seen last."""
        newest = (self.series.last_observed_time if self.series else None) or self.last_timestamp or self.event_time
        return newest or self.metadata.creation_timestamp or ""

    def shown(self) -> Json:
        """As the API has it."""
        built: Json = msgspec.to_builtins(self)
        return {"apiVersion": "v1", "kind": "Event", **built}


@dataclass(frozen=True, slots=True)
class Listed:
    """One page of raw items, and where the next begins."""

    items: Sequence[msgspec.Raw]
    continue_token: str = ""


_list = msgspec.json.Decoder(_List)
_pod = msgspec.json.Decoder(Pod)
_event = msgspec.json.Decoder(Event)


def read_list(raw: bytes, *, most: int) -> Listed:
    """Take a list apart.

    Args:
        raw: a worker's answer.
        most: how many items were asked for; what goes beyond is left out.

    Raises:
        BadList: it is none, or one that no API server would give.
    """
    if raw.count(b",") > MOST_PARTS:
        raise BadList
    try:
        found = _list.decode(raw)
    except JUNK as error:
        raise BadList from error
    return Listed((found.items or [])[:most], (found.metadata or _ListMeta()).continue_token)


def read_pods(items: Iterable[msgspec.Raw | bytes], *, index: str = "") -> list[Pod]:
    """Decode pods; what is none is left out.

    Args:
        items: as a worker sent them.
        index: the annotation that holds a pod's index (``Kind.pod_index``); of all others but one nothing is kept.
    """
    found = _readable(_pod, items)
    for pod in found:
        annotations = pod.metadata.annotations or {}
        kept = {key: annotations[key] for key in (index, DEFAULT_CONTAINER) if key in annotations}
        pod.metadata.annotations = kept
    return found


def read_events(items: Iterable[msgspec.Raw | bytes]) -> list[Event]:
    """Decode events; what is none is left out."""
    return _readable(_event, items)


def choose(pods: Sequence[Pod], roles: PodRoles = NO_ROLES) -> Pod | None:
    """Choose the pod where none is named: of the first role that has begun one that runs, else one that ran.

    Of several the newest.
    """

    def rank(pod: Pod) -> tuple[bool, int, bool, str, str]:
        phase, created = pod.status.phase, pod.metadata.creation_timestamp or ""
        has_begun = phase in ("Running", "Succeeded", "Failed")
        role = roles.rank(roles.of(pod.metadata.labels or {}))
        return has_begun, -role, phase == "Running", created, pod.metadata.name

    return max(pods, key=rank, default=None)


def _readable(decoder: msgspec.json.Decoder[T], items: Iterable[msgspec.Raw | bytes]) -> list[T]:
    found = []
    for item in items:
        if len(memoryview(item)) > MOST_ITEM_BYTES:
            continue
        try:
            found.append(decoder.decode(item))
        except JUNK:
            continue
    return found


def _cut(listed: list[T] | None, most: int) -> list[T] | None:
    return listed[:most] if listed else None


def _first(found: Mapping[str, str] | None, most: int) -> dict[str, str]:
    return dict(islice((found or {}).items(), most))
