"""``pods/log``: what a container has written, as the kubelet that runs it keeps it (``mirror.embedded.podlogs``)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mirror.batch import times
from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, forbidden, invalid, not_negative
from mirror.embedded import podlogs
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, bad_request, not_found
from mirror.embedded.apiserver.apimachinery.errors import invalid as refused_as_invalid
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.messages import Answer, Request, Response, Stream
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.subresources import common
from mirror.embedded.apiserver.request import options
from mirror.embedded.apiserver.request.info import RequestScope

_TEXT = "text/plain"
_POSITIVE = "must be greater than 0"
_LONGEST_SECONDS = 30 * 365 * 86_400
"""Nothing is older."""
_KINDS = ("initContainers", "containers", "ephemeralContainers")


async def log(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
    """Answer a GET of a pod's ``log``: what there is, and, if it is followed, what comes.

    Raises:
        StatusError: 400, 404 for a pod, or for its node, 422.
    """
    namespace, name, request = scope.namespace, scope.name, scope.request
    wanted = _wanted(request, name, datetime.fromisoformat(context.now))
    pod: Json = objects.decode(common.found(deps, "pods", namespace, name).raw)
    container = _container(pod, request.parameters.get("container", ""))
    node = pod["spec"].get("nodeName")
    if not node:
        return Response(204)
    if deps.storage.get("nodes", "", node) is None:
        raise not_found("pods", "", node)  # the server means the node
    is_previous = options.flag(request.parameters, "previous") is True
    try:
        container_id = podlogs.container_id_of(pod, container, previous=is_previous)
    except podlogs.NoLog as error:
        raise bad_request(str(error)) from error
    kept = deps.logs.find(container_id) if deps.logs is not None else None
    if kept is None:
        return Response(200, f"unable to retrieve container logs for {container_id}".encode(), _TEXT)
    pieces = kept.read(wanted)
    if wanted.follow:
        return Stream(200, pieces, _TEXT)
    return Response(200, b"".join([piece async for piece in pieces]), _TEXT)


def _container(pod: Json, name: str) -> str:
    """The container that is meant. Raises: StatusError 400."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = [one["name"] for kind in _KINDS for one in spec.get(kind) or ()]
    if name:
        if name not in names:
            raise bad_request(f"container {name} is not valid for pod {pod_name}")
        return name
    if len(spec["containers"]) != 1:
        told = f"a container name must be specified for pod {pod_name}, choose one of: [{' '.join(names)}]"
        raise bad_request(told)
    return str(spec["containers"][0]["name"])


def _wanted(request: Request, name: str, now: datetime) -> podlogs.Options:
    """The options of a query. Raises: StatusError 400, 422."""
    query = request.parameters
    since_seconds, since_time = options.integer(query, "sinceSeconds"), query.get("sinceTime")
    since = _moment(since_time) if since_time else None
    tail, limit = options.integer(query, "tailLines"), options.integer(query, "limitBytes")
    problems = _problems(tail, limit, since_seconds, has_since=since is not None)
    if "stream" in query:
        problems.append(forbidden("stream", "may not be specified"))
    if problems:
        raise refused_as_invalid("PodLogOptions", "", name, problems)
    if since_seconds is not None:
        since = now - timedelta(seconds=min(since_seconds, _LONGEST_SECONDS))
    return podlogs.Options(
        follow=options.flag(query, "follow") is True,
        timestamps=options.flag(query, "timestamps") is True,
        since=since,
        tail=tail,
        limit_bytes=limit,
    )


def _problems(tail: int | None, limit: int | None, since_seconds: int | None, *, has_since: bool) -> list[Violation]:
    found = list(not_negative("tailLines", tail))
    if limit is not None and limit < 1:
        found.append(invalid("limitBytes", limit, _POSITIVE))
    if since_seconds is not None and has_since:
        found.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since_seconds is not None and since_seconds < 1:
        found.append(invalid("sinceSeconds", since_seconds, _POSITIVE))
    return found


def _moment(text: str) -> datetime:
    try:
        seconds, rest = divmod(times.instant(text), times.NANOSECONDS)
    except times.BadTime as error:
        told = f'parsing time {quoted(text)} as "2006-01-02T15:04:05Z07:00": cannot parse {quoted(text)} as "2006"'
        raise bad_request(told) from error
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=rest // 1_000)
