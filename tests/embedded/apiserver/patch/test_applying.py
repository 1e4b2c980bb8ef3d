"""Server-side apply: what is wanted comes, what is wanted no more goes, what is another's is a conflict."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.batch.feature_gates import DEFAULT_GATES
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.build import builtin
from mirror.embedded.apiserver.managedfields import field_manager
from mirror.embedded.apiserver.patch import applying
from mirror.embedded.apiserver.patch.apply import LAST_APPLIED, Applicant

Json = dict[str, Any]
KINDS = {kind.kind: kind for kind in builtin(DEFAULT_GATES)}
MAP, CRON, NODE = KINDS["ConfigMap"], KINDS["CronJob"], KINDS["Node"]
NOON, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"


def wanted(kind: Kind = MAP, **fields: Any) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, **fields}


def applied(
    patch: Json | bytes, current: Json | None = None, kind: Kind = MAP, *, by: str, force: bool = False, **how: Any
) -> Json:
    data = patch if isinstance(patch, bytes) else msgspec.json.encode(patch)
    applicant = Applicant(by, how.get("subresource", ""), how.get("now", NOON), force=force)
    found = applying.applied(data, current, kind, applicant, validation="Warn")
    body = kind.strategy.decode(found.body)
    kind.strategy.default(body, Context(now=NOON))
    return body


def owners(body: Json) -> dict[str, Json]:
    return {f"{one['manager']}/{one['operation']}": one["fieldsV1"] for one in body["metadata"]["managedFields"]}


def test_an_object_is_made_and_owned() -> None:
    """By what was said, without what was added to it."""
    body = applied(wanted(data={"k": "v"}), by="one")
    assert body["data"] == {"k": "v"}
    assert body["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:k": {}}},
        }
    ]


def test_what_is_not_wanted_any_more_goes() -> None:
    """If nobody else wants it."""
    body = applied(wanted(data={"k": "v", "l": "w"}), by="one")
    body = applied(wanted(data={"l": "w", "m": "x"}), body, by="two")
    body = applied(wanted(data={"k": "v"}), body, by="one")
    assert body["data"] == {"k": "v", "l": "w", "m": "x"}
    assert applied(wanted(data={"k": "v"}), body, by="two")["data"] == {"k": "v"}


def test_an_item_goes_with_its_key() -> None:
    """Others in the list stay, in their order."""
    containers = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
    pod = {"containers": containers, "restartPolicy": "Never"}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    body = applied(wanted(CRON, spec=spec), kind=CRON, by="one")
    side = {"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "e", "image": "i"}]}}}}}
    body = applied(wanted(CRON, spec=side), body, CRON, by="two")
    pod["containers"] = containers[1:]
    body = applied(wanted(CRON, spec=spec), body, CRON, by="one")
    found = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in found] == ["d", "e"]


def test_a_conflict_names_who_and_what() -> None:
    """409 with a cause for each, as upstream words it."""
    body = applied(wanted(data={"k": "v", "l": "w"}), by="one")
    with pytest.raises(StatusError) as caught:
        applied(wanted(data={"k": "x"}), body, by="two")
    assert caught.value.code == 409
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "one": .data.k'
    assert caught.value.status["details"] == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}]
    }
    with pytest.raises(StatusError, match=r'(?s)2 conflicts: conflicts with "one":\n- \.data\.k\n- \.data\.l$'):
        applied(wanted(data={"k": "x", "l": "x"}), body, by="two")


def test_force_takes_what_is_anothers() -> None:
    """Who loses it does not own it any more, and so cannot remove it."""
    body = applied(wanted(data={"k": "v"}), by="one")
    body = applied(wanted(data={"k": "x"}), body, by="two", force=True)
    assert owners(body) == {"two/Apply": {"f:data": {"f:k": {}}}}
    assert applied(wanted(), body, by="one")["data"] == {"k": "x"}


def test_a_field_of_an_updater_is_a_conflict_that_names_its_version() -> None:
    """Updaters have one entry for each version."""
    body = applied(wanted(data={"k": "v"}), by="one")
    new = msgspec.json.decode(msgspec.json.encode(body))
    new["data"]["k"] = "x"
    field_manager.track(new, body, MAP, manager="edit", subresource="", now=LATER)
    with pytest.raises(StatusError, match=r'conflict with "edit" using v1: \.data\.k'):
        applied(wanted(data={"k": "v"}), new, by="one")


def test_the_same_value_is_owned_by_both() -> None:
    """Nothing changes, so the second owner has no time of its own."""
    body = applied(wanted(data={"k": "v"}), by="one")
    body = applied(wanted(data={"k": "v"}), body, by="two", now=LATER)
    assert list(owners(body)) == ["two/Apply", "one/Apply"] or list(owners(body)) == ["one/Apply", "two/Apply"]
    assert [one.get("time") for one in body["metadata"]["managedFields"] if one["manager"] == "two"] == [None]


def test_before_the_first_apply_everything_has_one_owner() -> None:
    """Where nothing was tracked."""
    body = {**wanted(data={"k": "v"}), "metadata": {"name": "a", "uid": "u"}}
    body = applied(wanted(data={"l": "w"}), body, by="one", now=LATER)
    assert owners(body) == {
        "one/Apply": {"f:data": {"f:l": {}}},
        "before-first-apply/Update": {"f:data": {".": {}, "f:k": {}}},
    }


def test_status_is_applied_through_its_own_path() -> None:
    """DF13: there the spec is not owned, and here not the status."""
    body = applied(wanted(NODE, spec={"unschedulable": True}, status={"phase": "x"}), kind=NODE, by="one")
    assert owners(body) == {"one/Apply": {"f:spec": {"f:unschedulable": {}}}}
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    body = applied(wanted(NODE, status=status), body, NODE, by="kubelet", subresource="status")
    entry = next(one for one in body["metadata"]["managedFields"] if one["manager"] == "kubelet")
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"]["f:status"] == {
        "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:type": {}, "f:status": {}}}
    }


def test_kubectl_takes_what_it_owns_by_client_side_apply() -> None:
    """And keeps the annotation up to date."""
    recorded = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}'
    body = {
        **wanted(data={"k": "v", "l": "w"}),
        "metadata": {
            "name": "a",
            "uid": "u",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": recorded},
        },
    }
    with pytest.raises(StatusError, match=r"\.data\.k"):
        applied(wanted(data={"k": "x"}), body, by="other")
    found = applied(wanted(data={"k": "x<y"}), body, by="kubectl")
    assert found["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"v1","data":{"k":"x\\u003cy"},"kind":"ConfigMap","metadata":{"name":"a"}}\n'
    )
    with pytest.raises(StatusError, match=r"1 conflict: .*\.data\.l"):
        applied(wanted(data={"k": "x", "l": "x"}), body, by="kubectl")


@pytest.mark.parametrize(
    ("patch", "code", "told"),
    [
        (b"a: b: c", 400, "error decoding YAML: error converting YAML to JSON: yaml: mapping values are not allowed"),
        (b"- a", 400, "cannot unmarshal array into Go value of type map[string]interface {}"),
        (b"", 400, "invalid object type: /, Kind="),
        ({**wanted(), "kind": "Cat"}, 400, "invalid object type: /v1, Kind=Cat"),
        (wanted(metadata={"name": "a", "managedFields": []}), 400, "metadata.managedFields must be nil"),
        (wanted(more=1), 500, "(/a; /v1, Kind=ConfigMap): .more: field not declared in schema"),
        (wanted(data="x"), 500, ".data: expected map, got &{x}"),
        (wanted(data={"k": 5}), 500, ".data.k: expected string, got &value.valueUnstructured{Value:5}"),
        (wanted(metadata={"finalizers": ["a", "a"]}), 500, '.metadata.finalizers: duplicate entries for key [="a"]'),
        (
            wanted(metadata={"creationTimestamp": "x"}),
            500,
            "unable to convert unstructured object to /v1, Kind=ConfigMap",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused(patch: Json | bytes, code: int, told: str) -> None:
    """In the words of the server."""
    with pytest.raises(StatusError) as caught:
        applied(patch, by="one")
    assert (caught.value.code, told in str(caught.value)) == (code, True), str(caught.value)


def test_yaml_that_says_something_twice_is_warned_of_or_refused() -> None:
    """As in other bodies."""
    data = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\ndata: {k: w}"
    one = Applicant("one", "", NOON)
    found = applying.applied(data, None, MAP, one, validation="Warn")
    assert found.warnings == ['line 5: key "data" already set in map']
    with pytest.raises(StatusError, match="error strict decoding YAML"):
        applying.applied(data, None, MAP, one, validation="Strict")


_DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), _DATA, st.booleans()), max_size=8))
def test_an_applier_always_gets_what_it_asked_for(steps: list[tuple[str, Json, bool]]) -> None:
    """And the object has exactly what somebody owns."""
    body: Json | None = None
    for by, data, force in steps:
        with suppress(StatusError):
            body = applied(wanted(data=data), body, by=by, force=force)
            found = body.get("data", {})
            assert {name: found.get(name) for name in data} == data
            owned = (
                {name[2:] for fields in owners(body).values() for name in fields.get("f:data", {}) if name != "."}
                if ("managedFields" in body["metadata"])
                else set()
            )
            assert owned == set(found)


@given(st.binary(max_size=120))
def test_any_bytes_are_applied_or_refused(data: bytes) -> None:
    """Nothing else is ever raised."""
    with suppress(StatusError):
        applied(data, by="one")
