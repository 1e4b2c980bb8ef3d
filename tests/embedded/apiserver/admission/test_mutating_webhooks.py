"""Webhooks that change what is written."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.embedded.apiserver.admission.calling import CallFailed
from tests.embedded.apiserver.admission.hooking import HOOKS, Hooked, Json, allow, configuration, label, patch, rule
from tests.embedded.apiserver.asking import JOBS, MAPS, MERGE, job

pytestmark = pytest.mark.looptime


async def test_what_it_is_asked() -> None:
    """A review as kube-apiserver writes it."""
    api = Hooked()
    await api.hook("a", allow, timeoutSeconds=3)
    await api.map("m", labels={"x": "y"})
    await api.ok("PATCH", f"{MAPS}/m", {"data": {"k": "v"}}, content_type=MERGE)
    created, changed = api.functions.asked
    assert (created.url, created.seconds) == ("https://127.0.0.1:1/a", 3)
    assert created.request["operation"] == "CREATE"
    assert (
        created.request["kind"] == created.request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    )
    assert created.request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (created.request["name"], created.request["namespace"]) == ("m", "default")
    assert created.request["userInfo"]["username"] == "kubernetes-admin"
    assert (created.request["object"]["kind"], created.request["oldObject"]) == ("ConfigMap", None)
    assert created.request["dryRun"] is False
    assert (changed.request["operation"], changed.request["oldObject"].get("data")) == ("UPDATE", None)
    assert changed.request["object"]["data"] == {"k": "v"}


async def test_it_changes_the_object_and_defaults_and_rules_come_after_it() -> None:
    """What it adds gets defaults; what it breaks is refused as if the user had written it."""
    api = Hooked()
    suspend: Json = {"op": "add", "path": "/spec/suspend", "value": True}
    await api.hook("a", patch(suspend), rules=[rule("jobs", "batch")])
    made = await api.ok("POST", JOBS, job("one"))
    assert made["spec"]["suspend"] is True
    await api.ok("DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/a")
    negative: Json = {"op": "add", "path": "/spec/parallelism", "value": -1}
    await api.hook("b", patch(negative), rules=[rule("jobs", "batch")])
    code, reason, message = await api.refused("POST", JOBS, job("two"))
    assert (code, reason) == (422, "Invalid")
    assert "spec.parallelism: Invalid value: -1" in message


async def test_they_see_what_those_before_them_did() -> None:
    """In the order of the configurations' names."""
    api = Hooked()
    await api.hook("b", label("second", "2"))
    await api.hook("a", label("first", "1"))
    assert (await api.map("m"))["metadata"]["labels"] == {"first": "1", "second": "2"}
    assert [asked.url[-1] for asked in api.functions.asked] == ["a", "b"]
    assert api.functions.asked[1].request["object"]["metadata"]["labels"] == {"first": "1"}


async def test_who_wants_is_asked_again_after_others_changed_something() -> None:
    """Once, and not for what it did itself."""
    api = Hooked()
    await api.hook("a", label("first", "1"), reinvocationPolicy="IfNeeded")
    await api.hook("b", label("second", "2"), reinvocationPolicy="IfNeeded")
    await api.map("m")
    assert [asked.url[-1] for asked in api.functions.asked] == ["a", "b", "a"]


async def test_nobody_is_asked_again_for_nothing() -> None:
    """A patch that changes nothing is none."""
    api = Hooked()
    await api.hook("a", allow, reinvocationPolicy="IfNeeded")
    await api.hook("b", patch({"op": "test", "path": "/kind", "value": "ConfigMap"}))
    await api.map("m")
    assert len(api.functions.asked) == 2


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({}, (400, "", 'admission webhook "a.example.com" denied the request without explanation')),
        ({"message": "no"}, (400, "", 'admission webhook "a.example.com" denied the request: no')),
        ({"reason": "Because"}, (400, "Because", 'admission webhook "a.example.com" denied the request: Because')),
        ({"message": "no", "code": 403}, (403, "", 'admission webhook "a.example.com" denied the request: no')),
        ({"message": "no", "code": 200}, (400, "", 'admission webhook "a.example.com" denied the request: no')),
    ],
)
async def test_it_says_no(status: Json, told: tuple[int, str, str]) -> None:
    """With its own words and code."""
    api = Hooked()
    await api.hook("a", lambda request: {"allowed": False, "status": status})
    assert await api.refused("POST", MAPS, {"metadata": {"name": "m"}}) == told


BROKEN: list[tuple[Any, str]] = [
    (CallFailed("no route"), "failed to call webhook: no route"),
    (lambda request: {"raw": b"<html>"}, "received invalid webhook response: the answer is not JSON"),
    (lambda request: {"raw": b"[]"}, "received invalid webhook response: webhook response was absent"),
    (lambda request: {"uid": "other"}, "received invalid webhook response: expected response.uid="),
    (
        lambda request: {"allowed": True, "patch": "e30="},
        "received invalid webhook response: webhook returned response.patch but not response.patchType",
    ),
    (
        lambda request: {"allowed": True, "patch": "!", "patchType": "JSONPatch"},
        "received invalid webhook response: received undecodable patch in webhook response",
    ),
]


@pytest.mark.parametrize(("answering", "why"), BROKEN, ids=[why[:60] for _, why in BROKEN])
async def test_one_that_cannot_be_asked(answering: Any, why: str) -> None:
    """Its failure policy says what that means."""
    api = Hooked()
    await api.hook("a", answering)
    code, reason, message = await api.refused("POST", MAPS, {"metadata": {"name": "m"}})
    assert (code, reason) == (500, "InternalError")
    begin = 'Internal error occurred: failed calling webhook "a.example.com": '
    assert message.startswith(begin + why)
    tolerant = configuration("a", failurePolicy="Ignore")
    await api.ok("PATCH", f"{HOOKS.format('mutating')}/a", tolerant, content_type=MERGE)
    await api.map("m")


async def test_a_dry_run_does_not_ask_who_has_side_effects() -> None:
    """Old configurations may have other words than those that are accepted now; the request is refused."""
    api = Hooked()
    await api.hook("a", allow, sideEffects="NoneOnDryRun")
    await api.ok("POST", f"{MAPS}?dryRun=All", {"metadata": {"name": "m"}})
    assert api.functions.asked[0].request["dryRun"] is True


async def test_a_service_is_reached_where_it_is_said_to_be() -> None:
    """The certificate is still the service's."""
    api = Hooked()
    service = {"namespace": "ns", "name": "svc", "path": "/a"}
    await api.hook("a", allow, clientConfig={"service": service})
    code, _, message = await api.refused("POST", MAPS, {"metadata": {"name": "m"}})
    assert (code, message) == (
        500,
        'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: '
        'Post "https://svc.ns.svc:443/a?timeout=10s": service "svc" not found',
    )
    api.services["ns", "svc", 443] = "127.0.0.1:9"
    await api.map("m")
    assert (api.functions.asked[0].url, api.functions.asked[0].address) == ("https://svc.ns.svc:443/a", "127.0.0.1:9")


async def test_warnings_come_back() -> None:
    """As headers."""
    api = Hooked()
    await api.hook("a", lambda request: {"allowed": True, "warnings": ["odd"]})
    await api.map("m")
    assert ("Warning", '299 - "odd"') in [(name.title(), value) for name, value in api.headers]
