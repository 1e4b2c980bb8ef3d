"""What a manager relies on in the API of custom resources (CR1-CR11), on a server in memory.

The same is asked of a real server by ``e2e.test_api_contract``, which plays the scripts for both.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mirror.embedded.apiserver.messages import Response
from tests.embedded.apiserver.asking import MERGE, Asking
from tests.embedded.apiserver.crds.test_custom_resources import CRDS, THINGS, thing

pytestmark = pytest.mark.looptime

GROUP = "/apis/example.com/v1"
PATCH = "application/json-patch+json"
TEXT = {"type": "string"}
SPEC = {
    "type": "object",
    "properties": {"managedBy": {**TEXT, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}, "size": TEXT},
}
STATUS = {
    "type": "object",
    "properties": {
        "phase": TEXT,
        "steps": {
            "type": "array",
            "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
        },
    },
}


def definition(*, has_status: bool = True) -> dict[str, Any]:
    """Of Things, with the fields of a kind that knows managedBy."""
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if has_status:
        version["subresources"] = {"status": {}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}}
    return {"metadata": {"name": "things.example.com"}, "spec": {**spec, "versions": [version]}}


async def with_a_thing(*, has_status: bool = True, **more: Any) -> Asking:
    api = Asking()
    await api.ok("POST", CRDS, definition(has_status=has_status))
    await asyncio.sleep(0)
    await api.ok("POST", THINGS, thing(**more))
    return api


def operations(*listed: tuple[str, str, Any]) -> Any:
    return [{"op": op, "path": path, "value": value} for op, path, value in listed]


async def patched(api: Asking, path: str, body: Any, content_type: str) -> tuple[int, dict[str, Any]]:
    return await api.ask("PATCH", path, body, content_type=content_type)


async def test_status_requests_store_no_metadata() -> None:
    """CR1: whatever their form; their version is looked at."""
    api = await with_a_thing()
    marks = {"annotations": {"a": "1"}, "labels": {"l": "1"}}
    bodies = (
        (operations(("add", "/metadata/annotations", {"a": "1"}), ("add", "/status", {"phase": "A"})), PATCH),
        ({"metadata": marks, "status": {"phase": "B"}}, MERGE),
    )
    for body, content_type in bodies:
        code, found = await patched(api, f"{THINGS}/t/status", body, content_type)
        assert code == 200
        assert not {"annotations", "labels"} & found["metadata"].keys()
    whole = await api.ok("GET", f"{THINGS}/t")
    whole["metadata"] |= marks
    found = await api.ok("PUT", f"{THINGS}/t/status", {**whole, "status": {"phase": "C"}})
    assert (found["status"], "annotations" in found["metadata"]) == ({"phase": "C"}, False)
    stale = operations(("replace", "/metadata/resourceVersion", whole["metadata"]["resourceVersion"]))
    assert (await patched(api, f"{THINGS}/t/status", stale, PATCH))[0] == 409


async def test_a_status_is_written_beside_its_object_where_there_is_the_subresource() -> None:
    """CR2: and counts as no change of the spec; without it its path answers as if the object was not there."""
    api = await with_a_thing()
    found = await api.ok("PATCH", f"{THINGS}/t", {"status": {"phase": "A"}}, content_type=MERGE)
    assert "status" not in found
    found = await api.ok("PATCH", f"{THINGS}/t/status", {"status": {"phase": "A"}}, content_type=MERGE)
    assert (found["status"], found["metadata"]["generation"]) == ({"phase": "A"}, 1)

    without = await with_a_thing(has_status=False)
    body = {"status": {"phase": "A"}}
    code, refused = await patched(without, f"{THINGS}/t/status", body, MERGE)
    assert (code, refused["reason"], refused["details"]["name"]) == (404, "NotFound", "t")
    found = await without.ok("PATCH", f"{THINGS}/t", body, content_type=MERGE)
    assert (found["status"], found["metadata"]["generation"]) == ({"phase": "A"}, 2)


async def test_patches_have_three_forms() -> None:
    """CR3: a strategic one is none of them; a version that is replaced is compared."""
    api = await with_a_thing()
    strategic = "application/strategic-merge-patch+json"
    assert (await patched(api, f"{THINGS}/t", {"spec": {"size": "a"}}, strategic))[0] == 415
    found = await api.ok("PATCH", f"{THINGS}/t", {"spec": {"size": "a"}}, content_type=MERGE)
    version = found["metadata"]["resourceVersion"]
    body = operations(("replace", "/metadata/resourceVersion", version), ("replace", "/spec/size", "b"))
    assert (await patched(api, f"{THINGS}/t", body, PATCH))[0] == 200
    assert (await patched(api, f"{THINGS}/t", body, PATCH))[0] == 409
    applied = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"size": "c"}}
    path = f"{THINGS}/t?fieldManager=tests&force=true"
    assert (await patched(api, path, applied, "application/apply-patch+yaml"))[0] == 200


async def test_unknown_fields_are_pruned_with_a_warning_or_refused() -> None:
    """CR4: by name, with 400 when it is created and 422 when it is patched."""
    api = await with_a_thing()
    found = await api.ok("POST", THINGS, thing("u", spec={"sizes": "a"}))
    assert found["spec"] == {}
    assert '299 - "unknown field \\"spec.sizes\\""' in dict(api.headers)["Warning"]
    code, _, message = await api.refused("POST", f"{THINGS}?fieldValidation=Strict", thing("v", spec={"sizes": "a"}))
    assert (code, 'unknown field "spec.sizes"' in message) == (400, True)
    body = {"spec": {"sizes": "a"}}
    code, refused = await patched(api, f"{THINGS}/u?fieldValidation=Strict", body, MERGE)
    assert (code, 'unknown field "spec.sizes"' in refused["message"]) == (422, True)


async def test_one_bad_element_refuses_the_whole_status() -> None:
    """CR5: nothing of it is stored."""
    api = await with_a_thing()
    body = {"status": {"phase": "A", "steps": [{"name": "a"}, {}]}}
    assert (await patched(api, f"{THINGS}/t/status", body, MERGE))[0] == 422
    assert "status" not in await api.ok("GET", f"{THINGS}/t")


async def test_a_value_that_may_not_change_may_come_and_go() -> None:
    """CR6: a rule about the old value is asked where both objects have one."""
    api = await with_a_thing()

    async def name(value: str | None) -> int:
        return (await patched(api, f"{THINGS}/t", {"spec": {"managedBy": value}}, MERGE))[0]

    assert [await name(one) for one in ("a", "b", None, "b", "a")] == [200, 422, 200, 200, 422]


async def test_while_a_definition_goes_nothing_new_is_created() -> None:
    """CR7: what is there can be read and changed; discovery has the verb no more, which tells it from a refusal."""
    api = await with_a_thing()
    held = thing("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    await api.ok("POST", THINGS, held)
    assert "create" in await verbs(api)
    await api.ok("DELETE", f"{CRDS}/things.example.com")
    await asyncio.sleep(0)
    code, reason, message = await api.refused("POST", THINGS, thing("u"))
    assert (code, reason) == (403, "Forbidden")
    text = "create not allowed while custom resource definition is terminating"
    assert message == f'things.example.com "u" is forbidden: {text}'
    assert await verbs(api) == ["delete", "deletecollection", "get", "list", "watch"]
    assert await api.ok("GET", f"{THINGS}/held")
    await api.ok("PATCH", f"{THINGS}/held/status", {"status": {"phase": "A"}}, content_type=MERGE)


async def verbs(api: Asking) -> list[str]:
    found = await api.ok("GET", GROUP)
    return next(one["verbs"] for one in found["resources"] if one["name"] == "things")


async def test_what_is_not_served_answers_without_a_status() -> None:
    """CR8, CR11: before a definition and after it; a missing object has one, which names it."""
    api = Asking()
    await assert_no_page(api)
    api = await with_a_thing()
    code, reason, _ = await api.refused("GET", f"{THINGS}/other")
    assert (code, reason) == (404, "NotFound")


async def assert_no_page(api: Asking) -> None:
    """In plain text; who asks for JSON gets a Status that names no object."""
    answer = await api.raw("GET", f"{THINGS}/t", accept="*/*")
    assert isinstance(answer, Response)
    assert (answer.status, bytes(answer.body)) == (404, b"404 page not found\n")
    code, found = await api.ask("GET", f"{THINGS}/t")
    assert (code, found["details"]) == (404, {})


async def test_each_object_of_a_definition_that_goes_is_told() -> None:
    """CR9, CR12: with its last status, and then the watch ends."""
    api = await with_a_thing()
    found = await api.ok("PATCH", f"{THINGS}/t/status", {"status": {"phase": "Done"}}, content_type=MERGE)
    async with api.watch(f"{THINGS}?watch=1&resourceVersion={found['metadata']['resourceVersion']}") as watching:
        await api.ok("DELETE", f"{CRDS}/things.example.com")
        kind, body = await watching.next()
        assert (kind, body["status"]) == ("DELETED", {"phase": "Done"})


async def test_a_version_that_is_served_no_more_is_a_page_that_is_not_found() -> None:
    """CR10: while its objects are there in another one."""
    api = await with_a_thing()
    found = await api.ok("GET", f"{CRDS}/things.example.com")
    old = found["spec"]["versions"][0]
    found["spec"]["versions"] = [{**old, "served": False, "storage": False}, {**old, "name": "v2"}]
    await api.ok("PUT", f"{CRDS}/things.example.com", found)
    await asyncio.sleep(0)
    await assert_no_page(api)
    assert (await api.ok("GET", f"{THINGS}/t".replace("/v1/", "/v2/")))["apiVersion"] == "example.com/v2"
