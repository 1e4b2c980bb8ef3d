"""Requests whose path, method and query are odd, for users of few rights: who gets through must be the same.

Drawn from a seed, each by itself. What is asked for is only tried (dry run), so that requests do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from tests.contract.api import JSON, MERGE

Json: TypeAlias = dict[str, Any]

_API = "rbac.authorization.k8s.io"


def _rule(verbs: str, groups: str, resources: str, names: str = "") -> Json:
    found: Json = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    return found | ({"resourceNames": names.split(",")} if names else {})


def _urls(verbs: str, urls: str) -> Json:
    return {"verbs": verbs.split(","), "nonResourceURLs": urls.split(",")}


ADMIN = "admin"
IMPERSONATOR = "impersonator"
"""Is not impersonated, but impersonates."""
ROLES: Mapping[str, Sequence[Json]] = {
    "reader": (_rule("get,list,watch", "*", "*"),),
    "getter": (_rule("get", "*", "*"),),
    "lister": (_rule("list", "*", "*"),),
    "watcher": (_rule("watch", "*", "*"),),
    "proxy": (_rule("proxy", "*", "*"),),
    "creator": (_rule("create", "*", "*"),),
    "editor": (_rule("update,patch", "*", "*"),),
    "deleter": (_rule("delete", "*", "*"),),
    "sweeper": (_rule("deletecollection", "*", "*"),),
    "named": (_rule("get,list,watch,create,update,patch,delete,deletecollection", "*", "*", "a"),),
    "parts": (_rule("*", "*", "*/status,pods/log,pods/eviction,serviceaccounts/token,namespaces/finalize,*/scale"),),
    "words": (_rule("*", "*", "watch,proxy,namespaces,status,finalize,api,v1,,.,.."),),
    "core": (_rule("*", ",v1,batch", "pods,configmaps,namespaces"),),
    "custom": (_rule("get,watch", "contract.example.com", "things"),),
    "urls": (_urls("*", "/api/*,/apis,/healthz/*,/x,/x/*,//*,/openapi/v3*"),),
    "slash": (_urls("get,head,options", "/"), _urls("post,connect", "*")),
    "none": (),
    IMPERSONATOR: (
        _rule("impersonate", "", "users", "reader,system:anonymous"),
        _rule("impersonate", "", "groups", "dev,system:unauthenticated"),
        _rule("impersonate", "authentication.k8s.io", "uids,userextras/scopes"),
        _rule("impersonate:user-info", "authentication.k8s.io", "users,groups", "reader,dev"),
        _rule("impersonate-on:user-info:get,impersonate-on:user-info:list", "*", "*"),
    ),
}
"""Cluster roles, each bound to the user of its name."""
_USERS = (*ROLES, *("reader", "creator", "parts", "named", ADMIN) * 3)
_ROOTS = (
    *(("api", "v1"),) * 6,
    *(("apis", "batch", "v1"),) * 3,
    *(("apis", "contract.example.com", "v1"),) * 3,
    *(("apis", "rbac.authorization.k8s.io", "v1"), ("apis", "authentication.k8s.io", "v1")),
    *(("apis", "authorization.k8s.io", "v1"), ("apis", "apiextensions.k8s.io", "v1")),
    *(("apis", "coordination.k8s.io", "v1"), ("apis", "unknown.io", "v1"), ("api", "v2"), ("apis", "batch", "v2")),
    *(("apis", "v1"), ("apis", "", "v1"), ("apis", "apps", "v1"), ("api",), ("apis",), ("API", "v1"), ("x",)),
)
_SPECIAL = (*((),) * 6, ("watch",), ("watch",), ("proxy",), ("redirect",), ("watch", "watch"), ("Watch",))
_NAMESPACES = ("OURS",) * 6 + ("other-one", "", "watch", "status", "..")
_OF_ROOT: Mapping[str, Sequence[str]] = {
    "v1": ("pods", "configmaps", "secrets", "serviceaccounts", "namespaces", "nodes", "bindings", "events"),
    "batch": ("jobs", "cronjobs", "namespaces"),
    "contract.example.com": ("things", "plains", "namespaces"),
    "rbac.authorization.k8s.io": ("roles", "clusterroles", "rolebindings", "clusterrolebindings"),
    "authentication.k8s.io": ("tokenreviews", "selfsubjectreviews"),
    "authorization.k8s.io": ("subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews"),
    "apiextensions.k8s.io": ("customresourcedefinitions",),
    "coordination.k8s.io": ("leases",),
    "apps": ("deployments",),
}
_ODD_RESOURCES = ("Pods", "unknown", "watch", "proxy", "status", "finalize", "", "namespaces", "pods", "jobs")
_NAMES = ("a", "a", "a", "a", "b", "OURS", "watch", "", "..", "namespaces", "status", "A")
_SUBRESOURCES = (
    *("status", "status", "log", "exec", "attach", "portforward", "token", "token", "eviction", "eviction", "binding"),
    *("scale", "finalize", "proxy", "resize", "ephemeralcontainers", "unknown", "", "Status", "approval", "watch"),
)
_OTHERS = (
    *(
        "/",
        "/api",
        "/api/",
        "/apis",
        "/apis/",
        "/api/v1",
        "/api/v1/",
        "//api",
        "/api//v1",
        "/apis//batch/v1",
        "/healthz",
    ),
    *("/healthz/", "/healthz/ping", "/healthz/../api", "/livez", "/readyz", "/readyz/ping", "/version", "/version/"),
    *("/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openapi/v3/api/v1", "/openapi/v3/apis/batch/v1", "/openapi"),
    *("/metrics", "/logs", "/logs/x", "/debug/pprof", "/x", "/x/y", "/X", "/configz", "/apis/batch", "/apis/batch/"),
    *("/apis/batch/v1", "/apis/batch/v1/", "/apis/nothing", "/apis/nothing/v1", "/api/v2", "/swagger.json", "//"),
    *("//healthz", "/healthz//ping", "/apis/contract.example.com", "/apis/contract.example.com/v1", "/api/v1/watch"),
    *("/api/v1/proxy", "/apis/batch/v1/watch", "/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1//"),
)
_METHODS = (
    *("GET",) * 20,
    *("POST",) * 8,
    *("PUT", "PATCH", "DELETE") * 4,
    *("HEAD", "OPTIONS") * 2,
    *("CONNECT", "TRACE", "FOO", "get", "Post", "LIST", "WATCH"),
)
_QUERIES = (
    *("watch=true", "watch=1", "watch=false", "watch=0", "watch=", "watch", "watch=TRUE", "watch=False", "watch=x"),
    *(
        "watch=1&watch=0",
        "watch=0&watch=1",
        "w%61tch=1",
        "watch=%31",
        "Watch=1",
        "watch=1;x=2",
        "watch%3D1",
        "watch=%zz",
    ),
    *("fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name=a", "fieldSelector=metadata.name%3D%3Da"),
    *("fieldSelector=metadata.name%3Db", "fieldSelector=metadata.name%21%3Da", "fieldSelector=metadata.name%3D"),
    *("fieldSelector=metadata.name%3Da,metadata.name%3Db", "fieldSelector=metadata.name%3Db,metadata.name%3Da"),
    *("fieldSelector=metadata.namespace%21%3Dx%5C,metadata.name%3Da", "fieldSelector=metadata.name%20%3D%20a"),
    *("fieldSelector=metadata.name%3Da,,", "fieldSelector=metadata.name%3Da&fieldSelector=", "fieldSelector=%3D"),
    *(
        "fieldSelector=&fieldSelector=metadata.name%3Da",
        "fieldSelector=metadata.name%3D..",
        "fieldSelector=metadata.name",
    ),
    *(
        "fieldSelector=metadata.name%3Da%2Fb",
        "fieldSelector=metadata.name%3Da&limit=x",
        "fieldSelector=+metadata.name%3Da",
    ),
    *("fieldSelector=metadata.name%3Da&labelSelector=(", "fieldSelector=metadata.name%3Da&resourceVersionMatch=x"),
    *("labelSelector=x%3D1", "labelSelector=(", "limit=1", "limit=x", "resourceVersion=0", "resourceVersion=x"),
    *("name=a", "metadata.name=a", "pretty=true", "namespace=OURS", "verb=get", "a=%zz", "x;y", "dryRun=None"),
)
_IDENTITIES: Sequence[Mapping[str, str]] = (
    {"impersonate-uid": "1"},
    {"impersonate-group": "system:masters"},
    {"impersonate-user": "", "impersonate-group": "system:masters"},
    {"impersonate-user": "reader"},
    {"impersonate-user": "system:anonymous"},
    {"impersonate-user": "reader", "impersonate-group": "dev"},
    {"impersonate-user": "reader", "impersonate-group": "system:unauthenticated"},
    {"impersonate-user": "system:serviceaccount:OURS:a"},
    {"impersonate-user": "system:serviceaccount:OURS"},
    {"impersonate-user": "system:node:a"},
    {"impersonate-user": "reader", "impersonate-extra-scopes": "a"},
    {"impersonate-user": "reader", "impersonate-extra-x%2fy": "a", "impersonate-uid": "5"},
    {"authorization": "Bearer wrong"},
    {"authorization": "Basic eDp5"},
    {},
)


@dataclass(frozen=True, slots=True)
class Odd:
    """One request. ``user`` is impersonated by the administrator; nobody's: only its headers say whose it is."""

    method: str
    target: str
    user: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    content: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.target} as {self.user or 'nobody'} {dict(self.headers) or ''}"


def odd_request(seed: int, number: int) -> Odd:
    """The request of this number; depends on nothing else."""
    random = Random(f"paths/{seed}/{number}")
    path = random.choice(_OTHERS) if random.random() < 0.12 else _path(random)
    while random.random() < 0.25:
        path = "/" + random.choice(_CHANGES)(random, path).removeprefix("/")
    method = random.choice(_METHODS)
    body, content = _body(random, method, path)
    user, headers = random.choice(_USERS), {}
    if random.random() < 0.1:
        user, headers = (
            random.choice(("", "reader", IMPERSONATOR, IMPERSONATOR, ADMIN)),
            dict(random.choice(_IDENTITIES)),
        )
    return Odd(method, f"{path}?{_query(random, method)}", user, headers, body, content)


def _path(random: Random) -> str:
    root = random.choice(_ROOTS)
    parts = [*root, *random.choice(_SPECIAL)]
    if random.random() < 0.7:
        parts += ["namespaces", random.choice(_NAMESPACES)]
    known = _OF_ROOT.get(root[1] if len(root) > 1 else "", ()) if len(root) < 3 or root[2] == "v1" else ()
    if random.random() < 0.95:
        parts.append(random.choice(known) if known and random.random() < 0.9 else random.choice(_ODD_RESOURCES))
    if random.random() < 0.7:
        parts.append(random.choice(_NAMES))
        if random.random() < 0.5:
            parts.append(random.choice(_SUBRESOURCES))
            if random.random() < 0.07:
                parts.append(random.choice(("x", "", "..")))
    return "/" + "/".join(parts)


def _inserted(random: Random, path: str, piece: str) -> str:
    places = [place for place, one in enumerate(path) if one == "/"] or [0]
    place = random.choice(places)
    return path[:place] + piece + path[place:]


def _encoded(random: Random, path: str) -> str:
    if len(path) == 1:
        return path
    place = random.randrange(1, len(path))
    if path[place] == "%" or "%" in path[max(0, place - 2) : place]:
        return path
    return f"{path[:place]}%{ord(path[place]):02{random.choice('xX')}}{path[place + 1 :]}"


_CHANGES = (
    lambda random, path: path + "/",
    lambda random, path: (
        path + random.choice(("//", "/.", "/..", "%2F", "%00", ";x", "%20", "%ff", "%3Fwatch=1", "%zz"))
    ),
    lambda random, path: _inserted(random, path, "/"),
    lambda random, path: _inserted(random, path, random.choice(("/.", "/..", "/x/..", "%2F", "/%2e", "/%2e%2e"))),
    lambda random, path: path.replace("/", "%2F", 2).replace("%2F", "/", 1),
    _encoded,
    _encoded,
    lambda random, path: path.replace(
        *random.choice((("api", "API"), ("v1", "V1"), ("names", "Names"), ("pods", "PODS")))
    ),
)


def _query(random: Random, method: str) -> str:
    """Watches end soon, and nothing is changed."""
    pieces = ["timeoutSeconds=1"] + ["dryRun=All"] * (method in ("POST", "PUT", "PATCH", "DELETE"))
    if random.random() < (0.5 if len(method) < 5 else 0.15):
        pieces.insert(random.choice((0, 1)), random.choice(_QUERIES))
    return "&".join(pieces)


_BODIES: Mapping[str, Json] = {
    "token": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
    "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}},
    "binding": {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n"},
    },
    "tokenreviews": {"spec": {"token": "x"}},
    "configmaps": {"metadata": {"name": "c"}},
    "secrets": {"metadata": {"name": "c"}},
    "pods": {"metadata": {"name": "c"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    "selfsubjectaccessreviews": {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}},
    "subjectaccessreviews": {"spec": {"user": "u", "nonResourceAttributes": {"path": "/x", "verb": "get"}}},
}


def _body(random: Random, method: str, path: str) -> tuple[Json | None, str]:
    if method not in ("POST", "PUT", "PATCH") or random.random() < 0.05:
        return None, JSON
    if method == "PATCH":
        return {"metadata": {"labels": {"x": "1"}}}, MERGE
    parts = path.split("?")[0].split("/")
    return next((_BODIES[part] for part in reversed(parts) if part in _BODIES), {"metadata": {"name": "c"}}), JSON
