"""Every cell of ``What is carried, and what follows`` (docs/kinds.md), of every kind that is built in (D4, D9, D26).

That their definitions take these changes, and store them as they are sent, is ``e2e/test_kind_schemas``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from declared_objects import TRANSFORM, built_in_kind, followed, mirror_of, source_of
from doubles import carried_parts

from mirror.kinds.carried import Part
from mirror.kinds.declared.choosing import built_in
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kube.objects import Object
from mirror.model.field_paths import FieldPath, at, put, without
from mirror.settings.kinds import KindEntry

Json = Any
Change = tuple[str, Json, Json, Json]
"""The path of an operation, a spec before and after, and what is written."""


def cells(*of: str) -> list[Any]:
    """Kind and path of each, with these words of its entry for the paths."""
    found = ((kind, path) for kind, entry in built_in().items() for word in of for path in paths_of(entry, word))
    return [pytest.param(kind, path, id=f"{kind} {path}") for kind, path in found]


def paths_of(entry: KindEntry, word: str) -> tuple[str, ...]:
    match word:
        case "always":
            return entry.carry.always
        case "suspended":
            return entry.carry.suspended
        case "left out":
            return tuple(filter(None, (entry.managed_by.path, *entry.strip, entry.time_to_live)))
        case "autoscaled":
            return entry.autoscaling.theirs
        case _:
            return entry.theirs


def changes_at(kind: str, path: str, spec: Json) -> Iterator[Change]:
    """At each place of a path: another value, none, and one where there was none."""
    _, other = carried_parts.values_of(kind, path)
    body: Json = {"spec": spec}
    for place in carried_parts.places(body, path):
        pointer, before = Part("", place).pointer, at(body, place)
        yield pointer, spec, put(body, place, other)["spec"], other
        if before is not None:
            absent = without(body, place)["spec"]
            yield pointer, spec, absent, None
            yield pointer, absent, spec, before


@pytest.mark.parametrize(("name", "path"), cells("always"))
def test_what_follows_always_is_written_alone_while_it_runs_and_while_it_is_suspended(name: str, path: str) -> None:
    """Changed, removed and added."""
    kind, running = built_in_kind(name), carried_parts.whole(name)
    specs = [running, carried_parts.held(name, running)] if kind.can_be_suspended else [running]
    changes = [change for spec in specs for change in changes_at(name, path, spec)]
    assert changes
    for pointer, before, after, value in changes:
        assert followed(kind, before, after) == {pointer: value}


@pytest.mark.parametrize(("name", "path"), cells("suspended"))
def test_what_follows_to_a_suspended_one_is_written_to_no_other(name: str, path: str) -> None:
    """Its definition refuses the change of one that runs: a mirror that does has not seen a suspension (D3)."""
    kind, running, suspend = built_in_kind(name), carried_parts.whole(name), built_in()[name].suspend
    changes = list(changes_at(name, path, carried_parts.held(name, running)))
    assert changes
    for pointer, before, after, value in changes:
        assert followed(kind, before, after) == {pointer: value}
    for _, before, after, _ in changes_at(name, path, running):
        assert followed(kind, before, after) == {f"/{suspend.path.replace('.', '/')}": suspend.held}


@pytest.mark.parametrize(("name", "path"), cells("left out"))
def test_what_is_left_out_never_gets_there(name: str, path: str) -> None:
    """Neither with the mirror, nor when it is added, changed or removed later."""
    kind, plain = built_in_kind(name), {"spec": carried_parts.whole(name)}
    specs = [plain, *(carried_parts.with_value(plain, path, one) for one in carried_parts.values_of(name, path))]
    assert specs[1] != plain
    sources = [source_of(kind, one["spec"]) for one in specs]
    for source in sources:
        body = kind.mirror_body(source, namespace="team", transform=TRANSFORM)
        assert not [place for place in FieldPath.of_text(path).places(body) if at(body, place) is not None]
        assert all(kind.changes(one, mirror_of(kind, source), transform=TRANSFORM) is None for one in sources)


@pytest.mark.parametrize(("name", "path"), cells("autoscaled"))
def test_what_a_workers_autoscaler_has_is_left_to_it(name: str, path: str) -> None:
    """Where an object asks for one, whoever changes it; where not, it follows if the entry says so."""
    kind, plain = built_in_kind(name), carried_parts.whole(name)
    autoscaled, follows = carried_parts.autoscaled(name, plain), path in built_in()[name].carry.always
    assert_is_the_workers(kind, path, autoscaled)
    for _, before, after, _ in changes_at(name, path, autoscaled):
        assert not followed(kind, before, after)
    for pointer, before, after, value in changes_at(name, path, plain):
        assert followed(kind, before, after) == ({pointer: value} if follows else {})


@pytest.mark.parametrize(("name", "path"), cells("theirs"))
def test_what_a_workers_controllers_write_is_left_to_them(name: str, path: str) -> None:
    """Neither sent, nor put back, nor missed."""
    kind, plain = built_in_kind(name), carried_parts.whole(name)
    assert_is_the_workers(kind, path, plain)
    for source in _with_each(kind, path, {"metadata": {}, "spec": plain}):
        body = kind.mirror_body(source, namespace="team", transform=TRANSFORM)
        assert not [place for place in FieldPath.of_text(path).places(body) if at(body, place) is not None]


def assert_is_the_workers(kind: DeclaredKind, path: str, spec: Json) -> None:
    """Whatever the source had there when its mirror was made, and whatever that has, nothing is to be written."""
    for source in _with_each(kind, path, {"metadata": {}, "spec": spec}):
        mirror = mirror_of(kind, source)
        ours = {"labels": mirror.labels, "annotations": mirror.annotations, "uid": "m-1"}
        for found in _with_each(kind, path, {"metadata": ours, "spec": mirror.spec_dict()}):
            assert kind.changes(source, found, transform=TRANSFORM) is None


def _with_each(kind: DeclaredKind, path: str, body: Json) -> list[Object]:
    """An object as it is, and with either value at a path."""
    values = carried_parts.values_of(kind.name, path)
    bodies = [body, *(carried_parts.with_value(body, path, one) for one in values)]
    return [source_of(kind, one["spec"], **one["metadata"]) for one in bodies]
