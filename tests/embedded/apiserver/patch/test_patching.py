"""JSON, merge and strategic merge patches."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.batch.feature_gates import DEFAULT_GATES
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Strategy
from mirror.embedded.apiserver.build import builtin
from mirror.embedded.apiserver.patch import patching

Json = dict[str, Any]
POD = next(kind for kind in builtin(DEFAULT_GATES) if kind.kind == "Pod")
CUSTOM = Kind("example.com", "v1", "Widget", "widgets", Strategy())
JSON_PATCH, MERGE, STRATEGIC = (
    f"application/{kind}+json" for kind in ("json-patch", "merge-patch", "strategic-merge-patch")
)
CURRENT: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"x": "y"}, "finalizers": ["a/b", "c/d"]},
    "spec": {
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}, {"name": "d", "image": "i"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "k"}],
    },
}


def patched(content: str, patch: object, *, validation: str = "Warn", kind: Kind = POD, current: Json = CURRENT) -> Any:
    data = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
    before = deepcopy(current)
    try:
        return patching.patched(content, data, current, kind, validation)
    finally:
        assert current == before


def refusal(content: str, patch: object, **how: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        patched(content, patch, **how)
    return caught.value


LABELS, FINALIZERS = "/metadata/labels", "/metadata/finalizers"


@pytest.mark.parametrize(
    ("operation", "found"),
    [
        ({"op": "add", "path": f"{LABELS}/z", "value": "1"}, {"x": "y", "z": "1"}),
        ({"op": "add", "path": f"{FINALIZERS}/0", "value": "n"}, ["n", "a/b", "c/d"]),
        ({"op": "add", "path": f"{FINALIZERS}/-", "value": "n"}, ["a/b", "c/d", "n"]),
        ({"op": "remove", "path": f"{FINALIZERS}/-1"}, ["a/b"]),
        ({"op": "replace", "path": f"{LABELS}/new", "value": "1"}, {"x": "y", "new": "1"}),
        ({"op": "add", "path": f"{LABELS}/a~1b~0", "value": "1"}, {"x": "y", "a/b~": "1"}),
        ({"op": "move", "from": f"{LABELS}/x", "path": f"{LABELS}/w"}, {"w": "y"}),
        ({"op": "copy", "from": "/metadata/name", "path": f"{LABELS}/x"}, {"x": "a"}),
        ({"op": "test", "path": LABELS, "value": {"x": "y"}}, {"x": "y"}),
    ],
)
def test_operations_of_json_patches(operation: Json, found: object) -> None:
    """Replacing what is not there adds it, and places may be counted from the end: so the server's library has it."""
    meta = patched(JSON_PATCH, [operation]).body["metadata"]
    assert meta["finalizers" if isinstance(found, list) else "labels"] == found


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/name", "value": "b"},
        {"op": "remove", "path": "/metadata/labels/none"},
        {"op": "add", "path": "/metadata/none/x", "value": "1"},
        {"op": "add", "path": "/metadata/finalizers/9", "value": "1"},
        {"op": "add", "path": "/metadata/finalizers/x", "value": "1"},
        {"op": "guess", "path": "/metadata"},
        {"op": "add", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": "", "value": 1},
        {},
    ],
)
def test_operations_that_do_not_apply(operation: Json) -> None:
    """422 without a reason, as upstream."""
    refused = refusal(JSON_PATCH, [operation])
    assert (refused.code, str(refused)) == (422, "the server rejected our request due to an error in our request")


@pytest.mark.parametrize(
    ("content", "patch", "code", "told"),
    [
        (JSON_PATCH, {}, 400, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (JSON_PATCH, [5], 400, "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (JSON_PATCH, [{"op": 5}], 400, "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        (JSON_PATCH, [{"op": "test"}] * 10_001, 413, "maximum operations in a JSON patch is 10000, got 10001"),
        (MERGE, [], 400, "cannot unmarshal array into Go value of type map[string]interface {}"),
        (MERGE, b"null", 400, "Invalid JSON Patch"),
        (MERGE, b"{", 400, "error decoding patch: unexpected end of JSON input"),
        (MERGE, {"kind": "Cat"}, 422, 'no kind "Cat" is registered'),
        (MERGE, {"spec": {"priority": "x"}}, 422, "Go struct field PodSpec.spec.priority of type int32"),
        (STRATEGIC, b"[]", 400, "cannot unmarshal array into Go value of type map[string]interface {}"),
        (STRATEGIC, {"spec": {"containers": [{"image": "x"}]}}, 500, "does not contain declared merge key: name"),
        (STRATEGIC, {"spec": {"containers": "x"}}, 422, "cannot restore slice from string"),
        (STRATEGIC, {"metadata": {"$patch": "guess"}}, 500, "unknown patch type: guess in map: map[$patch:guess]"),
        (STRATEGIC, {"metadata": {"$retainKeys": ["x"], "name": "a"}}, 400, "invalid patch format of retainKeys"),
        ("text/plain", {}, 415, "415: Unsupported Media Type"),
    ],
)
def test_patches_that_are_refused(content: str, patch: object, code: int, told: str) -> None:
    """Each in the words of the server."""
    refused = refusal(content, patch)
    assert (refused.code, told in str(refused)) == (code, True), str(refused)


def test_copies_of_copies_end_somewhere() -> None:
    """At three megabytes, as upstream."""
    current = {**CURRENT, "metadata": {**CURRENT["metadata"], "annotations": {"a": "x" * 100_000}}}
    copies = [
        {"op": "copy", "from": "/metadata/annotations/a", "path": f"/metadata/annotations/b{n}"} for n in range(60)
    ]
    assert refusal(JSON_PATCH, copies, current=current).code == 422
    assert len(patched(JSON_PATCH, copies[:20], current=current).body["metadata"]["annotations"]) == 21


def test_a_merge_patch_removes_by_null() -> None:
    """And takes nothing else of nulls."""
    body = patched(MERGE, {"metadata": {"labels": {"x": None, "n": "m"}, "annotations": {"a": None}}}).body
    assert body["metadata"]["labels"] == {"n": "m"}
    assert body["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        ([{"name": "d", "image": "n"}, {"name": "e"}], ["c", "d", "e"]),
        ([{"name": "e"}, {"name": "c"}], ["e", "c", "d"]),
        ([{"name": "c", "$patch": "delete"}], ["d"]),
        ([{"$patch": "replace"}, {"name": "e"}], ["e"]),
    ],
)
def test_lists_with_keys_are_merged_by_them(patch: list[Json], names: list[str]) -> None:
    """In the patch's order, the rest where it was."""
    body = patched(STRATEGIC, {"spec": {"containers": patch}}).body
    assert [one["name"] for one in body["spec"]["containers"]] == names


def test_the_order_of_a_list_can_be_said() -> None:
    """Of items that the patch does not name, too."""
    patch = {"spec": {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}]}}
    assert [one["name"] for one in patched(STRATEGIC, patch).body["spec"]["containers"]] == ["d", "c"]
    wrong = {"spec": {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "e"}]}}
    assert "The order in patch list" in str(refusal(STRATEGIC, wrong))


def test_sets_and_atomic_lists() -> None:
    """Values are united, or removed by a list beside it; other lists are replaced."""
    patch = {
        "metadata": {"finalizers": ["e/f"], "$deleteFromPrimitiveList/finalizers": ["a/b"]},
        "spec": {"tolerations": [{"key": "n"}]},
    }
    body = patched(STRATEGIC, patch).body
    assert sorted(body["metadata"]["finalizers"]) == ["c/d", "e/f"]
    assert body["spec"]["tolerations"] == [{"key": "n"}]


def test_what_is_retained_can_be_said() -> None:
    """One kind of volume in place of another."""
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}
    body = patched(STRATEGIC, {"spec": {"volumes": [volume]}}).body
    assert body["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/"}}]


@pytest.mark.parametrize(
    ("content", "patch", "warning"),
    [
        (JSON_PATCH, [{"op": "test", "path": "/kind", "value": "Pod", "x": 1}], 'json patch unknown field "[0].x"'),
        (JSON_PATCH, [{"op": "add", "path": "/nothing", "value": 1}], 'unknown field "nothing"'),
        (MERGE, {"spec": {"nothing": 1}}, 'unknown field "spec.nothing"'),
        (MERGE, b'{"metadata": {"name": "a", "name": "a"}}', 'duplicate field "metadata.name"'),
        (STRATEGIC, {"spec": {"nothing": 1}}, 'unknown field "spec.nothing"'),
    ],
)
def test_unknown_fields_are_warned_of_or_refused(content: str, patch: object, warning: str) -> None:
    """422 here, unlike in other bodies."""
    assert patched(content, patch).warnings == [warning]
    assert patched(content, patch, validation="Ignore").warnings == []
    refused = refusal(content, patch, validation="Strict")
    assert (refused.code, str(refused).endswith(f"strict decoding error: {warning}")) == (422, True)


def test_custom_resources_take_no_strategic_patches() -> None:
    """They have no merge keys."""
    current = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"a": 1}}
    assert refusal(STRATEGIC, {}, kind=CUSTOM, current=current).code == 415
    body = patched(MERGE, {"spec": {"b": [1]}}, kind=CUSTOM, current=current).body
    assert body["spec"] == {"a": 1, "b": [1]}


_NAMES = ["name", "spec", "containers", "env", "volumes", "$patch", "$retainKeys", "$setElementOrder/env"]
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=2) | st.sampled_from(["replace", "delete", "c"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["name", "spec", "containers", "env", "volumes", "$patch", "$retainKeys", "$setElementOrder/env"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)
_PATHS = st.sampled_from(["", "/", "/spec", "/spec/containers/0", "/spec/containers/-", "/metadata/labels/x", "x"])
_OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": _PATHS},
        optional={"from": _PATHS, "value": _VALUES},
    ),
    max_size=3,
)


@given(_VALUES | st.fixed_dictionaries({"spec": _VALUES, "metadata": _VALUES}), _OPERATIONS)
def test_any_patch_applies_or_is_refused(patch: object, operations: list[Json]) -> None:
    """Nothing else is ever raised, and nothing that was given is changed."""
    for content, wanted in ((MERGE, patch), (STRATEGIC, patch), (JSON_PATCH, operations), (JSON_PATCH, patch)):
        for kind in (POD, CUSTOM):
            with suppress(StatusError):
                patched(content, wanted, kind=kind)
