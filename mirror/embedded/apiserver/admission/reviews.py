"""What a webhook is asked, and what its answer means (``admission.k8s.io``). Pure."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.admission.plugins import Attributes
from mirror.embedded.apiserver.admission.webhooks import Webhook
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError
from mirror.embedded.apiserver.apimachinery.kinds import Kind

_VERSIONS = ("v1", "v1beta1")
_JSON_PATCH = "JSONPatch"


class BadReview(Exception):
    """The answer is none; the text says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook says of a request."""

    is_allowed: bool
    status: Json = field(default_factory=dict)
    """Why not."""
    operations: list[Json] = field(default_factory=list)
    """A JSON patch of the object."""
    warnings: tuple[str, ...] = ()


def version_for(hook: Webhook) -> str | None:
    """The version of reviews that the webhook and we know."""
    return next((one for one in hook.body.get("admissionReviewVersions") or () if one in _VERSIONS), None)


def question(version: str, uid: str, attributes: Attributes, kind: Kind) -> bytes:
    """The AdmissionReview that is sent. ``kind`` is in the version that the webhook accepts."""
    asked = attributes.kind
    user = attributes.user
    request: Json = {
        "uid": uid,
        "kind": _posted(attributes) or _gvk(kind),
        "resource": _gvr(kind),
        "requestKind": _posted(attributes) or _gvk(asked),
        "requestResource": _gvr(asked),
        "namespace": attributes.around,
        "operation": attributes.operation,
        "userInfo": {"username": user.name, "groups": list(user.groups)},
        "object": _shown(attributes.body, kind) if _posted(attributes) is None else attributes.body,
        "oldObject": _shown(attributes.old, kind),
        "dryRun": attributes.is_dry_run,
        "options": attributes.options or None,
    }
    if attributes.name:
        request["name"] = attributes.name
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    if user.uid:
        request["userInfo"]["uid"] = user.uid
    if user.extra:
        request["userInfo"]["extra"] = {name: list(values) for name, values in user.extra.items()}
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}
    )


def verdict(answer: bytes, version: str, uid: str, *, is_mutating: bool) -> Verdict:
    """What an answer says.

    Raises:
        BadReview: it says nothing that can be used.
    """
    try:
        body = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview("the answer is not JSON") from error
    if not isinstance(body, dict) or not isinstance(body.get("response"), dict):
        raise BadReview("webhook response was absent")
    response = body["response"]
    if version == "v1":
        _check_envelope(body, response, uid)
    status = response.get("status")
    warnings = response.get("warnings") or []
    return Verdict(
        response.get("allowed") is True,
        status if isinstance(status, dict) else {},
        _operations(response, version) if is_mutating else _no_operations(response, version),
        tuple(str(one) for one in warnings if isinstance(one, str)) if isinstance(warnings, list) else (),
    )


def denied(hook: Webhook, status: Json) -> StatusError:
    """The webhook denied the request: the error for the client."""
    by = f"admission webhook {quoted(hook.name)} denied the request"
    code = status.get("code")
    told: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    reason, message = status.get("reason"), status.get("message")
    if isinstance(message, str) and message:
        told["message"] = f"{by}: {message}"
    elif isinstance(reason, str) and reason:
        told["message"] = f"{by}: {reason}"
    else:
        told["message"] = f"{by} without explanation"
    if isinstance(reason, str) and reason:
        told["reason"] = reason
    if isinstance(status.get("details"), dict):
        told["details"] = status["details"]
    told["code"] = code if isinstance(code, int) and 400 <= code <= 599 else 400
    return StatusError(told)


def _check_envelope(body: Json, response: Json, uid: str) -> None:
    if response.get("uid") != uid:
        raise BadReview(f'expected response.uid="{uid}", got {quoted(str(response.get("uid", "")))}')
    version, kind = body.get("apiVersion", ""), body.get("kind", "")
    if (version, kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        raise BadReview(
            f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {version}, Kind={kind}"
        )


def _no_operations(response: Json, version: str) -> list[Json]:
    if version == "v1":
        if response.get("patch"):
            raise BadReview("validating webhook may not return response.patch")
        if response.get("patchType") is not None:
            raise BadReview("validating webhook may not return response.patchType")
    return []


def _operations(response: Json, version: str) -> list[Json]:
    patch, kind = response.get("patch"), response.get("patchType")
    if version == "v1":
        if patch and kind is None:
            raise BadReview("webhook returned response.patch but not response.patchType")
        if not patch and kind is not None:
            raise BadReview("webhook returned response.patchType but not response.patch")
        if kind not in (None, _JSON_PATCH):
            raise BadReview(f"unsupported patch type {quoted(str(kind))}")
    if not patch:
        return []
    try:
        operations: Any = msgspec.json.decode(b64decode(patch, validate=True))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, binascii.Error, TypeError, ValueError) as error:
        raise BadReview("received undecodable patch in webhook response") from error
    if operations is None:
        return []
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise BadReview("received undecodable patch in webhook response")
    return operations


def _shown(body: Json | None, kind: Kind) -> Json | None:
    return None if body is None else body | {"apiVersion": kind.api_version, "kind": kind.kind}


def _posted(attributes: Attributes) -> Json | None:
    """The kind of what is posted to a subresource, which is another than that of the object (Binding, Eviction)."""
    if not attributes.subresource or attributes.body is None or attributes.old is not None:
        return None
    group, _, version = attributes.body.get("apiVersion", "").rpartition("/")
    kind = attributes.body.get("kind", "")
    return {"group": group, "version": version, "kind": kind} if kind and version else None


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _gvr(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}
