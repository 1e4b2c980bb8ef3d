"""Questions about access, asked as clients do, of a whole server."""

from random import Random
from typing import Any

import msgspec
import pytest

from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import ADMIN, Request, Response, User
from mirror.embedded.apiserver.server import ApiServer
from mirror.runtime.clock import SystemClock

JANE = User("jane", ("dev", "system:authenticated"), "uid-jane", {"scopes": ("a", "b")})
AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
PODS = {"verb": "get", "resource": "pods", "namespace": "default"}


@pytest.fixture
def server() -> ApiServer:
    return build(clock=SystemClock(), random=Random(1), authorization="RBAC", tokens={"secret": JANE})


async def ask(server: ApiServer, path: str, body: Any, *, user: User = JANE, query: str = "") -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    headers = {"content-type": "application/json", "user-agent": "test/1"}
    answer = await server.handle(Request("POST", path, query, headers, data, user=user))
    assert isinstance(answer, Response)
    return answer.status, msgspec.json.decode(answer.body)


async def review(server: ApiServer, path: str, body: Any, *, user: User = JANE) -> Any:
    code, found = await ask(server, path, body, user=user)
    assert code == 201, found
    return found


async def give_view(server: ApiServer) -> None:
    ref = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": "dev"}, "roleRef": ref, "subjects": [{"kind": "Group", "name": "dev"}]}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    code, found = await ask(server, path, body, user=ADMIN)
    assert code == 201, found


async def test_who_am_i(server: ApiServer) -> None:
    """Name, groups, uid and extra."""
    found = await review(server, f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert found["status"]["userInfo"] == {
        "username": "jane",
        "uid": "uid-jane",
        "groups": ["dev", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
    }
    assert found["kind"] == "SelfSubjectReview"
    assert "creationTimestamp" in found["metadata"]


async def test_may_i(server: ApiServer) -> None:
    """No, until a role says so; with what allows it."""
    path, body = f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": PODS}}
    assert (await review(server, path, body))["status"] == {"allowed": False}
    await give_view(server)
    assert (await review(server, path, body))["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by RoleBinding "dev/default" of ClusterRole "view" to Group "dev"',
    }


async def test_may_somebody(server: ApiServer) -> None:
    """Who may ask that; of users by name and groups alone."""
    await give_view(server)
    spec = {"resourceAttributes": PODS, "user": "bob", "groups": ["dev"]}
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    assert (await ask(server, path, {"spec": spec}))[0] == 403
    found = await review(server, path, {"spec": spec}, user=ADMIN)
    assert found["status"]["allowed"]
    assert found["spec"] == spec


async def test_may_somebody_here(server: ApiServer) -> None:
    """Of one namespace, which must be that of the question."""
    path = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    spec = {"resourceAttributes": PODS, "user": "bob"}
    assert (await review(server, path, {"spec": spec}, user=ADMIN))["status"] == {"allowed": False}
    other = {"resourceAttributes": {**PODS, "namespace": "other"}, "user": "bob"}
    code, found = await ask(server, path, {"spec": other}, user=ADMIN)
    assert code == 422
    assert found["details"]["causes"][0]["message"] == 'Invalid value: "other": must match metadata.namespace'


async def test_what_may_i(server: ApiServer) -> None:
    """Every rule of the namespace and of the cluster."""
    await give_view(server)
    found = await review(server, f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    rules = found["status"]
    assert not rules["incomplete"]
    assert {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]} in rules["resourceRules"]
    assert any("/healthz" in rule["nonResourceURLs"] for rule in rules["nonResourceRules"])


async def test_whose_token(server: ApiServer) -> None:
    """Of tokens that are given, and of service accounts; for others there is an error in the answer."""
    path = f"{AUTHENTICATION}/tokenreviews"
    found = (await review(server, path, {"spec": {"token": "secret"}}, user=ADMIN))["status"]
    assert found["authenticated"]
    assert found["user"]["username"] == "jane"
    found = (await review(server, path, {"spec": {"token": "wrong"}}, user=ADMIN))["status"]
    assert found == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize(
    ("code", "resource", "body", "message"),
    [
        (400, "selfsubjectaccessreviews", b"{", ""),
        (400, "selfsubjectaccessreviews", {"spec": {"resourceAttributes": 1}}, ""),
        (422, "selfsubjectaccessreviews", {}, "Invalid value: null: exactly one of nonResourceAttributes"),
        (
            422,
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": PODS, "nonResourceAttributes": {"path": "/"}}},
            'Invalid value: {"Path":"/","Verb":""}: cannot be specified in combination',
        ),
        (
            422,
            "selfsubjectaccessreviews",
            {"metadata": {"name": "a"}, "spec": {"resourceAttributes": PODS}},
            'Invalid value: {"name":"a","managedFields":[{"manager":"test",',
        ),
        (
            422,
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {**PODS, "labelSelector": {}}}},
            "requirements or rawSelector is required",
        ),
        (422, "subjectaccessreviews", {"spec": {"resourceAttributes": PODS}}, "at least one of user or group"),
        (400, "selfsubjectrulesreviews", {}, "no namespace on request"),
    ],
)
async def test_questions_that_make_no_sense(
    server: ApiServer, code: int, resource: str, body: Any, message: str
) -> None:
    """Are refused like objects."""
    found_code, found = await ask(server, f"{AUTHORIZATION}/{resource}", body, user=ADMIN)
    assert code == found_code
    assert message in found["message"]


async def test_reviews_are_only_created(server: ApiServer) -> None:
    """There is nothing to get."""
    answer = await server.handle(Request("GET", f"{AUTHORIZATION}/subjectaccessreviews", user=ADMIN))
    assert isinstance(answer, Response)
    assert answer.status == 405


async def test_roles_are_enforced(server: ApiServer) -> None:
    """On every path, served or not; bindings hold at once."""
    path = "/api/v1/namespaces/default/pods"
    refused = await server.handle(Request("GET", path, user=JANE))
    assert isinstance(refused, Response)
    assert refused.status == 403
    await give_view(server)
    assert (await server.handle(Request("GET", path, user=JANE))).status == 200
    assert (await server.handle(Request("GET", "/apis/none/v1/things", user=JANE))).status == 403
    assert (await server.handle(Request("GET", "/apis/none/v1/things", user=ADMIN))).status == 404


async def test_anonymous_requests(server: ApiServer) -> None:
    """See that the server is there, and no more."""
    assert (await server.handle(Request("GET", "/healthz"))).status == 200
    assert (await server.handle(Request("GET", "/api/v1/namespaces"))).status == 403
    assert (await server.handle(Request("GET", "/healthz", headers={"authorization": "Bearer x"}))).status == 401


async def test_bootstrap_roles_are_served(server: ApiServer) -> None:
    """As objects like others."""
    answer = await server.handle(Request("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit", user=ADMIN))
    assert isinstance(answer, Response)
    found = msgspec.json.decode(answer.body)
    assert found["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] == "true"
    assert found["rules"]
