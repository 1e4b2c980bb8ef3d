"""Questions about access: who am I, may I, may somebody, what may I all, and whose token is this.

They are created like objects and stored nowhere: each is an action in place of ``create``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from mirror.batch.syntax import label_value_problems, qualified_name_problems
from mirror.batch.violations import Violation, forbidden, invalid, invalid_text, invalid_texts, required
from mirror.embedded.apiserver.apimachinery import errors, printing
from mirror.embedded.apiserver.apimachinery.decoding import bodies
from mirror.embedded.apiserver.apimachinery.errors import Json, bad_request
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.authn.authenticator import Authenticator
from mirror.embedded.apiserver.authn.tokens import Refusal
from mirror.embedded.apiserver.authz.authorizer import Authorizer
from mirror.embedded.apiserver.authz.rules import Attributes
from mirror.embedded.apiserver.managedfields import field_manager
from mirror.embedded.apiserver.messages import Request, Response, User
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.dependencies import Action, Dependencies
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.side_thread import pure

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
_encode = msgspec.json.Encoder().encode
_NEITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_BOTH = "cannot be specified in combination with resourceAttributes"


class _Auth(NamedTuple):
    """Who answers."""

    authenticator: Authenticator
    authorizer: Authorizer


class _Review(Builtin):
    """A question of this struct; it has no rules as an object since it never becomes one."""

    def __init__(self, struct: str) -> None:
        self.struct = struct


def kinds() -> list[Kind]:
    """What can be asked."""

    def kind(group: str, name: str, *, is_namespaced: bool = False) -> Kind:
        return Kind(
            group,
            "v1",
            name,
            f"{name.lower()}s",
            _Review(name),
            singular=name.lower(),
            is_namespaced=is_namespaced,
            verbs=("create",),
        )

    return [
        kind(_AUTHENTICATION, "SelfSubjectReview"),
        kind(_AUTHENTICATION, "TokenReview"),
        kind(_AUTHORIZATION, "LocalSubjectAccessReview", is_namespaced=True),
        kind(_AUTHORIZATION, "SelfSubjectAccessReview"),
        kind(_AUTHORIZATION, "SelfSubjectRulesReview"),
        kind(_AUTHORIZATION, "SubjectAccessReview"),
    ]


def actions(authenticator: Authenticator, authorizer: Authorizer) -> Mapping[tuple[str, str, str], Action]:
    """The answers, by resource, subresource (none) and method."""
    auth = _Auth(authenticator, authorizer)
    all_answers: dict[str, Callable[[_Auth, Json, str, Context], Json]] = {
        f"selfsubjectreviews.{_AUTHENTICATION}": _who_am_i,
        f"tokenreviews.{_AUTHENTICATION}": _whose_token,
        f"localsubjectaccessreviews.{_AUTHORIZATION}": _may_somebody_here,
        f"selfsubjectaccessreviews.{_AUTHORIZATION}": _may_i,
        f"selfsubjectrulesreviews.{_AUTHORIZATION}": _what_may_i,
        f"subjectaccessreviews.{_AUTHORIZATION}": _may_somebody,
    }
    return {(resource, "", "POST"): _action(auth, answer) for resource, answer in all_answers.items()}


def _action(auth: _Auth, answer: Callable[[_Auth, Json, str, Context], Json]) -> Action:
    async def act(_: Dependencies, scope: RequestScope, context: Context) -> Response:
        request, kind, namespace = scope.request, scope.kind, scope.namespace
        body, warnings = await scope.pure(lambda: _read(request, kind, namespace, context))
        form = scope.format
        headers = responses.warning_headers(warnings) if warnings else ()
        raw = _encode(answer(auth, body, namespace, context))
        return await pure(
            scope.thread, 0 if form == options.PLAIN else len(raw), lambda: responses.written(raw, form, 201, headers)
        )

    return act


def _read(request: Request, kind: Kind, namespace: str, context: Context) -> tuple[Json, list[str]]:
    """The question, and what to warn of."""
    wanted = options.write_options(request)
    content_type, validation = request.headers.get("content-type", ""), wanted.validation
    decoded = bodies.decode(request.body, content_type, kind, validation)
    body = kind.strategy.decode(decoded.body)
    body["apiVersion"], body["kind"] = kind.api_version, kind.kind
    _settle_namespace(kind, body["metadata"], namespace)
    manager = options.manager_of(wanted, request)
    field_manager.track(body, None, kind, manager=manager, subresource="", now=context.now)
    return body, decoded.warnings


def _settle_namespace(kind: Kind, meta: Json, namespace: str) -> None:
    """Raises: StatusError (400), the body names another one than the path."""
    named = meta.pop("namespace", "")
    if kind.is_namespaced:
        meta["namespace"] = namespace
        if named not in ("", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _who_am_i(auth: _Auth, body: Json, namespace: str, context: Context) -> Json:
    meta = {"creationTimestamp": context.now}
    return {**_head(body), "metadata": meta, "status": {"userInfo": user_info(context.user)}}


def _whose_token(auth: _Auth, body: Json, namespace: str, context: Context) -> Json:
    spec = body.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    status: Json
    try:
        found = auth.authenticator.verify(token, tuple(spec.get("audiences") or ()))
    except Refusal as refusal:
        status = {"user": {}, "error": f"[invalid bearer token, {refusal}]"}
    else:
        if found is None:
            status = {"user": {}, "error": "invalid bearer token"}
        else:
            status = {
                "authenticated": True,
                "user": user_info(found.user),
                "audiences": list(found.audiences),
            }
    return {**_asked(body), "status": status}


def _may_i(auth: _Auth, body: Json, namespace: str, context: Context) -> Json:
    spec = body.get("spec") or {}
    _refuse([*_check_spec(spec), *_check_empty(body)])
    return {**_asked(body), "status": _decided(auth, context.user, spec)}


def _may_somebody(auth: _Auth, body: Json, namespace: str, context: Context) -> Json:
    spec = body.get("spec") or {}
    _refuse([*_check_spec(spec, needs_user=True), *_check_empty(body)])
    return {**_asked(body), "status": _decided(auth, _named_user(spec), spec)}


def _may_somebody_here(auth: _Auth, body: Json, namespace: str, context: Context) -> Json:
    spec, meta = body.get("spec") or {}, body.get("metadata") or {}
    found = [*_check_spec(spec, needs_user=True), *_check_empty(body, but=("namespace",))]
    wanted = spec.get("resourceAttributes")
    if wanted is not None and wanted.get("namespace", "") != (meta.get("namespace") or ""):
        given = wanted.get("namespace", "")
        found.append(invalid_text("spec.resourceAttributes.namespace", given, "must match metadata.namespace"))
    if (other := spec.get("nonResourceAttributes")) is not None:
        printed = printing.text(other, "NonResourceAttributes")
        found.append(invalid("spec.nonResourceAttributes", printed, "disallowed on this kind of request"))
    _refuse(found)
    if namespace != (meta.get("namespace") or ""):
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return {**_asked(body), "status": _decided(auth, _named_user(spec), spec)}


def _what_may_i(auth: _Auth, body: Json, namespace: str, context: Context) -> Json:
    where = (body.get("spec") or {}).get("namespace", "")
    if not where:
        raise bad_request("no namespace on request")
    rules, evaluation_error, is_complete = auth.authorizer.all_rules(context.user, where)
    status: Json = {"resourceRules": [], "nonResourceRules": [], "incomplete": not is_complete}
    for rule in rules:
        shown = msgspec.to_builtins(rule)
        if rule.resources:
            status["resourceRules"].append(shown)
        if rule.non_resource_urls:
            status["nonResourceRules"].append(
                {name: shown[name] for name in ("verbs", "nonResourceURLs") if name in shown}
            )
    if evaluation_error:
        status["evaluationError"] = evaluation_error
    return {**_head(body), "metadata": {}, "spec": {}, "status": status}


def user_info(user: User) -> Json:
    """A user as reviews show one."""
    found: Json = {"username": user.name}
    if user.uid:
        found["uid"] = user.uid
    if user.groups:
        found["groups"] = list(user.groups)
    if user.extra:
        found["extra"] = {name: list(values) for name, values in user.extra.items()}
    return found


def _head(body: Json) -> Json:
    return {"kind": body["kind"], "apiVersion": body["apiVersion"]}


def _asked(body: Json) -> Json:
    return {**_head(body), "metadata": body.get("metadata") or {}, "spec": body.get("spec") or {}}


def _decided(auth: _Auth, user: User, spec: Json) -> Json:
    is_allowed, reason = auth.authorizer.decide(user, _attributes(spec))
    return {"allowed": is_allowed, **({"reason": reason} if reason else {})}


def _attributes(spec: Json) -> Attributes:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        other = spec["nonResourceAttributes"]
        # An empty path is no resource either.
        return Attributes(other.get("verb", ""), path=other.get("path", "") or " ")
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(*(wanted.get(name, "") for name in names))


def _named_user(spec: Json) -> User:
    extra = {name.lower(): tuple(values or ()) for name, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _check_spec(spec: Json, *, needs_user: bool = False) -> list[Violation]:
    found: list[Violation] = []
    wanted, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if wanted is not None and other is not None:
        found.append(invalid("spec.nonResourceAttributes", printing.text(other, "NonResourceAttributes"), _BOTH))
    if wanted is None and other is None:
        found.append(invalid("spec.resourceAttributes", "null", _NEITHER))
    if needs_user and not spec.get("user") and not spec.get("groups"):
        found.append(invalid_text("spec.user", "", "at least one of user or group must be specified"))
    for name in ("fieldSelector", "labelSelector"):
        if wanted is not None and wanted.get(name) is not None:
            found.extend(_check_selector(f"spec.resourceAttributes.{name}", wanted[name], is_label=name[0] == "l"))
    return found


def _check_selector(field: str, selector: Json, *, is_label: bool) -> list[Violation]:
    found: list[Violation] = []
    raw, terms = selector.get("rawSelector", ""), selector.get("requirements") or ()
    if raw and terms:
        told = "may not specified at the same time as requirements"
        found.append(invalid_text(f"{field}.rawSelector", raw, told))
    if not raw and not terms:
        told = f"when {field} is specified, requirements or rawSelector is required"
        found.append(required(f"{field}.requirements", told))
    for position, term in enumerate(terms):
        found.extend(_check_term(f"{field}.requirements[{position}]", term, is_label=is_label))
    return found


def _check_term(field: str, term: Json, *, is_label: bool) -> list[Violation]:
    found: list[Violation] = []
    key, operator, values = term.get("key", ""), term.get("operator", ""), term.get("values") or ()
    if not is_label and not key:
        found.append(required(f"{field}.key", "must be specified"))
    if operator in ("In", "NotIn") and not values:
        found.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in ("Exists", "DoesNotExist") and values:
        told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found.append(forbidden(f"{field}.values", told))
    if is_label:
        found.extend(invalid_texts(f"{field}.key", key, qualified_name_problems(key)))
        for position, value in enumerate(values):
            found.extend(invalid_texts(f"{field}.values[{position}]", value, label_value_problems(value)))
    return found


def _check_empty(body: Json, *, but: tuple[str, ...] = ()) -> list[Violation]:
    meta = body.get("metadata") or {}
    if not any(value for name, value in meta.items() if name not in ("managedFields", *but)):
        return []
    told = "must be empty except for namespace" if but else "must be empty"
    return [invalid("metadata", _encode(meta).decode(), told)]


def _refuse(violations: list[Violation]) -> None:
    if violations:
        # What the server has decoded does not know its kind any more.
        raise errors.invalid("", _AUTHORIZATION, "", violations)
