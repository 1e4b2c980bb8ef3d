"""Events, in both versions: one stored form, two sets of rules."""

from __future__ import annotations

import pytest

from tests.embedded.apiserver.registry.resources.playing import Json, create, kind_of, stored, update

NEW = "events.k8s.io"
INVOLVED = {"kind": "Job", "name": "j", "namespace": "default"}
OLD_EVENT: Json = {
    "involvedObject": INVOLVED,
    "reason": "Ran",
    "message": "it ran",
    "source": {"component": "c"},
    "firstTimestamp": "2026-11-21T12:00:00Z",
    "lastTimestamp": "2026-11-21T12:00:00Z",
    "count": 2,
    "type": "Normal",
}
NEW_EVENT: Json = {
    "eventTime": "2026-11-21T12:00:00.5Z",
    "regarding": INVOLVED,
    "reason": "Ran",
    "note": "it ran",
    "action": "Run",
    "type": "Normal",
    "reportingController": "x.io/c",
    "reportingInstance": "c-1",
}


def test_an_event_of_one_version_is_one_of_the_other() -> None:
    """Nothing is lost on the way there and back."""
    strategy = kind_of("Event", NEW).strategy
    old, new = stored("Event", OLD_EVENT), stored("Event", NEW_EVENT, group=NEW)

    assert strategy.to_stored(strategy.from_stored(old)) == old
    assert strategy.from_stored(strategy.to_stored(new)) == new
    assert strategy.from_stored(old)["deprecatedSource"] == {"component": "c"}
    assert strategy.from_stored(old)["note"] == "it ran"
    assert strategy.to_stored(new)["involvedObject"] == INVOLVED
    assert strategy.to_stored(new)["eventTime"] == "2026-11-21T12:00:00.500000Z"


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        ({}, []),
        (
            {"involvedObject": {"namespace": "other"}},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
        ({"involvedObject": {}}, []),
        (
            {"eventTime": "2026-11-21T12:00:00Z", "reason": ""},
            [
                "reportingComponent: Required value",
                'reportingComponent: Invalid value: "": name part must be non-empty',
                "reportingComponent: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_'"
                " or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or"
                " '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "reportingInstance: Required value",
                "action: Required value",
                "reason: Required value",
            ],
        ),
        ({"type": "Odd", "reason": "x" * 200, "message": "x" * 2000}, []),
    ],
)
def test_an_old_event_is_asked_for_little(change: Json, causes: list[str]) -> None:
    """Unless it has a time as new ones have."""
    assert create("Event", OLD_EVENT | change).causes == causes


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        ({}, []),
        ({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
        (
            {"series": {"count": 1}},
            [
                'series.count: Invalid value: "": should be at least 2',
                "series.lastObservedTime: Required value",
            ],
        ),
        ({"deprecatedCount": 2}, ['count: Invalid value: "": needs to be unset']),
        ({"deprecatedSource": {"host": "h"}}, ['source: Invalid value: "": needs to be unset']),
        ({"note": "x" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
        ({"eventTime": None}, ["eventTime: Required value"]),
        ({"reportingController": ""}, None),
    ],
)
def test_a_new_event_is_asked_for_more(change: Json, causes: list[str] | None) -> None:
    """Causes name the fields of core."""
    found = create("Event", NEW_EVENT | change, group=NEW).causes

    if causes is None:
        assert found[0] == "reportingController: Required value"
    else:
        assert found == causes


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        ({"series": {"count": 2, "lastObservedTime": "2026-11-21T12:01:00Z"}}, []),
        ({"metadata": {"labels": {"x": "y"}}}, []),
        ({"note": "other"}, ['message: Invalid value: "other": field is immutable']),
        ({"reason": "Other"}, ['reason: Invalid value: "Other": field is immutable'] * 2),
        (
            {"eventTime": "2026-11-21T12:00:00.500001Z"},
            ['eventTime: Invalid value: "2026-11-21T12:00:00.500001Z": field is immutable'],
        ),
        ({"eventTime": "2026-11-21T12:00:00.500000Z"}, []),
        (
            {"regarding": {"name": "k"}},
            [
                'involvedObject: Invalid value: {"Kind":"Job","Namespace":"default","Name":"k","UID":"",'
                '"APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable'
            ],
        ),
    ],
)
def test_a_new_event_only_becomes_a_series(change: Json, causes: list[str]) -> None:
    """Everything else is as it was said."""
    assert update("Event", stored("Event", NEW_EVENT, group=NEW), change, group=NEW).causes == causes


def test_an_old_event_may_change() -> None:
    """In every way."""
    assert update("Event", stored("Event", OLD_EVENT), {"message": "other", "count": 3}).causes == []


def test_fields_by_which_events_are_selected() -> None:
    """The source is whoever reported it."""
    selectable = kind_of("Event").strategy.selectable
    event = stored("Event", OLD_EVENT)

    assert selectable["involvedObject.name"](event) == "j"
    assert selectable["source"](event) == "c"
    assert selectable["source"](event | {"source": {}, "reportingComponent": "r"}) == "r"
    assert kind_of("Event", NEW).strategy.selectable["regarding.kind"](stored("Event", NEW_EVENT, group=NEW)) == "Job"
