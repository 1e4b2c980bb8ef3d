"""Who asks and who may: tokens, roles as they change, impersonation, and that nobody gives what he does not have."""

import base64
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import jwt
import msgspec
import pytest

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.apimachinery.objects import new_uid
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.authn.authenticator import Authenticator
from mirror.embedded.apiserver.authn.tokens import Refusal, account_user
from mirror.embedded.apiserver.authz import bootstrap
from mirror.embedded.apiserver.authz.authorizer import Authorizer
from mirror.embedded.apiserver.authz.policy import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES
from mirror.embedded.apiserver.authz.rules import Attributes
from mirror.embedded.apiserver.messages import ADMIN, AUTHENTICATED_GROUP, Request, User
from mirror.embedded.apiserver.registry.resources import rbac
from mirror.embedded.apiserver.request.info import request_info
from mirror.embedded.apiserver.storage import keys
from mirror.embedded.apiserver.storage.mvcc import Storage

JANE = User("jane", ("dev", AUTHENTICATED_GROUP))
CONTEXT = Context(now="2026-11-21T12:00:00Z", user=JANE)


class Stopped:
    """A clock that is set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest.fixture
def clock() -> Stopped:
    return Stopped()


class Access(NamedTuple):
    """Who asks, and who may."""

    authenticator: Authenticator
    authorizer: Authorizer


@pytest.fixture
def access(storage: Storage, clock: Stopped) -> Access:
    random = Random(1)
    bootstrap.store(storage, now=CONTEXT.now, new_uid=lambda: new_uid(random))
    authenticator = Authenticator(
        storage=storage, clock=clock, random=random, tokens={"secret": JANE}, allows_anonymous=True
    )
    return Access(authenticator, Authorizer(storage=storage, authorization="RBAC"))


def put(storage: Storage, stored_as: str, namespace: str, name: str, **body: Any) -> None:
    meta = {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {})}
    meta |= body.pop("metadata", {})
    raw = msgspec.json.encode({"metadata": meta, **body})
    old = storage.get(stored_as, namespace, name)
    storage.write(stored_as, namespace, name, lambda _: raw, replacing=old, labels={})


def remove(storage: Storage, stored_as: str, namespace: str, name: str) -> None:
    record = storage.get(stored_as, namespace, name)
    assert record is not None
    storage.remove(stored_as, record, lambda _: record.raw)


def give(storage: Storage, namespace: str, *rules: dict[str, list[str]], to: User = JANE) -> None:
    """A role of these rules, and a binding of it, both called ``given``."""
    roles, bindings = (ROLES, ROLE_BINDINGS) if namespace else (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    put(storage, roles, namespace, "given", rules=list(rules))
    ref = {"apiGroup": GROUP, "kind": "Role" if namespace else "ClusterRole", "name": "given"}
    put(storage, bindings, namespace, "given", roleRef=ref, subjects=[{"kind": "User", "name": to.name}])


def rule(verbs: str, group: str, resources: str, **more: list[str]) -> dict[str, list[str]]:
    return {"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(","), **more}


def get(path: str = "/api/v1/namespaces/ns/pods/a", **headers: str) -> Request:
    return Request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def identify(access: Access, request: Request) -> User:
    user = access.authenticator.authenticate(request)
    return access.authorizer.impersonated(user, request.headers, request_info(request))


# Who asks.


def test_a_given_token_names_its_user(access: Access) -> None:
    """Whatever the case of the scheme."""
    assert identify(access, get(authorization="bearer secret")) == JANE


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer a.b.c", "Bearer ..", "Bearer \xff", "Bearer e30.e30.e30"])
def test_an_unknown_token_is_refused(access: Access, header: str) -> None:
    """Even where who shows none is anonymous."""
    with pytest.raises(StatusError) as refused:
        identify(access, get(authorization=header))
    assert refused.value.code == 401


@pytest.mark.parametrize("header", ["", "Basic dXNlcg==", "Bearer "])
def test_who_shows_no_token_is_anonymous(access: Access, header: str) -> None:
    """And may look at little more than health."""
    nobody = identify(access, get(authorization=header))
    assert nobody.name == "system:anonymous"
    access.authorizer.check_request(nobody, request_info(get("/healthz")))
    with pytest.raises(StatusError):
        access.authorizer.check_request(nobody, request_info(get("/api")))


def test_where_all_is_allowed_nobody_is_anonymous(storage: Storage, clock: Stopped) -> None:
    """As with kube-apiserver's AlwaysAllow."""
    authenticator = Authenticator(
        storage=storage, clock=clock, random=Random(1), tokens={"secret": JANE}, allows_anonymous=False
    )
    access = Access(authenticator, Authorizer(storage=storage))
    with pytest.raises(StatusError) as refused:
        identify(access, get())
    assert refused.value.code == 401
    access.authorizer.check_request(identify(access, get(authorization="Bearer secret")), request_info(get()))


def test_a_certificate_goes_before_a_token(access: Access) -> None:
    """What the transport knows is certain."""
    request = Request("GET", "/", headers={"authorization": "Bearer wrong"}, user=ADMIN)
    assert identify(access, request) == ADMIN


def test_a_service_account_is_known_by_its_token(access: Access, storage: Storage, clock: Stopped) -> None:
    """For as long as it says, and as long as the account is the same."""
    put(storage, "serviceaccounts", "ns", "robot")
    token, expires = access.authenticator.tokens.issue(namespace="ns", name="robot", uid="uid-robot", seconds=600)
    user = identify(access, get(authorization=f"Bearer {token}"))
    assert user.name == "system:serviceaccount:ns:robot"
    assert set(account_user("ns", "robot").groups) == set(user.groups)
    assert expires == "2026-11-21T12:10:00Z"
    clock.time += timedelta(seconds=700)
    with pytest.raises(Refusal, match="expired"):
        access.authenticator.verify(token)
    clock.time -= timedelta(seconds=700)
    remove(storage, "serviceaccounts", "ns", "robot")
    put(storage, "serviceaccounts", "ns", "robot", metadata={"uid": "another"})
    with pytest.raises(StatusError):
        identify(access, get(authorization=f"Bearer {token}"))


def test_a_bound_token_ends_with_its_pod(access: Access, storage: Storage) -> None:
    """Another pod of the same name is another pod."""
    put(storage, "serviceaccounts", "ns", "robot")
    put(storage, "pods", "ns", "p")
    bound = {"kind": "Pod", "name": "p", "uid": "uid-p"}
    token, _ = access.authenticator.tokens.issue(namespace="ns", name="robot", uid="uid-robot", bound=bound)
    found = access.authenticator.verify(token)
    assert found is not None
    assert found.user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
    remove(storage, "pods", "ns", "p")
    with pytest.raises(Refusal, match="invalidated"):
        access.authenticator.verify(token)


def test_a_token_that_another_key_signed_is_refused(access: Access, storage: Storage) -> None:
    """Whatever its header names as the algorithm; only what does not claim our issuer is nobody's."""
    put(storage, "serviceaccounts", "ns", "robot")
    token, _ = access.authenticator.tokens.issue(namespace="ns", name="robot", uid="uid-robot")
    claims = jwt.decode(token, options={"verify_signature": False})
    with pytest.raises(Refusal, match="invalid signature"):
        access.authenticator.verify(jwt.encode(claims, "x" * 32))
    unsigned = jwt.encode(claims, None, algorithm="none")
    assert access.authenticator.verify(unsigned) is None
    assert access.authenticator.verify(jwt.encode(claims | {"iss": "https://other"}, "x" * 32)) is None


@pytest.mark.parametrize(
    "part", ["", ".", "a.b", "\udc80", "é", "[" * 100_000, base64.b64encode(b"[" * 100_000).decode()]
)
def test_what_is_no_token_is_nobodys(access: Access, part: str) -> None:
    """However it is malformed, and wherever."""
    for token in (part, f"{part}.{part}.{part}", f"e30.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.{part}"):
        assert access.authenticator.verify(token) is None


def test_a_token_for_others_is_none_for_us(access: Access, storage: Storage) -> None:
    """Reviewers may ask for their audience."""
    put(storage, "serviceaccounts", "ns", "robot")
    token, _ = access.authenticator.tokens.issue(
        namespace="ns", name="robot", uid="uid-robot", audiences=("vault", "db")
    )
    with pytest.raises(Refusal, match=r'token audiences \["vault" "db"\] is invalid for the target audiences'):
        access.authenticator.verify(token)
    found = access.authenticator.verify(token, ("db", "other"))
    assert found is not None
    assert found.audiences == ("db",)


def test_keys_are_kept_with_the_data(storage: Storage) -> None:
    """Tokens outlive the process as the data does."""
    assert keys.kept(storage, "a", lambda: b"one") == keys.kept(storage, "a", lambda: b"two")


# Who may.


def test_nobody_may_what_no_role_says(access: Access) -> None:
    """Of those whom bootstrap roles say nothing about."""
    with pytest.raises(StatusError) as refused:
        access.authorizer.check_request(JANE, request_info(get()))
    assert refused.value.status["message"] == (
        'pods "a" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "ns"'
    )


def test_roles_hold_as_soon_as_they_change(access: Access, storage: Storage) -> None:
    """And no longer."""
    give(storage, "ns", rule("get", "", "pods"))
    access.authorizer.check_request(JANE, request_info(get()))
    give(storage, "ns", rule("list", "", "pods"))
    with pytest.raises(StatusError):
        access.authorizer.check_request(JANE, request_info(get()))


def test_roles_of_a_namespace_hold_there(access: Access, storage: Storage) -> None:
    """Those of the cluster everywhere."""
    give(storage, "ns", rule("get", "", "pods"))
    with pytest.raises(StatusError):
        access.authorizer.check_request(JANE, request_info(get("/api/v1/namespaces/other/pods/a")))
    give(storage, "", rule("get", "", "pods"))
    access.authorizer.check_request(JANE, request_info(get("/api/v1/namespaces/other/pods/a")))


def test_nothing_is_kept_of_what_anybody_asks(access: Access) -> None:
    """Namespaces that are in nobody's binding are all the same, whatever their names."""
    nobody = identify(access, get())
    for number in range(50):
        assert not access.authorizer.may(nobody, Attributes("get", "", "pods", namespace=f"{number}" * 1000))
    assert len(access.authorizer._policy._remembered) == 1


def test_reasons_are_told(access: Access, storage: Storage) -> None:
    """What allows it; or which binding has no role."""
    give(storage, "ns", rule("get", "", "pods"))
    assert access.authorizer.decide(JANE, Attributes("get", "", "pods", namespace="ns")) == (
        True,
        'RBAC: allowed by RoleBinding "given/ns" of Role "given" to User "jane"',
    )
    remove(storage, ROLES, "ns", "given")
    assert access.authorizer.decide(JANE, Attributes("get", "", "pods", namespace="ns")) == (
        False,
        'RBAC: role.rbac.authorization.k8s.io "given" not found',
    )


@pytest.mark.parametrize(
    ("is_allowed", "user", "wanted"),
    [
        (True, ADMIN, Attributes("anything", "x", "y")),
        (True, JANE, Attributes("create", "authorization.k8s.io", "selfsubjectaccessreviews")),
        (True, JANE, Attributes("get", path="/apis/batch/v1")),
        (False, JANE, Attributes("get", path="/metrics")),
        (True, User("system:kube-controller-manager"), Attributes("watch", "batch", "jobs")),
        (False, User("system:kube-controller-manager"), Attributes("delete", "batch", "jobs")),
        (True, account_user("kube-system", "job-controller"), Attributes("create", "", "pods", namespace="ns")),
        (False, account_user("other", "job-controller"), Attributes("create", "", "pods", namespace="ns")),
    ],
)
def test_bootstrap_roles(access: Access, is_allowed: bool, user: User, wanted: Attributes) -> None:
    """What everybody, and what each component, may do."""
    assert is_allowed == access.authorizer.may(user, wanted)


def test_aggregated_roles_have_the_rules_of_their_parts(access: Access, storage: Storage) -> None:
    """Of parts that come later too, as if a controller had copied them."""
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "admin"}
    put(storage, ROLE_BINDINGS, "ns", "admins", roleRef=ref, subjects=[{"kind": "Group", "name": "dev"}])
    wanted = Attributes("get", "example.com", "widgets", namespace="ns")
    assert access.authorizer.may(JANE, Attributes("create", "batch", "jobs", namespace="ns"))
    assert not access.authorizer.may(JANE, wanted)
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    rules = [rule("get", "example.com", "widgets")]
    put(storage, CLUSTER_ROLES, "", "widgets", metadata={"labels": labels}, rules=rules)
    assert access.authorizer.may(JANE, wanted)


# On whose behalf.


def test_nobody_impersonates_without_a_right(access: Access) -> None:
    """The refusal is that of the first mode that is tried."""
    with pytest.raises(StatusError) as refused:
        identify(access, get(authorization="Bearer secret", impersonate_user="bob"))
    assert refused.value.status["message"] == (
        'pods "a" is forbidden: User "jane" cannot impersonate-on:user-info:get resource "pods" '
        'in API group "" in the namespace "ns"'
    )


def test_administrators_impersonate(access: Access) -> None:
    """With groups as given, and the group that every user has."""
    request = Request("GET", "/", headers={"impersonate-user": "bob", "impersonate-group": "a\nb, c"}, user=ADMIN)
    assert identify(access, request) == User("bob", ("a", "b, c", AUTHENTICATED_GROUP))


def test_service_accounts_have_their_groups(access: Access) -> None:
    """When none are given."""
    name = "system:serviceaccount:ns:robot"
    request = Request("GET", "/", headers={"impersonate-user": name}, user=ADMIN)
    assert identify(access, request) == User(name, account_user("ns", "robot").groups)


def test_the_old_way_of_impersonating_still_works(access: Access, storage: Storage) -> None:
    """One right for the user is enough, and one for each group."""
    give(storage, "", rule("impersonate", "", "users", resourceNames=["bob"]))
    headers = {"authorization": "Bearer secret", "impersonate_user": "bob"}
    assert identify(access, get(**headers)).name == "bob"
    with pytest.raises(StatusError):
        identify(access, get(**headers, impersonate_group="ops"))


def test_constrained_impersonation(access: Access, storage: Storage) -> None:
    """One right for the user, and one for what is done."""
    give(
        storage,
        "",
        rule("impersonate:user-info", "authentication.k8s.io", "users"),
        rule("impersonate-on:user-info:get", "", "pods"),
    )
    headers = {"authorization": "Bearer secret", "impersonate_user": "bob"}
    assert identify(access, get(**headers)).name == "bob"
    with pytest.raises(StatusError):
        identify(access, get("/api/v1/namespaces/ns/secrets/a", **headers))


def test_a_group_alone_cannot_be_impersonated(access: Access) -> None:
    """The server prints what it has understood."""
    request = Request("GET", "/", headers={"impersonate-group": "ops"}, user=ADMIN)
    with pytest.raises(StatusError) as refused:
        identify(access, request)
    assert refused.value.status["message"] == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"ops"}, Extra:map[string][]string(nil)} '
        "without impersonating a user name"
    )


# What may be given.


def role(*rules: dict[str, list[str]]) -> dict[str, Any]:
    return {"metadata": {"name": "r", "namespace": "ns"}, "rules": list(rules)}


def binding(kind: str, name: str) -> dict[str, Any]:
    return {"metadata": {"name": "b", "namespace": "ns"}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}}


def strategy(access: Access, name: str) -> Any:
    return next(kind.strategy for kind in rbac.kinds(access.authorizer) if kind.kind == name)


def test_nobody_gives_rights_that_he_lacks(access: Access, storage: Storage) -> None:
    """The refusal lists them."""
    give(storage, "ns", rule("get", "", "pods"))
    roles = strategy(access, "Role")
    roles.prepare_create(role(rule("get", "", "pods")), CONTEXT)
    with pytest.raises(StatusError) as refused:
        roles.prepare_create(role(rule("get,delete", "", "pods")), CONTEXT)
    assert refused.value.status["message"] == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["dev" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'
    )


def test_rights_beyond_number_are_refused_unseen(access: Access, storage: Storage) -> None:
    """However few bytes they are; nobody else is kept waiting."""
    give(storage, "ns", rule("get", "", "pods"))
    many = [f"r{number}" for number in range(500)]
    with pytest.raises(StatusError, match="more than 10000 permissions"):
        strategy(access, "Role").prepare_create(role({"verbs": many, "apiGroups": many, "resources": many}), CONTEXT)


def test_the_right_to_escalate_lifts_it(access: Access, storage: Storage) -> None:
    """For roles; ``bind`` for bindings of one role."""
    give(storage, "ns", rule("escalate", GROUP, "roles"), rule("bind", GROUP, "clusterroles", resourceNames=["view"]))
    strategy(access, "Role").prepare_create(role(rule("*", "*", "*")), CONTEXT)
    strategy(access, "RoleBinding").prepare_create(binding("ClusterRole", "view"), CONTEXT)
    with pytest.raises(StatusError):
        strategy(access, "RoleBinding").prepare_create(binding("ClusterRole", "edit"), CONTEXT)


def test_a_role_that_is_not_there_cannot_be_bound(access: Access) -> None:
    """404 to who is not allowed to bind it anyhow."""
    with pytest.raises(StatusError) as refused:
        strategy(access, "RoleBinding").prepare_create(binding("Role", "x"), CONTEXT)
    assert (refused.value.code, refused.value.status["message"]) == (
        404,
        'rolebindings.rbac.authorization.k8s.io "x" not found',
    )


def test_collection_may_be_helped_by_anybody(access: Access) -> None:
    """Owners and finalizers are no rights."""
    old = role(rule("*", "*", "*"))
    new = {**old, "metadata": {**old["metadata"], "finalizers": ["example.com/a"]}}
    assert strategy(access, "Role").prepare_update(new, old, CONTEXT) == new


@pytest.mark.parametrize(
    ("kind", "body", "causes"),
    [
        (
            "ClusterRole",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["b"]}]},
            {"rules[0].nonResourceURLs": 'Invalid value: ["/a"]: rules cannot apply to both'},
        ),
        (
            "Role",
            {"rules": [{"verbs": [], "nonResourceURLs": ["/a"]}, {"verbs": ["get"]}]},
            {
                "rules[0].verbs": "Required value",
                "rules[0].nonResourceURLs": 'Invalid value: ["/a"]: namespaced rules',
                "rules[1].apiGroups": "Required value",
                "rules[1].resources": "Required value",
            },
        ),
        ("ClusterRole", {"aggregationRule": {}}, {"aggregationRule.clusterRoleSelectors": "Required value: at least"}),
        (
            "ClusterRoleBinding",
            {
                "roleRef": {"apiGroup": "x", "kind": "Role", "name": "a/b"},
                "subjects": [{"kind": "ServiceAccount", "name": "A"}],
            },
            {
                "roleRef.apiGroup": f'Unsupported value: "x": supported values: "{GROUP}"',
                "roleRef.kind": 'Unsupported value: "Role": supported values: "ClusterRole"',
                "roleRef.name": "Invalid value: \"a/b\": may not contain '/'",
                "subjects[0].name": 'Invalid value: "A": a lowercase RFC 1123 subdomain',
                "subjects[0].namespace": "Required value",
            },
        ),
        (
            "RoleBinding",
            {"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "a"}, "subjects": [{"kind": "Robot", "name": "a"}]},
            {"subjects[0].kind": 'Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'},
        ),
    ],
)
def test_rules_of_the_kinds(access: Access, kind: str, body: dict[str, Any], causes: dict[str, str]) -> None:
    """Causes as kube-apiserver has them."""
    found = strategy(access, kind)
    meta = {"name": "a", **({"namespace": "ns"} if found.is_namespaced else {})}
    violations = found.check_create({"metadata": meta, **body}, CONTEXT)
    assert list(causes) == [one.field for one in violations]
    for one in violations:
        assert one.message.startswith(causes[one.field])


def test_a_binding_keeps_its_role(access: Access) -> None:
    """It must be deleted and made anew."""
    old, new = binding("Role", "a"), binding("Role", "b")
    for one in (old, new):
        one["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    messages = [one.message for one in strategy(access, "RoleBinding").check_update(new, old, CONTEXT)]
    assert messages == [f'Invalid value: {{"APIGroup":"{GROUP}","Kind":"Role","Name":"b"}}: cannot change roleRef']


def test_groups_of_references_are_filled_in(access: Access) -> None:
    """Where they can only be one."""
    body = {"roleRef": {"kind": "Role", "name": "a"}, "subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]}
    strategy(access, "RoleBinding").default(body, CONTEXT)
    assert body == {
        "roleRef": {"kind": "Role", "name": "a", "apiGroup": GROUP},
        "subjects": [{"kind": "User", "apiGroup": GROUP}, {"kind": "ServiceAccount"}],
    }


def test_a_binding_has_a_row(access: Access) -> None:
    """Its subjects by kind, to who wants a wide table."""
    body = binding("Role", "a") | {
        "subjects": [
            {"kind": "User", "name": "u"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            {"kind": "Group", "name": "g"},
            {"kind": "User", "name": "v"},
        ]
    }
    row = strategy(access, "RoleBinding").cells(body, datetime(2026, 1, 1, tzinfo=UTC))
    assert row == ["b", "Role/a", "<unknown>", "u, v", "g", "n/s"]
