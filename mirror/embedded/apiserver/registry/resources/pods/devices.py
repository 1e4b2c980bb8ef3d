"""What a status of a pod may say of the users of its containers and of devices that were given to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import id_problems, label_problems, size, subdomain_problems
from mirror.batch.violations import (
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported,
    required,
    too_long,
)
from mirror.embedded.apiserver.apimachinery.strategy import Json

_HEALTHS = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE = 1024
_KINDS = (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers"))
_NO_CLAIM = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>'"
    " if request is empty"
)
_NO_RESOURCE = "must match one of the container's resource requests"


def check(status: Json, spec: Json) -> Iterator[Violation]:
    """All of it, in the server's order."""
    is_windows = spec.get("os", {}).get("name") == "windows"
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for position, one in enumerate(status.get(kind, ())):
            user = one.get("user", {}).get("linux")
            if user is not None:
                yield from _check_user(f"status.{kind}[{position}].user.linux", user, is_windows=is_windows)
    for kind, of_spec in _KINDS:
        containers = {one["name"]: one for one in spec.get(of_spec) or ()}
        for position, one in enumerate(status.get(kind, ())):
            field = f"status.{kind}[{position}].allocatedResourcesStatus"
            yield from _check_devices(field, one.get("allocatedResourcesStatus", ()), containers.get(one["name"]))
    for position, one in enumerate(status.get("ephemeralContainerStatuses", ())):
        if one.get("allocatedResourcesStatus"):
            field = f"status.ephemeralContainerStatuses[{position}].allocatedResourcesStatus"
            yield forbidden(field, "must not be specified in container status")


def check_extended(claim: Json, spec: Json) -> Iterator[Violation]:
    """The claim that was made for extended resources."""
    field = "status.extendedResourceClaimStatus"
    mappings: Sequence[Json] = claim.get("requestMappings") or ()
    if not mappings:
        yield required(f"{field}.requestMappings", "at least one request mapping is required")
    containers = {one["name"]: one for kind in ("initContainers", "containers") for one in spec.get(kind) or ()}
    seen: set[tuple[str, str, str]] = set()
    for position, one in enumerate(mappings):
        path = f"{field}.requestMappings[{position}]"
        name, resource, request = one["containerName"], one["resourceName"], one["requestName"]
        if name not in containers:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield invalid_text(f"{path}.containerName", name, detail)
        elif resource not in containers[name]["resources"].get("requests", {}):
            detail = "must match the extended resource name of an entry in spec.initContainers.resources.requests or"
            yield invalid_text(f"{path}.resourceName", resource, f"{detail} spec.containers.resources.requests")
        yield from invalid_texts(f"{field}.requestName", request, label_problems(request))
        if (name, resource, request) in seen:
            for part in ("containerName", "resourceName", "requestName"):
                yield duplicate(f"{path}.{part}", quoted(one[part]))
        seen.add((name, resource, request))
    name = claim["resourceClaimName"]
    if not name:
        yield required(f"{field}.resourceClaimName")
    else:
        yield from invalid_texts(f"{field}.resourceClaimName", name, subdomain_problems(name))


def _check_user(field: str, user: Json, *, is_windows: bool) -> Iterator[Violation]:
    if is_windows:
        yield forbidden(field, "cannot be set for a windows pod")
        return
    for name in ("uid", "gid"):
        for problem in id_problems(user[name]):
            yield invalid(f"{field}.{name}", user[name], problem)
    for position, group in enumerate(user.get("supplementalGroups", ())):
        for problem in id_problems(group):
            yield invalid(f"{field}.supplementalGroups[{position}]", group, problem)


def _check_devices(field: str, listed: Sequence[Json], container: Json | None) -> Iterator[Violation]:
    for position, one in enumerate(listed):
        path, name = f"{field}[{position}]", one["name"]
        if container is not None and not _is_requested(name, container["resources"]):
            detail = _NO_CLAIM if name.startswith("claim:") else _NO_RESOURCE
            yield invalid(f"{path}.name", json_text(name), detail)
        seen: set[str] = set()
        for number, device in enumerate(one.get("resources", ())):
            where, message = f"{path}.resources[{number}]", device.get("message")
            if device.get("health", "") not in _HEALTHS:
                yield not_supported(f"{where}.health", device.get("health", ""), _HEALTHS)
            if message == "":
                yield required(f"{where}.message", "must be non-empty if specified")
            elif message is not None and size(message) > _LONGEST_MESSAGE:
                yield too_long(f"{where}.message", _LONGEST_MESSAGE)
            if device["resourceID"] in seen:
                yield duplicate(f"{where}.resourceID", json_text(device["resourceID"]))
            seen.add(device["resourceID"])


def _is_requested(name: str, resources: Json) -> bool:
    if not name.startswith("claim:"):
        return name in resources.get("requests", {})
    claims = (
        f"{one['name']}/{one['request']}" if one.get("request") else one["name"] for one in resources.get("claims", ())
    )
    return name.removeprefix("claim:") in claims
