"""``serviceaccounts/token``: a token for a service account, for a while, bound to an object or not."""

from __future__ import annotations

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, invalid, invalid_text
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, conflict
from mirror.embedded.apiserver.apimachinery.errors import invalid as refused_as_invalid
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.authn.tokens import ISSUER, Tokens
from mirror.embedded.apiserver.messages import Answer
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.subresources import common
from mirror.embedded.apiserver.request.info import RequestScope

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_SHORTEST_SECONDS, _LONGEST_SECONDS, _DEFAULT_SECONDS = 600, 2**32, 3600
_PLURALS = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


async def issue(issuer: Tokens, deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
    """Answer a POST to a service account's ``token``.

    Raises:
        StatusError: 400, 404 for an account or a bound object that is not there, 409 for another uid, 422.
    """
    namespace, name = scope.namespace, scope.name
    body, _, warnings = await common.read(scope, f"{_GROUP}/v1", _KIND)
    with common.reporting(warnings):
        if body["spec"].get("expirationSeconds") is None:
            body["spec"]["expirationSeconds"] = _DEFAULT_SECONDS
        admitted, body, more = await common.mutated(deps, scope, name, body, context)
        warnings += more
        meta, spec = body["metadata"], body["spec"]
        if meta.get("name", name) != name:
            told = "must match the service account name if specified"
            raise _invalid(name, invalid_text("metadata.name", meta["name"], told))
        account = common.found(deps, "serviceaccounts", namespace, name)
        if meta.get("uid", account.uid) != account.uid:
            why = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
            raise conflict(_KIND, _GROUP, name, f"{why} ({account.uid})")
        meta |= {"name": name, "namespace": namespace, "uid": account.uid, "creationTimestamp": context.now}
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        seconds: int = spec["expirationSeconds"]
        body["status"] = {}
        _check_seconds(seconds)
        warnings += await deps.admission.validate(admitted)
        ref = spec.setdefault("boundObjectRef", None)
        bound = _bound(deps, namespace, name, ref) if ref is not None else None
        token, expires = issuer.issue(
            namespace=namespace, name=name, uid=account.uid, audiences=spec["audiences"], seconds=seconds, bound=bound
        )
        body["status"] = {"token": token, "expirationTimestamp": expires}
        return common.created(scope, body, warnings)


def _check_seconds(seconds: int) -> None:
    field, told = "spec.expirationSeconds", ""
    if seconds < _SHORTEST_SECONDS:
        told = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST_SECONDS:
        told = "may not specify a duration larger than 2^32 seconds"
    if told:
        raise _invalid("", invalid(field, seconds, told))


def _bound(deps: Dependencies, namespace: str, account: str, ref: Json) -> Json:
    """The object with which the token ends."""
    group, _, version = ref.get("apiVersion", "").rpartition("/")
    kind, name = ref.get("kind", ""), ref.get("name", "")
    if group or kind not in _PLURALS:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not name:
        raise bad_request("Name parameter required.")
    record = common.found(deps, _PLURALS[kind], "" if kind == "Node" else namespace, name)
    bound: Json = {"kind": kind, "apiVersion": version, "name": name, "uid": record.uid}
    spec: Json = objects.decode(record.raw)["spec"] if kind == "Pod" else {}
    if kind == "Pod" and spec.get("serviceAccountName", "") != account:
        told = f"cannot bind token for serviceaccount {quoted(account)} to pod running with different"
        raise bad_request(f"{told} serviceaccount name.")
    if ref.get("uid", record.uid) != record.uid:
        why = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
        raise conflict(kind, group, name, f"{why}The object might have been deleted and then recreated")
    if node := spec.get("nodeName"):
        found = deps.storage.get("nodes", "", node)
        bound["node"] = node, found.uid if found else ""
    return bound


def _invalid(name: str, problem: Violation) -> StatusError:
    return refused_as_invalid(_KIND, _GROUP, name, [problem])
