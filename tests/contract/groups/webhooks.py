"""Admission webhooks, really called over HTTPS: what they are asked, and what their answers do."""

from __future__ import annotations

from functools import partial

from tests.contract.answer import Wrong
from tests.contract.api import JSON_PATCH, Api
from tests.contract.case import Group
from tests.contract.hooks import MUTATING, NAME, VALIDATING, configure, patching, probe, serving
from tests.contract.like import ABSENT, UID, differences

cases = Group("webhooks")

CM = {"metadata": {"name": "a"}, "data": {"k": "v"}}
ADD = {"op": "add", "path": "/metadata/labels", "value": {"hooked": "yes"}}


def _like(expected: object, found: object) -> None:
    if wrong := list(differences(expected, found)):
        raise Wrong("\n    ".join(wrong))


@cases.case
async def a_validating_webhook_is_asked_and_allows(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        (await api.post("configmaps", CM)).ok(201)
        [request] = hook.requests
    _like(
        {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "a",
            "namespace": api.namespace,
            "operation": "CREATE",
            "object": {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": "a", "uid": UID},
                "data": {"k": "v"},
            },
            "oldObject": None,
            "dryRun": False,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            "subResource": ABSENT,
        },
        request,
    )
    assert "system:masters" in request["userInfo"]["groups"]


@cases.case
async def a_refusal_is_told_in_the_webhooks_words(api: Api) -> None:
    async with serving(lambda request: {"allowed": False, "status": {"message": "not today"}}) as hook:
        await configure(api, hook)
        answer = await api.post("configmaps", CM)
    answer.refused(400, "", f'admission webhook "{NAME}" denied the request: not today')
    (await api.get("configmaps/a")).refused(404, "NotFound", 'configmaps "a" not found')


@cases.case
async def a_refusal_without_words(api: Api) -> None:
    async with serving(lambda request: {"allowed": False}) as hook:
        await configure(api, hook)
        answer = await api.post("configmaps", CM)
    answer.refused(400, "", f'admission webhook "{NAME}" denied the request without explanation')


@cases.case
async def a_refusal_has_the_webhooks_code_and_reason(api: Api) -> None:
    status = {"code": 422, "reason": "Invalid", "message": "odd", "details": {"causes": [{"field": "data"}]}}
    async with serving(lambda request: {"allowed": False, "status": status}) as hook:
        await configure(api, hook)
        answer = await api.post("configmaps", CM)
    answer.refused(422, "Invalid", f'admission webhook "{NAME}" denied the request: odd', [("", "data", "")])


@cases.case
async def warnings_reach_the_user(api: Api) -> None:
    async with serving(lambda request: {"allowed": True, "warnings": ["first", 'a "second"']}) as hook:
        await configure(api, hook)
        (await api.post("configmaps", CM)).ok(201, warnings=["first", 'a "second"'])


@cases.case
async def a_mutating_webhook_changes_what_is_stored(api: Api) -> None:
    async with serving(patching(ADD)) as hook:
        await configure(api, hook, MUTATING)
        (await api.post("configmaps", CM)).ok(201, {"metadata": {"labels": {"hooked": "yes"}}})
    (await api.get("configmaps/a")).ok(200, {"metadata": {"labels": {"hooked": "yes"}}})


@cases.case
async def what_a_webhook_made_is_checked(api: Api) -> None:
    bad = {"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}
    async with serving(patching(bad)) as hook:
        await configure(api, hook, MUTATING)
        answer = await api.post("configmaps", CM)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


@cases.case
async def what_a_webhook_made_is_seen_by_validating_ones(api: Api) -> None:
    async with serving(patching(ADD)) as changing, serving() as looking:
        await configure(api, changing, MUTATING)
        await configure(api, looking)
        (await api.post("configmaps", CM)).ok(201)
        [request] = looking.requests
    assert request["object"]["metadata"]["labels"] == {"hooked": "yes"}


@cases.case
async def mutating_webhooks_are_asked_in_order_of_names(api: Api) -> None:
    append = {"op": "add", "path": "/data/order", "value": "first"}
    again = {"op": "copy", "from": "/data/order", "path": "/data/seen"}
    async with serving(patching(append)) as first, serving(patching(again)) as second:
        await configure(api, second, MUTATING, named="2")
        await configure(api, first, MUTATING, named="1")
        (await api.post("configmaps", CM)).ok(201, {"data": {"order": "first", "seen": "first"}})


@cases.case
async def an_update_shows_old_and_new(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        await api.post("configmaps", CM)
        (await api.put("configmaps/a", {"metadata": {"name": "a"}, "data": {"k": "w"}})).ok()
        (await api.patch("configmaps/a", {"data": {"k": "x"}})).ok()
        (await api.apply("configmaps/a", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).ok()
        # A real server asks again when its cache was behind, an apply too: so each is found by what it changes.
        updates = [one for one in hook.requests if one["operation"] == "UPDATE"]
        changes = {(one["oldObject"]["data"]["k"], one["object"]["data"]["k"]): one for one in updates}
        put, patch, apply = changes["v", "w"], changes["w", "x"], updates[-1]
    assert put["options"]["kind"] == "UpdateOptions"
    assert patch["options"]["kind"] == apply["options"]["kind"] == "UpdateOptions"
    assert apply["options"]["fieldManager"] == "ours"


@cases.case
async def a_delete_shows_the_old(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        await api.post("configmaps", CM)
        (await api.delete("configmaps/a", {"propagationPolicy": "Background"})).ok()
        request = hook.requests[-1]
    like = {"operation": "DELETE", "object": None, "oldObject": {"data": {"k": "v"}}, "name": "a"}
    _like({**like, "options": {"kind": "DeleteOptions", "propagationPolicy": "Background"}}, request)


@cases.case
async def a_deletion_may_be_refused(api: Api) -> None:
    async with serving(lambda request: {"allowed": request["operation"] != "DELETE"}) as hook:
        await configure(api, hook)
        await api.post("configmaps", CM)
        message = f'admission webhook "{NAME}" denied the request without explanation'
        (await api.delete("configmaps/a")).refused(400, "", message)
        (await api.get("configmaps/a")).ok()


@cases.case
async def a_collection_is_asked_one_by_one(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        await api.post("configmaps", CM)
        await api.post("configmaps", {"metadata": {"name": "b"}})
        (await api.delete("configmaps")).ok()
        deletions = [one for one in hook.requests if one["operation"] == "DELETE"]
        deleted = sorted({one["oldObject"]["metadata"]["name"] for one in deletions})
        assert not any("name" in one for one in deletions), "who deletes a collection names nothing"
    assert deleted == ["a", "b"]


@cases.case
async def a_dry_run_says_so(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        (await api.post("configmaps?dryRun=All", CM)).ok(201)
        assert [one["dryRun"] for one in hook.requests] == [True]


@cases.case
async def a_webhook_with_effects_refuses_dry_runs(api: Api) -> None:
    async with serving() as hook:
        name = await configure(api, hook)
        await api.patch(
            f"{VALIDATING}/{name}",
            [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "NoneOnDryRun"}],
            JSON_PATCH,
        )
        (await api.post("configmaps?dryRun=All", CM)).ok(201)
        answer = await api.patch(
            f"{VALIDATING}/{name}", [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "Some"}], JSON_PATCH
        )
        assert answer.status == 422, answer.text


@cases.case
async def rules_say_which_operations(api: Api) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["UPDATE"]}
    async with serving() as hook, serving() as watcher:
        await configure(api, hook, rules=[rule])
        await configure(api, watcher, named="2")
        await api.post("configmaps", CM)
        await api.patch("configmaps/a", {"data": {"k": "w"}})
        assert {one["operation"] for one in hook.requests} == {"UPDATE"}
        assert len(watcher.requests) == 2


@cases.case
async def rules_say_which_subresources(api: Api) -> None:
    rule = {"apiGroups": ["batch"], "apiVersions": ["*"], "resources": ["jobs/status"], "operations": ["*"]}
    job = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    async with serving() as hook, serving() as watcher:
        await configure(api, hook, rules=[rule])
        await configure(api, watcher, named="2")
        (await api.post("jobs", {"metadata": {"name": "j"}, "spec": {"template": job}})).ok(201)
        (await api.patch("jobs/j/status", {"status": {"active": 1}})).ok()
        [request] = hook.requests
    assert (request["subResource"], request["operation"]) == ("status", "UPDATE")


@cases.case
async def an_object_selector_says_which_objects(api: Api) -> None:
    async with serving() as hook, serving() as watcher:
        await configure(api, hook, objectSelector={"matchLabels": {"x": "y"}})
        await configure(api, watcher, named="2")
        await api.post("configmaps", CM)
        await api.post("configmaps", {"metadata": {"name": "b", "labels": {"x": "y"}}})
        await api.patch("configmaps/b", {"metadata": {"labels": None}})
        asked = [(one["name"], one["operation"]) for one in hook.requests]
    assert asked == [("b", "CREATE"), ("b", "UPDATE")], "the old object counts as well"


@cases.case
async def a_namespace_selector_says_which_namespaces(api: Api) -> None:
    (await api.post("namespaces", {"metadata": {"name": "OURS-n"}})).ok(201)
    async with serving(lambda request: {"allowed": False}) as hook:
        await configure(api, hook)
        (await api.post("/api/v1/namespaces/OURS-n/configmaps", CM)).ok(201)
        assert (await api.post("configmaps", CM)).status == 400


@cases.case
async def a_configuration_that_is_gone_is_asked_no_more(api: Api) -> None:
    async with serving(lambda request: {"allowed": False}) as hook:
        name = await configure(api, hook)
        (await api.delete(f"{VALIDATING}/{name}")).ok()
        ask = partial(api.post, "configmaps?dryRun=All", CM)
        await api.repeat(ask, lambda answer: answer.status == 201)


@cases.case
async def webhooks_are_asked_again_if_others_changed_something_later(api: Api) -> None:
    """reinvocationPolicy IfNeeded."""
    async with serving() as first, serving(patching(ADD)) as second:
        await configure(api, first, MUTATING, named="1", reinvocationPolicy="IfNeeded")
        await configure(api, second, MUTATING, named="2")
        await probe(api, first)
        (await api.post("configmaps", CM)).ok(201)
        assert len(first.requests) == 2
        assert first.requests[1]["object"]["metadata"]["labels"] == {"hooked": "yes"}
        assert len(second.requests) == 1


@cases.case
async def webhooks_are_not_asked_again_by_default(api: Api) -> None:
    async with serving() as first, serving(patching(ADD)) as second:
        await configure(api, first, MUTATING, named="1")
        await configure(api, second, MUTATING, named="2")
        (await api.post("configmaps", CM)).ok(201)
        assert len(first.requests) == 1


@cases.case
async def a_binding_or_eviction_is_asked_as_its_own_kind(api: Api) -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"], "operations": ["*"]}]
    async with serving() as hook, serving() as watcher:
        await configure(api, hook, rules=rules)
        await configure(api, watcher, named="2")
        (await api.post("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})).ok(
            201
        )
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        (await api.post("pods/p/eviction", eviction)).ok(201)
        [request] = [one for one in hook.requests if one.get("subResource") == "eviction"]
    _like({"kind": {"group": "policy", "kind": "Eviction"}, "subResource": "eviction", "operation": "CREATE"}, request)


@cases.case
async def custom_objects_are_admitted_too(api: Api) -> None:
    group = "contract.example.com"
    rules = [{"apiGroups": [group], "apiVersions": ["v1"], "resources": ["things"], "operations": ["*"]}]
    async with serving(patching({"op": "add", "path": "/spec/mode", "value": "B"})) as hook, serving() as watcher:
        await configure(api, hook, MUTATING, rules=rules)
        await configure(api, watcher, MUTATING, named="2")
        thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
        answer = await api.post(f"/apis/{group}/v1/namespaces/OURS/things", thing)
        answer.ok(201, {"spec": {"size": 1, "mode": "B", "name": "abc"}})
        [request] = hook.requests
    _like({"kind": {"group": group, "version": "v1", "kind": "Thing"}, "object": {"spec": {"name": "abc"}}}, request)


@cases.case
async def configurations_are_not_admitted_by_webhooks(api: Api) -> None:
    """Or nobody could repair a cluster whose webhook refuses everything."""
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]
    async with serving(lambda request: {"allowed": False}) as hook, serving() as watcher:
        selector = {"matchLabels": {"contract": "OURS"}}
        name = await configure(api, hook, rules=rules, objectSelector=selector)
        await configure(api, watcher, named="2")
        answer = await api.patch(f"{VALIDATING}/{name}", {"metadata": {"labels": {"contract": "OURS"}}})
        answer.ok()
        (await api.delete(f"{VALIDATING}/{name}")).ok()
        assert hook.requests == []
