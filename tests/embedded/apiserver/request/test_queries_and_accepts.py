"""What of a query and of ``Accept`` a server looks at beside the options, and in which order (kube-apiserver 1.36)."""

from __future__ import annotations

import asyncio

import pytest
import yaml

from mirror.embedded.apiserver.messages import Response
from tests.embedded.apiserver.asking import MAPS, PODS, Asking, Json

OBJECTS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
ONLY = f"only the following media types are accepted: {OBJECTS}"
ROUTED = "406: Not Acceptable\n\nAvailable representations: "
POD: Json = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
THINGS = "/apis/example.io/v1/namespaces/default/things"
DEFINITION: Json = {
    "metadata": {"name": "things.example.io"},
    "spec": {
        "group": "example.io",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
            }
        ],
    },
}


@pytest.fixture
async def server() -> Asking:
    """One with nothing in it."""
    return Asking()


async def test_objects_are_not_exported(server: Asking) -> None:
    """A parameter that is no more is refused, not passed over; false is what it is without."""
    await server.map("a")
    refusal = (400, "BadRequest", "the export parameter, deprecated since v1.14, is no longer supported")
    for target in (f"{MAPS}/a", f"{MAPS}/b"):
        for value in ("true", "1", ""):
            assert await server.refused("GET", f"{target}?export={value}") == refusal
    assert (await server.ask("GET", f"{MAPS}/a?export=false"))[0] == 200
    assert (await server.ask("GET", f"{MAPS}?export=true"))[0] == 200, "a list has no such parameter"


async def test_preconditions_of_a_delete_may_be_in_the_query(server: Asking) -> None:
    """As in the body: uid and resourceVersion, and for each object of a collection."""
    made = (await server.map("a"))["metadata"]
    code, reason, message = await server.refused("DELETE", f"{MAPS}/a?uid=other")
    assert (code, reason) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match the UID in record" in message
    code, reason, message = await server.refused("DELETE", f"{MAPS}/a?resourceVersion=1")
    assert (code, reason) == (409, "Conflict")
    assert "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record" in message
    assert (await server.refused("DELETE", f"{MAPS}?resourceVersion=0"))[0] == 409
    given = f"uid={made['uid']}&resourceVersion={made['resourceVersion']}"
    assert (await server.ask("DELETE", f"{MAPS}/a?{given}"))[0] == 200
    await server.map("a")
    assert (await server.ask("DELETE", f"{MAPS}/a?uid=&resourceVersion="))[0] == 200


async def test_a_collection_is_deleted_as_it_was_at_the_named_version(server: Asking) -> None:
    """What came later stays, and what was changed later is a conflict."""
    first = (await server.map("a"))["metadata"]["resourceVersion"]
    await server.map("b")
    deleted = await server.ok("DELETE", f"{MAPS}?resourceVersion={first}")
    assert ([one["metadata"]["name"] for one in deleted["items"]], deleted["metadata"]) == (
        ["a"],
        {"resourceVersion": first},
    )
    last = (await server.ok("GET", MAPS))["metadata"]["resourceVersion"]
    assert (await server.refused("DELETE", f"{MAPS}?resourceVersion={last}"))[0] == 409
    assert [one["metadata"]["name"] for one in (await server.ok("GET", MAPS))["items"]] == ["b"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("x", 'time: invalid duration "x"'),
        ("10", 'time: missing unit in duration "10"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1%C2%A0", r'time: unknown unit "\xc2\xa0" in duration "1\xc2\xa0"'),
    ],
)
async def test_a_timeout_is_a_duration(server: Asking, value: str, why: str) -> None:
    """Whatever is asked for, and before anybody is asked who they are; but not of what may take for ever."""
    refusal = (400, "BadRequest", f"invalid timeout specified in the request URL - {why}")
    for method, target in (("GET", MAPS), ("POST", MAPS), ("GET", "/healthz"), ("GET", "/apis/no/v1/such")):
        assert await server.refused(method, f"{target}?timeout={value}", {} if method == "POST" else None) == refusal
    async with server.watch(f"{MAPS}?watch=1&timeout={value}"):
        pass
    assert (await server.refused("GET", f"{PODS}/p/log?timeout={value}"))[0] == 404
    assert (await server.ask("GET", f"{MAPS}?timeout=32s"))[0] == 200


async def test_a_body_of_an_unknown_type_comes_before_options_of_a_create(server: Asking) -> None:
    """An update looks at the options first."""
    told = f"the body of the request was in an unknown format - accepted media types include: {OBJECTS}"
    text = {"content_type": "text/plain"}
    for target in (MAPS, f"{PODS}/p/binding", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"):
        assert await server.refused("POST", f"{target}?dryRun=x", {}, **text) == (415, "UnsupportedMediaType", told)
    assert (await server.refused("PUT", f"{MAPS}/a?dryRun=x", {}, **text))[0] == 422


async def test_who_cannot_be_answered_changes_nothing(server: Asking) -> None:
    """A subresource that acts looks at what is accepted before it acts."""
    await server.ok("POST", PODS, POD)
    binding = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert (await server.refused("POST", f"{PODS}/p/binding", binding, accept="text/plain"))[0] == 406
    assert "nodeName" not in (await server.ok("GET", f"{PODS}/p"))["spec"]


async def test_the_router_knows_the_types_of_built_in_kinds(server: Asking) -> None:
    """It knows no ranges but the widest, and lists what there is of a thing; custom resources do without it."""
    await server.map("a")
    listed = ROUTED + OBJECTS
    for accept in ("application/*", "text/plain", "text/html, application/*;q=0.5"):
        assert await server.refused("GET", f"{MAPS}/a", accept=accept) == (406, "NotAcceptable", listed)
        assert (await server.refused("GET", MAPS, accept=accept))[2] == f"{listed}, {STREAMS}"
    assert (await server.refused("GET", MAPS, accept="application/vnd.kubernetes.protobuf"))[2] == ONLY
    assert (await server.refused("GET", f"{MAPS}/a", accept="application/yaml;stream=watch"))[2] == ONLY
    assert (await server.refused("GET", f"{PODS}/p/log", accept="text/plain"))[2] == ONLY
    await server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    await asyncio.sleep(0)
    assert (await server.ask("GET", THINGS, accept="application/*"))[0] == 200
    assert await server.refused("GET", THINGS, accept="text/plain") == (406, "NotAcceptable", ONLY)


async def test_a_watch_has_other_types(server: Asking) -> None:
    """YAML is none of them."""
    answer = await server.raw("GET", f"{MAPS}?watch=1", accept="application/yaml")
    assert isinstance(answer, Response)
    status = yaml.safe_load(answer.body)
    assert (answer.status, status["message"]) == (406, f"only the following media types are accepted: {STREAMS}")


async def test_what_is_discovered_comes_in_yaml_too(server: Asking) -> None:
    """As objects do, but converted to nothing; the version is JSON alone."""
    for path in ("/api", "/apis", "/apis/batch", "/apis/batch/v1"):
        answer = await server.raw("GET", path, accept="application/yaml")
        assert isinstance(answer, Response)
        assert yaml.safe_load(answer.body) == await server.ok("GET", path)
        assert answer.content_type == "application/yaml"
        told = (
            ONLY if path in ("/apis", "/apis/batch") else f"406: Not Acceptable\n\nAvailable representations: {OBJECTS}"
        )
        assert await server.refused("GET", path, accept="text/plain") == (406, "NotAcceptable", told)
        assert (await server.refused("GET", path, accept="application/json;as=Table;g=meta.k8s.io;v=v1"))[2] == ONLY
    told = f"{ROUTED}application/json"
    assert (await server.refused("GET", "/version", accept="text/plain"))[2] == told
    assert (await server.refused("POST", "/version", {}, accept="text/plain"))[0] == 405


async def test_a_scale_comes_in_yaml_too(server: Asking) -> None:
    """It is shown as objects are."""
    await server.ok("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    await asyncio.sleep(0)
    thing = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"n": 2}}
    await server.ok("POST", THINGS, thing)
    answer = await server.raw("GET", f"{THINGS}/t/scale", accept="application/yaml")
    assert isinstance(answer, Response)
    assert yaml.safe_load(answer.body) == await server.ok("GET", f"{THINGS}/t/scale")
    assert (await server.refused("GET", f"{THINGS}/t/scale", accept="text/plain"))[:2] == (406, "NotAcceptable")
    assert (await server.refused("GET", f"{THINGS}/t/scale?export=1"))[0] == 400
