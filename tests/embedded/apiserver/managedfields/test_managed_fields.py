"""Who owns what after a write that is no apply."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mirror.batch.feature_gates import DEFAULT_GATES
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Context, Strategy
from mirror.embedded.apiserver.build import builtin
from mirror.embedded.apiserver.managedfields import field_manager, sets

Json = dict[str, Any]
KINDS = {kind.kind: kind for kind in builtin(DEFAULT_GATES)}
MAP, JOB, NODE, ACCOUNT = KINDS["ConfigMap"], KINDS["Job"], KINDS["Node"], KINDS["ServiceAccount"]
NOON, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"


def made(kind: Kind = MAP, *, by: str = "kubectl", **fields: Any) -> Json:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, **fields}
    new = kind.strategy.decode(body)
    kind.strategy.default(new, Context(now=NOON))
    field_manager.track(new, None, kind, manager=by, subresource="", now=NOON)
    return new


def changed(
    old: Json, kind: Kind = MAP, *, by: str, subresource: str = "", meta: Json | None = None, **fields: Any
) -> Json:
    new = deepcopy({**old, **fields})
    new["metadata"] |= meta or {}
    field_manager.track(new, old, kind, manager=by, subresource=subresource, now=LATER)
    return new


def owners(body: Json) -> dict[str, Json]:
    return {f"{one['manager']}/{one['operation']}": one["fieldsV1"] for one in body["metadata"]["managedFields"]}


def test_who_creates_an_object_owns_all_that_was_set() -> None:
    """Its identity is nobody's."""
    body = made(data={"k": "v"})
    assert body["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOON,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:k": {}}},
        }
    ]


def test_defaults_are_owned_by_the_creator_and_lists_by_their_keys() -> None:
    """What a new object has anyway is not."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = owners(made(JOB, spec={"template": template}))["kubectl/Update"]["f:spec"]
    assert spec["f:backoffLimit"] == {}
    assert spec["f:template"]["f:spec"]["f:containers"] == {
        'k:{"name":"c"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:imagePullPolicy": {},
            "f:resources": {},
            "f:terminationMessagePath": {},
            "f:terminationMessagePolicy": {},
        }
    }
    assert "f:metadata" not in spec["f:template"]


def test_what_a_write_changes_moves_to_its_manager() -> None:
    """What it only repeats stays where it is."""
    body = changed(made(data={"k": "v", "l": "w"}), by="edit", data={"k": "v", "l": "x", "m": "y"})
    assert owners(body) == {
        "kubectl/Update": {"f:data": {".": {}, "f:k": {}}},
        "edit/Update": {"f:data": {"f:l": {}, "f:m": {}}},
    }


def test_what_is_removed_is_nobodys() -> None:
    """A manager with nothing left is gone."""
    body = changed(made(data={"k": "v"}), by="edit", data={"l": "w"})
    assert owners(body) == {"edit/Update": {"f:data": {"f:l": {}}}, "kubectl/Update": {"f:data": {}}}


def test_a_write_that_changes_nothing_leaves_all_entries_as_they_are() -> None:
    """Times, too."""
    old = made(data={"k": "v"})
    assert changed(old, by="edit")["metadata"]["managedFields"] == old["metadata"]["managedFields"]


def test_status_has_a_manager_of_its_own() -> None:
    """And the spec is not touched through it, nor the status through the object."""
    old = made(JOB, spec={"template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}})
    body = changed(old, JOB, by="ctl", subresource="status", status={"active": 1}, spec={"suspend": True})
    entry = next(one for one in body["metadata"]["managedFields"] if one["manager"] == "ctl")
    assert entry["subresource"] == "status"
    assert entry["fieldsV1"] == {"f:status": {"f:active": {}}}
    again = changed(old, JOB, by="edit", status={"active": 1})
    assert list(owners(again)) == ["kubectl/Update"]


def test_items_without_keys_end_tracking() -> None:
    """As upstream, where the object does not fit its own schema then."""
    body = made(ACCOUNT, secrets=[{"name": "a"}])
    assert "managedFields" in body["metadata"]
    assert "managedFields" not in changed(body, ACCOUNT, by="edit", secrets=[{"namespace": "x"}])["metadata"]


@pytest.mark.parametrize("given", [[], [{}]])
def test_a_client_can_ask_to_forget(given: list[Json]) -> None:
    """Nothing is tracked afterwards, until somebody applies."""
    body = changed(made(data={"k": "v"}), by="edit", meta={"managedFields": given}, data={"k": "w"})
    assert "managedFields" not in body["metadata"]
    assert "managedFields" not in changed(body, by="edit", data={"k": "x"})["metadata"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Guess", "apiVersion": "v1", "fieldsType": "FieldsV1"},
        {"operation": "Apply", "fieldsType": "FieldsV1"},
        {"operation": "Apply", "apiVersion": "v1"},
        {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": []},
        {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}},
    ],
)
def test_entries_that_are_wrong_do_not_count(wrong: Json) -> None:
    """The stored ones do."""
    old = made(data={"k": "v"})
    body = changed(old, by="edit", meta={"managedFields": [wrong]})
    assert body["metadata"]["managedFields"] == old["metadata"]["managedFields"]


def test_entries_that_are_right_are_taken_from_the_request() -> None:
    """So kubectl can migrate its own."""
    old = made(data={"k": "v"})
    mine = {**old["metadata"]["managedFields"][0], "manager": "other", "operation": "Apply"}
    assert owners(changed(old, by="edit", meta={"managedFields": [mine]})) == {
        "other/Apply": {"f:data": {".": {}, "f:k": {}}}
    }


def test_of_many_updaters_the_oldest_become_one() -> None:
    """No more than ten are told apart."""
    body = made(data={"k": "v"}, by="m00")
    for number in range(1, 15):
        body = changed(body, by=f"m{number:02}", data={**body["data"], f"k{number}": "v"})
    names = [one["manager"] for one in body["metadata"]["managedFields"]]
    assert len(names) == 10
    assert "ancient-changes" in names


def test_atomic_things_are_owned_as_one() -> None:
    """A list without a type, a selector."""
    old = made(NODE, spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})
    assert owners(old)["kubectl/Update"] == {"f:spec": {"f:taints": {}}}
    body = changed(old, NODE, by="edit", spec={"taints": [{"key": "b", "effect": "NoSchedule"}]})
    assert owners(body) == {"edit/Update": {"f:spec": {"f:taints": {}}}}


def test_custom_resources_are_owned_by_their_schema() -> None:
    """Without one, maps are owned by their members and lists as a whole."""

    class Own(Strategy):
        """With a schema."""

        shape = sets.of_schema(
            {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {
                            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                            "parts": {
                                "type": "array",
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["id"],
                                "items": {"type": "object", "properties": {"id": {"type": "integer"}}},
                            },
                        },
                    }
                },
            }
        )

    spec = {"tags": ["a"], "parts": [{"id": 1}]}
    body = made(Kind("example.com", "v1", "Widget", "widgets", Own()), spec=deepcopy(spec))
    assert owners(body)["kubectl/Update"] == {
        "f:spec": {".": {}, "f:tags": {".": {}, 'v:"a"': {}}, "f:parts": {".": {}, 'k:{"id":1}': {".": {}, "f:id": {}}}}
    }
    plain = made(Kind("example.com", "v1", "Widget", "widgets", Strategy()), spec=spec)
    assert owners(plain)["kubectl/Update"] == {"f:spec": {".": {}, "f:tags": {}, "f:parts": {}}}
