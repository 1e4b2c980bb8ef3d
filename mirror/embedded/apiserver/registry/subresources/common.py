"""What actions have in common: reading a body, admission, and writing conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mirror.embedded.apiserver.admission.plugins import Attributes
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.decoding import bodies
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, not_found
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.messages import Request, Response
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope, check_segment
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.storage.records import Record


async def read(scope: RequestScope, api_version: str, kind: str) -> tuple[Json, WriteOptions, list[str]]:
    """The body of a POST to a subresource, canonical; its options; and what to warn of.

    Args:
        api_version: what the body must be, if it says.

    Raises:
        StatusError: 400, 415, 422.
    """
    return await scope.pure(lambda: _read(scope.request, api_version, kind, scope.namespace))


def _read(request: Request, api_version: str, kind: str, namespace: str) -> tuple[Json, WriteOptions, list[str]]:
    wanted = options.write_options(request)
    content_type = request.headers.get("content-type", "")
    decoded = bodies.decode_as(request.body, content_type, api_version, kind, kind, wanted.validation)
    body = canonical(decoded.body, kind)
    body.setdefault("metadata", {})
    # Webhooks get what was posted, which is another kind than that of the object.
    body |= {"apiVersion": api_version, "kind": kind}
    found = body["metadata"].get("namespace") or namespace
    if found != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return body, wanted, decoded.warnings


@contextmanager
def reporting(warnings: Sequence[str]) -> Iterator[None]:
    """Who is refused hears of what is odd, too."""
    try:
        yield
    except StatusError as refused:
        refused.headers = (*refused.headers, *responses.warning_headers(warnings))
        raise


async def mutated(
    deps: Dependencies, scope: RequestScope, name: str, body: Json, context: Context
) -> tuple[Attributes, Json, list[str]]:
    """Let admission change what is posted to a subresource; gives what ``validate`` needs, the body, and warnings.

    As upstream, this comes before the subresource looks at anything, and ``validate`` once the body is found good.

    Raises:
        StatusError: as admission says; there is no such namespace, or it is being terminated.
    """
    attributes = Attributes(
        operation="CREATE",
        kind=scope.kind,
        subresource=scope.subresource,
        namespace=scope.namespace,
        name=name,
        body=body,
        old=None,
        user=context.user,
        is_dry_run=context.is_dry_run,
        options={"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        thread=scope.thread,
    )
    warnings = await deps.admission.mutate(attributes)
    return attributes, body if attributes.body is None else attributes.body, warnings


def found(deps: Dependencies, plural: str, namespace: str, name: str) -> Record:
    """A stored object of core.

    Raises:
        StatusError: 404; 400 for a name that none can have.
    """
    check_segment(name)
    record = deps.storage.get(plural, namespace, name)
    if record is None:
        raise not_found(plural, "", name)
    return record


def success(scope: RequestScope, warnings: list[str]) -> Response:
    """201 and a Status, as for all that is posted and not stored."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return responses.of_status(status, scope.format, responses.warning_headers(warnings))


def created(scope: RequestScope, body: Json, warnings: list[str]) -> Response:
    """201 and what was made of the body."""
    return responses.written(objects.encode(body), scope.format, 201, responses.warning_headers(warnings))


def set_condition(status: Json, condition: Json, now: str) -> None:
    """In place: the condition is as given; the time of its last change stays if its status does."""
    made = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    listed = status.setdefault("conditions", [])
    for position, one in enumerate(listed):
        if one["type"] == condition["type"]:
            if one["status"] == condition["status"]:
                made["lastTransitionTime"] = one["lastTransitionTime"]
            listed[position] = made
            return
    listed.append(made)
