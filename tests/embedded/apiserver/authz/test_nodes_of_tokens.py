"""A token that is bound to a pod names the pod's node, on whose behalf its account may be allowed to ask."""

from __future__ import annotations

import pytest

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.authn.tokens import NODE_NAME, account_user
from mirror.embedded.apiserver.authz.impersonation import Modes, impersonated
from mirror.embedded.apiserver.authz.rules import Attributes, refusal
from mirror.embedded.apiserver.messages import AUTHENTICATED_GROUP, User
from tests.embedded.apiserver.asking import PODS, Asking, Json

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
EXTRA = "authentication.kubernetes.io"
POD: Json = {
    "metadata": {"name": "p"},
    "spec": {"serviceAccountName": "robot", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
}
AGENT = account_user("ns", "agent", extra={NODE_NAME: ("n",)})
ASKED = Attributes("get", "", "pods", namespace="ns", name="a")


async def extra_of(server: Asking) -> Json:
    """What a new token of the pod tells of who shows it."""
    bound = {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}}
    token = (await server.ok("POST", f"{ACCOUNTS}/robot/token", bound))["status"]["token"]
    review = await server.ok("POST", REVIEWS, {"spec": {"token": token}})
    assert review["status"]["authenticated"]
    found: Json = review["status"]["user"]["extra"]
    return found


async def test_a_pods_token_names_its_node() -> None:
    """Its name alone, as long as there is no such node."""
    server = Asking()
    await server.ok("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    await server.ok("POST", PODS, POD)
    found = await extra_of(server)
    assert found[f"{EXTRA}/node-name"] == ["n"]
    assert f"{EXTRA}/node-uid" not in found
    node = await server.ok("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    found = await extra_of(server)
    assert found[f"{EXTRA}/node-name"] == ["n"]
    assert found[f"{EXTRA}/node-uid"] == [node["metadata"]["uid"]]


def asked_as(user: User, wanted: User, allowed: list[Attributes]) -> User:
    """The user for whom the request counts."""

    def check(one: Attributes) -> None:
        if one not in allowed:
            raise refusal(user, one)

    return impersonated(user, wanted, ASKED, check, Modes())


def test_an_agent_asks_as_its_own_node() -> None:
    """The right is one for all nodes, since its account's other pods are on others; other nodes are not its own."""
    on = Attributes("impersonate-on:associated-node:get", "", "pods", namespace="ns", name="a")
    node = Attributes("impersonate:associated-node", "authentication.k8s.io", "nodes", name="*")
    allowed = [on, node]
    found = asked_as(AGENT, User("system:node:n"), allowed)
    assert (found.name, found.groups) == ("system:node:n", ("system:nodes", AUTHENTICATED_GROUP))
    for user, wanted in (
        (AGENT, User("system:node:other")),
        (AGENT, User("system:node:n", ("g",))),
        (User("jane", extra={NODE_NAME: ("n",)}), User("system:node:n")),
    ):
        with pytest.raises(StatusError):
            asked_as(user, wanted, allowed)


def test_an_agent_hears_which_right_would_be_enough() -> None:
    """The first mode that applies refuses."""
    with pytest.raises(StatusError) as refused:
        asked_as(AGENT, User("system:node:n"), [])
    assert "cannot impersonate-on:associated-node:get resource" in refused.value.status["message"]
