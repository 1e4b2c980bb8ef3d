"""Whose request it is: certificates, tokens, nobody."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

from tests.contract.api import Api
from tests.contract.case import Group
from tests.contract.like import TEXT, UID

cases = Group("users")
_FORBIDDEN = 'cannot list resource "configmaps" in API group "" in the namespace "OURS"'


@cases.case
async def nobody_is_anonymous(api: Api) -> None:
    answer = await api.anonymous().get("configmaps")
    answer.refused(403, "Forbidden", f'configmaps is forbidden: User "system:anonymous" {_FORBIDDEN}')


@cases.case
async def nobody_may_ask_for_health_and_version(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await api.anonymous().get(path)
        assert (answer.status, answer.text) == (200, "ok")
    (await api.anonymous().get("/version")).ok()


@cases.case
async def nobody_may_not_discover(api: Api) -> None:
    for path in ("/api", "/apis", "/openapi/v3"):
        message = f'forbidden: User "system:anonymous" cannot get path "{path}"'
        (await api.anonymous().get(path)).refused(403, "Forbidden", message)


@cases.case
async def a_token_that_nobody_gave_is_refused(api: Api) -> None:
    for token in ("nonsense", "a.b.c", "eyJhbGciOiJub25lIn0.e30."):
        (await api.bearing(token).get("configmaps")).refused(401, "Unauthorized", "Unauthorized")


@cases.case
async def a_way_to_log_in_that_there_is_not_is_nobodys(api: Api) -> None:
    stranger = replace(api, headers=(("authorization", "Basic eDp5"),), is_identified=False)
    assert (await stranger.get("configmaps")).status in (401, 403)


@cases.case
async def a_token_is_an_account(api: Api) -> None:
    token = await _token(api)
    answer = await api.bearing(token).post("selfsubjectreviews", {})
    info = answer.ok(201)["status"]["userInfo"]
    assert info["username"] == "system:serviceaccount:OURS:robot"
    groups = ["system:serviceaccounts", "system:serviceaccounts:OURS", "system:authenticated"]
    assert info["groups"] == groups
    assert info["uid"] == UID
    assert list(info["extra"]) == ["authentication.kubernetes.io/credential-id"]


@cases.case
async def an_account_may_nothing_until_a_role_lets_it(api: Api) -> None:
    robot = api.bearing(await _token(api))
    answer = await robot.get("configmaps")
    user = "system:serviceaccount:OURS:robot"
    answer.refused(403, "Forbidden", f'configmaps is forbidden: User "{user}" {_FORBIDDEN}')
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    (await api.post("roles", {"metadata": {"name": "r"}, "rules": [rule]})).ok(201)
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "OURS"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    (await api.post("rolebindings", {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]})).ok(201)
    await api.repeat(lambda: robot.get("configmaps"), lambda answer: answer.status == 200)


@cases.case
async def a_token_says_what_it_is(api: Api) -> None:
    token = await _token(api)
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==="))
    assert claims["sub"] == "system:serviceaccount:OURS:robot".replace("OURS", api.namespace)
    assert claims["kubernetes.io"]["namespace"] == api.namespace
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "robot"
    assert claims["kubernetes.io"]["serviceaccount"]["uid"] == UID
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["aud"] == ["https://kubernetes.default.svc"]
    assert claims["iss"] == TEXT


@cases.case
async def a_token_ends_with_its_account(api: Api) -> None:
    robot = api.bearing(await _token(api))
    (await robot.post("selfsubjectreviews", {})).ok(201)
    (await api.delete("serviceaccounts/robot")).ok()
    await api.repeat(lambda: robot.post("selfsubjectreviews", {}), lambda answer: answer.status == 401)


@cases.case
async def a_token_of_an_account_that_was_made_again_is_refused(api: Api) -> None:
    robot = api.bearing(await _token(api))
    (await api.delete("serviceaccounts/robot")).ok()
    (await api.post("serviceaccounts", {"metadata": {"name": "robot"}})).ok(201)
    await api.repeat(lambda: robot.post("selfsubjectreviews", {}), lambda answer: answer.status == 401)


@cases.case
async def a_token_for_others_is_not_for_us(api: Api) -> None:
    token = await _token(api, audiences=["someone.else"])
    (await api.bearing(token).get("configmaps")).refused(401, "Unauthorized", "Unauthorized")


@cases.case
async def a_changed_token_is_refused(api: Api) -> None:
    head, claims, signature = (await _token(api)).split(".")
    changed = ("A" if signature[0] != "A" else "B") + signature[1:]
    (await api.bearing(f"{head}.{claims}.{changed}").get("configmaps")).refused(401, "Unauthorized", "Unauthorized")


@cases.case
async def a_certificate_is_a_user_of_groups(api: Api) -> None:
    if api.server.certified is None:
        return
    wire = await api.server.certified("jane", ("dev", "ops"))
    jane = replace(api, server=replace(api.server, wire=wire))
    info = (await jane.post("selfsubjectreviews", {})).ok(201)["status"]["userInfo"]
    assert info["username"] == "jane"
    assert info["groups"] == ["dev", "ops", "system:authenticated"]
    answer = await jane.get("configmaps")
    answer.refused(403, "Forbidden", f'configmaps is forbidden: User "jane" {_FORBIDDEN}')


@cases.case
async def who_may_not_impersonate_is_refused(api: Api) -> None:
    robot = api.bearing(await _token(api))
    answer = await robot.get("configmaps", headers={"impersonate-user": "jane"})
    answer.refused(
        403,
        "Forbidden",
        'configmaps is forbidden: User "system:serviceaccount:OURS:robot" cannot impersonate-on:user-info:list '
        'resource "configmaps" in API group "" in the namespace "OURS"',
    )


@cases.case
async def who_may_not_discovers_no_more_than_others(api: Api) -> None:
    """Everyone who is somebody may discover."""
    jane = api.impersonating("jane")
    for path in ("/api", "/apis", "/api/v1", "/apis/batch/v1", "/openapi/v3", "/version"):
        (await jane.get(path)).ok()


async def _token(api: Api, **spec: object) -> str:
    (await api.post("serviceaccounts", {"metadata": {"name": "robot"}})).ok(201)
    answer = await api.post("serviceaccounts/robot/token", {"spec": {"expirationSeconds": 3600, **spec}})
    token: str = answer.ok(201)["status"]["token"]
    return token
