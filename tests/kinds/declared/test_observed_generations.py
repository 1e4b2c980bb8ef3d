"""``observedGeneration`` of a source: of which of its generations its mirror's status tells (D9, D25)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from declared_objects import TRANSFORM, built_in_kind, condition, source_of

from mirror.kinds.base import MirrorTransform
from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kube.objects import Object, decode_object
from mirror.model import field_paths, names
from mirror.model.field_paths import FieldPath

Json = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OBSERVED = "observedGeneration"
BEFORE, AFTER = 3, 4
"""Generations of the source."""
STRIPPING = msgspec.structs.replace(
    TRANSFORM,
    strip_node_selectors=("cloud.example.com/*",),
    strip_tolerations=("quota",),
    replace_node_selectors={("zone", "a"): ("zone", "b")},
)
DIRECTIVES: Json = {
    "nodeSelector": {"cloud.example.com/pool": "x", "zone": "a", "kept": "yes"},
    "tolerations": [{"key": "quota", "operator": "Exists"}, {"key": "other", "operator": "Exists"}],
    "schedulingGates": [{"name": "kueue.x-k8s.io/topology"}],
}
Change = Callable[[Json], Json]


def spec_with_directives(kind: DeclaredKind) -> Json:
    """The kind's sample, with what settings change in each of its pod templates."""
    body: Any = {"spec": dict(kind.entry.sample)}
    for path in map(FieldPath.of_text, kind.entry.templates):
        for place in path.places(body):
            template = field_paths.at(body, place)
            if isinstance(template, Mapping):
                body = field_paths.put(body, place, {**template, "spec": {**template["spec"], **DIRECTIVES}})
    return dict(body["spec"])


def created(kind: DeclaredKind, source: Object, transform: MirrorTransform, namespace: str = "team") -> Object:
    """Its mirror as it was sent."""
    body = kind.mirror_body(source, namespace=namespace, transform=transform)
    return decode_object(msgspec.json.encode({**body, "metadata": {**body["metadata"], "uid": "m-1", "generation": 1}}))


def with_status(mirror: Object, observed: int) -> Object:
    """The mirror once its controller has looked at this generation of it."""
    status = {OBSERVED: observed, "conditions": [condition("Seen", observedGeneration=observed)]}
    return msgspec.structs.replace(mirror, status=msgspec.Raw(msgspec.json.encode(status)))


def changed(mirror: Object, change: Change) -> Object:
    """The mirror with another spec, which is another generation of it."""
    meta = msgspec.structs.replace(mirror.metadata, generation=mirror.metadata.generation + 1)
    return msgspec.structs.replace(
        mirror, metadata=meta, spec=msgspec.Raw(msgspec.json.encode(change(mirror.spec_dict())))
    )


def told(kind: DeclaredKind, source: Object, mirror: Object) -> Any:
    """The generation that is stored of a source after its mirror's status came."""
    following = kind.stored(source).next_status(mirror, now=NOW)
    status = following.status if following.status is not None else source.status_dict()
    listed = [one.get(OBSERVED) for one in status.get("conditions", ()) if one["type"] == "Seen"]
    assert listed == [status.get(OBSERVED)]
    return status.get(OBSERVED)


def stored_at(kind: DeclaredKind, spec: Json, generation: int) -> Object:
    """A source of which generation 3 has been observed."""
    status = {OBSERVED: BEFORE, "conditions": [condition("Seen", observedGeneration=BEFORE)]}
    return source_of(kind, spec, status, generation=generation)


@pytest.mark.parametrize("transform", [TRANSFORM, STRIPPING], ids=["as it is", "changed by settings"])
@pytest.mark.parametrize("name", built_in())
def test_a_mirror_that_settings_have_changed_has_its_sources_spec(name: str, transform: MirrorTransform) -> None:
    """What they leave out or replace is no reason to stay behind, of any kind."""
    kind = built_in_kind(name)
    source = source_of(kind, spec_with_directives(kind))
    mirror = created(kind, source, transform)
    assert told(kind, source, with_status(mirror, 1)) == BEFORE
    assert told(kind, source, with_status(mirror, 0)) is None  # its controller has not looked yet


def test_a_mirror_in_a_namespace_with_a_prefix_has_its_sources_spec() -> None:
    """D19: an AppWrapper's contents are in its own namespace."""
    kind = built_in_kind("AppWrapper")
    spec = deepcopy(kind.entry.sample)
    spec["components"][0]["template"]["metadata"]["namespace"] = "team"
    source = source_of(kind, spec)
    assert told(kind, source, with_status(created(kind, source, TRANSFORM, "home-team"), 1)) == BEFORE


def test_what_the_workers_admission_has_changed_is_the_sources_spec_nevertheless() -> None:
    """A registry mirror writes other images there; its controller has seen all that its source says."""
    kind = built_in_kind("MPIJob")
    source = source_of(kind, dict(kind.entry.sample))

    def rewritten(spec: Json) -> Json:
        return dict(msgspec.json.decode(msgspec.json.encode(spec).replace(b"registry.invalid", b"cache.invalid")))

    mirror = created(kind, source, TRANSFORM)
    other = msgspec.structs.replace(mirror, spec=msgspec.Raw(msgspec.json.encode(rewritten(mirror.spec_dict()))))
    assert other.spec_dict() != mirror.spec_dict()
    assert told(kind, source, with_status(other, 1)) == BEFORE


def test_a_mirror_that_its_workers_queue_holds_has_its_sources_spec() -> None:
    """D26: its suspension is the queue's."""
    kind = built_in_kind("JobSet")
    source = source_of(kind, {**spec_with_directives(kind), "suspend": False})
    held = changed(created(kind, source, TRANSFORM), lambda spec: {**spec, "suspend": True})
    assert told(kind, source, with_status(held, 2)) == BEFORE


def in_template(key: str, value: object) -> Change:
    """A spec of a JobSet with this directive in its template; None: without it."""

    def change(spec: Json) -> Json:
        place = ("replicatedJobs", 0, "template", "spec", "template", *key.split("."))
        return dict(field_paths.without(spec, place) if value is None else field_paths.put(spec, place, value))

    return change


FOLLOWS: dict[str, Change] = {
    "a key removed": in_template("spec.nodeSelector.kept", None),
    "a field removed": in_template("spec.nodeSelector", None),
    "an element removed": in_template("spec.tolerations", DIRECTIVES["tolerations"][:1]),
    "a key that settings strip": in_template("spec.nodeSelector", {"cloud.example.com/pool": "y"}),
    "the first labels": in_template("metadata.labels", {"a": "b"}),
    "resumed": lambda spec: {**spec, "suspend": False},
    "a coordinator": lambda spec: {**spec, "coordinator": {"replicatedJob": "none"}},
}


@pytest.mark.parametrize("change", FOLLOWS.values(), ids=FOLLOWS)
def test_a_newer_spec_is_observed_once_it_has_followed(change: Change) -> None:
    """Not while only the older one is there, which may contain all of the newer; and not before it was looked at."""
    kind = built_in_kind("JobSet")
    spec = spec_with_directives(kind)
    mirror = created(kind, source_of(kind, spec), STRIPPING)
    source = stored_at(kind, change(spec), AFTER)
    assert told(kind, source, with_status(mirror, 1)) == BEFORE

    changes = kind.changes(source, mirror, transform=STRIPPING)
    assert changes is not None
    sent = {one["path"]: one["value"] for one in changes.operations if one["op"] != "remove"}
    meta = msgspec.structs.replace(
        mirror.metadata, generation=2, annotations=sent["/metadata/annotations"], labels=mirror.labels
    )
    wanted = msgspec.Raw(msgspec.json.encode(created(kind, source, STRIPPING).spec_dict()))
    followed = msgspec.structs.replace(mirror, metadata=meta, spec=wanted)
    assert kind.changes(source, followed, transform=STRIPPING) is None
    assert told(kind, source, with_status(followed, 1)) == BEFORE
    assert told(kind, source, with_status(followed, 2)) == AFTER


NOTHING: dict[str, Change] = {
    "a time to live": lambda spec: {**spec, "ttlSecondsAfterFinished": 5},
    "the same": lambda spec: spec,
}


@pytest.mark.parametrize("change", NOTHING.values(), ids=NOTHING)
def test_a_change_of_what_no_mirror_has_is_observed_at_once(change: Change) -> None:
    """D4: there is nothing to look at."""
    kind = built_in_kind("JobSet")
    spec = spec_with_directives(kind)
    mirror = created(kind, source_of(kind, spec), STRIPPING)
    assert told(kind, stored_at(kind, change(spec), AFTER), with_status(mirror, 1)) == AFTER


CANNOT: dict[str, Change] = {
    "another image": in_template("spec.containers", [{"name": "none", "image": "registry.invalid/other"}]),
    "a field less": in_template("spec.restartPolicy", None),
    "a Job more": lambda spec: {**spec, "replicatedJobs": spec["replicatedJobs"] * 2},
}


@pytest.mark.parametrize("change", CANNOT.values(), ids=CANNOT)
def test_what_cannot_follow_is_never_observed(change: Change) -> None:
    """D9: whoever waits for it would be told that it runs."""
    kind = built_in_kind("JobSet")
    spec = spec_with_directives(kind)
    mirror = created(kind, source_of(kind, spec), STRIPPING)
    assert told(kind, stored_at(kind, change(spec), AFTER), with_status(mirror, 1)) == BEFORE


@pytest.mark.parametrize("lost", [names.CARRIED, names.CARRIED_SPEC])
def test_without_a_note_the_specs_are_compared(lost: str) -> None:
    """Mirrors of an earlier release have one of both; somebody may have removed the other."""
    kind = built_in_kind("JobSet")
    spec = dict(kind.entry.sample)
    mirror = created(kind, source_of(kind, spec), TRANSFORM)
    kept = {key: value for key, value in mirror.annotations.items() if key != lost}
    bare = msgspec.structs.replace(mirror, metadata=msgspec.structs.replace(mirror.metadata, annotations=kept))
    assert told(kind, source_of(kind, spec), with_status(bare, 1)) == BEFORE
    other = CANNOT["another image"](FOLLOWS["resumed"](spec))
    assert told(kind, stored_at(kind, other, AFTER), with_status(bare, 1)) == BEFORE
