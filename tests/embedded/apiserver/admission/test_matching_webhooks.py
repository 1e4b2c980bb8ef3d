"""Which webhooks a request concerns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.apiserver.admission.hooking import HOOKS, Hooked, allow, configuration, rule
from tests.embedded.apiserver.asking import MAPS

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("rules", "is_asked"),
    [
        ([rule()], True),
        ([rule("*")], True),
        ([rule("*/*")], True),
        ([rule("secrets")], False),
        ([rule("configmaps/status")], False),
        ([rule(group="batch")], False),
        ([rule(group="*")], True),
        ([rule(apiVersions=["v2"])], False),
        ([rule(operations=["UPDATE"])], False),
        ([rule(operations=["*"])], True),
        ([rule(scope="Namespaced")], True),
        ([rule(scope="Cluster")], False),
        ([rule("secrets"), rule()], True),
    ],
)
@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_rules(kind: str, rules: list[dict[str, Any]], is_asked: bool) -> None:
    """One that suits is enough."""
    api = Hooked()
    await api.hook("a", allow, kind=kind, rules=rules)
    await api.map("m")
    assert bool(api.functions.asked) is is_asked


@pytest.mark.parametrize(
    ("selector", "is_asked"),
    [
        ({}, True),
        ({"matchLabels": {"kubernetes.io/metadata.name": "default"}}, True),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, False),
    ],
)
async def test_labels_of_the_namespace(selector: dict[str, Any], is_asked: bool) -> None:
    """Of the one that is written into."""
    api = Hooked()
    await api.hook("a", allow, namespaceSelector=selector)
    await api.map("m")
    assert bool(api.functions.asked) is is_asked


async def test_labels_of_the_object_before_or_after() -> None:
    """Whoever takes the label off cannot get round it by that."""
    api = Hooked()
    await api.hook("a", allow, objectSelector={"matchLabels": {"x": "y"}})
    await api.map("m", labels={"x": "y"})
    await api.ok("PUT", f"{MAPS}/m", {"metadata": {"name": "m"}})
    await api.ok("PUT", f"{MAPS}/m", {"metadata": {"name": "m"}, "data": {"k": "v"}})
    assert [asked.request["operation"] for asked in api.functions.asked] == ["CREATE", "UPDATE"]


async def test_a_new_namespace_is_judged_by_its_own_labels() -> None:
    """It is its own namespace."""
    api = Hooked()
    wanted = [rule("namespaces", scope="Cluster")]
    await api.hook("a", allow, rules=wanted, namespaceSelector={"matchLabels": {"team": "red"}})
    await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "blue"}})
    await api.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "red", "labels": {"team": "red"}}})
    assert [asked.request["name"] for asked in api.functions.asked] == ["red"]
    assert api.functions.asked[0].request["namespace"] == "red"


async def test_deletions_are_asked_about_the_old_object() -> None:
    """There is no new one."""
    api = Hooked()
    await api.hook("a", allow, kind="validating", rules=[rule(operations=["DELETE"])])
    await api.map("m")
    await api.ok("DELETE", f"{MAPS}/m")
    (asked,) = api.functions.asked
    assert (asked.request["object"], asked.request["oldObject"]["metadata"]["name"]) == (None, "m")


async def test_nobody_is_locked_out_of_the_configurations() -> None:
    """A webhook that refuses everything can be removed."""
    api = Hooked()
    everything = [rule("*", "*", operations=["*"], apiVersions=["*"])]
    await api.hook("a", lambda request: {"allowed": False}, rules=everything)
    await api.hook("b", lambda request: {"allowed": False}, kind="validating", rules=everything)
    for kind, name in (("mutating", "a"), ("validating", "b")):
        await api.ok("DELETE", f"{HOOKS.format(kind)}/{name}")
    await api.map("m")


async def test_validating_ones_see_what_is_stored_and_change_nothing() -> None:
    """The first refusal is told."""
    api = Hooked()
    await api.hook("a", lambda request: {"allowed": False, "status": {"message": "no"}}, kind="validating")
    await api.hook("b", lambda request: {"allowed": False, "status": {"message": "never"}}, kind="validating")
    code, _, message = await api.refused("POST", MAPS, {"metadata": {"name": "m"}})
    assert (code, message) == (400, 'admission webhook "a.example.com" denied the request: no')
    assert len(api.functions.asked) == 2


async def test_a_configuration_is_completed_and_counted() -> None:
    """Defaults, generation, table."""
    api = Hooked()
    made = await api.hook("a", allow)
    (webhook,) = made["webhooks"]
    assert (webhook["failurePolicy"], webhook["matchPolicy"], webhook["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert (webhook["namespaceSelector"], webhook["objectSelector"]) == ({}, {})
    assert (webhook["reinvocationPolicy"], webhook["rules"][0]["scope"]) == ("Never", "*")
    assert made["metadata"]["generation"] == 1
    made["webhooks"][0]["timeoutSeconds"] = 5
    changed = await api.ok("PUT", f"{HOOKS.format('mutating')}/a", made)
    assert changed["metadata"]["generation"] == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "a"}, 'webhooks[0].name: Invalid value: "a": should be a domain with at least three segments'),
    ({"rules": [rule(operations=[])]}, "webhooks[0].rules[0].operations: Required value"),
    ({"rules": [rule("")]}, "webhooks[0].rules[0].resources[0]: Required value"),
    ({"failurePolicy": "Maybe"}, 'webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail"'),
    ({"sideEffects": None}, "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"),
    ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between"),
    ({"clientConfig": {}}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
    ({"clientConfig": {"url": "http://x/"}}, "'https' is the only allowed URL scheme; desired format: https://host"),
    ({"clientConfig": {"service": {"namespace": "n"}}}, "webhooks[0].clientConfig.service.namespace: Required value"),
    ({"admissionReviewVersions": []}, "webhooks[0].admissionReviewVersions: Required value: must specify one of v1,"),
    ({"admissionReviewVersions": ["v9"]}, 'Invalid value: ["v9"]: must include at least one of v1, v1beta1'),
    ({"matchConditions": [{"name": "a", "expression": "true"}]}, "webhooks[0].matchConditions: Forbidden: "),
]


@pytest.mark.parametrize(("more", "why"), WRONG, ids=[why[:70] for _, why in WRONG])
async def test_what_is_wrong_with_a_configuration(more: dict[str, Any], why: str) -> None:
    """The words of kube-apiserver, but for expressions, which are refused rather than ignored."""
    api = Hooked()
    code, reason, message = await api.refused("POST", HOOKS.format("mutating"), configuration("a", **more))
    assert (code, reason) == (422, "Invalid")
    assert why in message
