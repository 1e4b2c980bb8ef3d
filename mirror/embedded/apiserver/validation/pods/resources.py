"""What the API refuses in resource requests and limits (C31).

Resources are taken in the order of their names; a server takes them in any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import label_problems, qualified_name_problems
from mirror.batch.violations import (
    NEGATIVE,
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_found,
    not_supported,
    required,
)
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.quantities import Quantity

_HUGE_PAGES = "hugepages-"
_OF_CONTAINERS = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_STANDARD = (
    _OF_CONTAINERS
    | _COUNTED
    | {f"{kind}.{name}" for kind in ("requests", "limits") for name in _OF_CONTAINERS}
    | {"storage", "requests.storage"}
)
_OF_PODS = ("cpu", "memory")

_NameRule: TypeAlias = Callable[[str, str], Iterator[Violation]]


def check_container(field: str, resources: Json, claims: Set[str]) -> Iterator[Violation]:
    """Limits, requests and claims of a container."""
    yield from _check(field, resources, claims, _check_container_name)


def check_pod(field: str, pod: Json, claims: Set[str]) -> Iterator[Violation]:
    """Limits and requests of a whole pod, which takes no claims, and must have room for its containers."""
    resources: Json = pod["resources"]
    if pod.get("os", {}).get("name") == "windows":
        yield forbidden(field, "may not be set for a windows pod")
        return
    if "claims" in resources:
        yield forbidden(f"{field}.claims", "claims may not be set for Resources at pod-level")
    yield from _check(field, resources, claims, _check_pod_name)
    yield from _check_sum(field, pod, "requests")
    yield from _check_sum(field, pod, "limits")
    limits = _read(resources.get("limits"))
    for position, container in enumerate(pod.get("containers") or ()):
        for name, limit in _read(container["resources"].get("limits")).items():
            if name in limits and limit.nano > limits[name].nano:
                detail = f"must be less than or equal to pod limits of {limits[name].text}"
                yield invalid_text(f"{field}.containers[{position}][{name}].limits", limit.text, detail)


def _check_sum(field: str, pod: Json, kind: str) -> Iterator[Violation]:
    """The containers together may not request more; limits together count for huge pages only."""
    own = _read(pod["resources"].get(kind))
    for name, needed in sorted(needed_by(pod, kind).items()):
        if kind == "limits" and not name.startswith(_HUGE_PAGES):
            continue
        if name in own and needed.nano > own[name].nano:
            detail = f"must be greater than or equal to aggregate container {kind} of {needed.text}"
            yield invalid_text(f"{field}.{kind}[{name}]", own[name].text, detail)


def needed_by(pod: Json, kind: str) -> dict[str, Quantity]:
    """What a pod needs: all main containers and sidecars, or one init container with the sidecars before it."""
    total: dict[str, Quantity] = {}
    sidecars: dict[str, Quantity] = {}
    most: dict[str, Quantity] = {}
    for container in pod.get("containers") or ():
        _add(total, container, kind)
    for container in pod.get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            _add(total, container, kind)
            _add(sidecars, container, kind)
            _raise(most, sidecars)
        else:
            alone: dict[str, Quantity] = {}
            _add(alone, container, kind)
            for name, amount in sidecars.items():
                alone[name] = quantities.plus(alone[name], amount) if name in alone else amount
            _raise(most, alone)
    _raise(total, most)
    return total


def _add(total: dict[str, Quantity], container: Json, kind: str) -> None:
    for name, amount in _read(container["resources"].get(kind)).items():
        total[name] = quantities.plus(total[name], amount) if name in total else amount


def _raise(most: dict[str, Quantity], other: dict[str, Quantity]) -> None:
    for name, amount in other.items():
        if name not in most or amount.nano > most[name].nano:
            most[name] = amount


def _check(field: str, resources: Json, claims: Set[str], check_name: _NameRule) -> Iterator[Violation]:
    limits, requests = _read(resources.get("limits")), _read(resources.get("requests"))
    for name, limit in limits.items():
        yield from check_name(f"{field}.limits[{name}]", name)
        yield from _check_amount(f"{field}.limits[{name}]", name, limit)
    for name, request in requests.items():
        yield from check_name(f"{field}.requests[{name}]", name)
        yield from _check_amount(f"{field}.requests[{name}]", name, request, is_request=True)
        yield from _check_against_limit(field, name, request, limits.get(name))
        yield from _check_pages(f"{field}.requests[{name}]", name, request)
    names = limits.keys() | requests.keys()
    if not names & set(_OF_PODS) and any(name.startswith(_HUGE_PAGES) for name in names):
        yield forbidden(field, "HugePages require cpu or memory")
    yield from _check_claims(f"{field}.claims", resources.get("claims", ()), claims)


def _read(listed: Mapping[str, str] | None) -> dict[str, Quantity]:
    found = ((name, quantities.parse(text)) for name, text in sorted((listed or {}).items()))
    return {name: amount for name, amount in found if amount is not None}


def _check_amount(field: str, name: str, amount: Quantity, *, is_request: bool = False) -> Iterator[Violation]:
    if amount.nano < 0:
        yield invalid_text(field, amount.text, NEGATIVE)
    if is_counted(name) and not amount.is_whole:
        yield invalid(field, json_text(amount.text), "must be an integer")
    if not is_request:
        yield from _check_pages(field, name, amount)


def _check_pages(field: str, name: str, amount: Quantity) -> Iterator[Violation]:
    if not name.startswith(_HUGE_PAGES):
        return
    page = quantities.parse(name.removeprefix(_HUGE_PAGES))
    units = amount.units if amount.units < 1 << 63 else 0  # What does not fit into 64 bits counts as nothing there.
    if page is None or page.nano <= 0 or not page.is_whole or units % page.units:
        yield invalid_text(field, amount.text, f"{amount.text} is not positive integer multiple of {name}")


def _check_against_limit(field: str, name: str, request: Quantity, limit: Quantity | None) -> Iterator[Violation]:
    overcommit = _is_native(name) and not name.startswith(_HUGE_PAGES)
    if limit is None:
        if not overcommit:
            yield required(f"{field}.limits", "Limit must be set for non overcommitable resources")
    elif request.nano != limit.nano and not overcommit:
        detail = f"must be equal to {name} limit of {limit.text}"
        yield invalid_text(f"{field}.requests", request.text, detail)
    elif request.nano > limit.nano:
        detail = f"must be less than or equal to {name} limit of {limit.text}"
        yield invalid_text(f"{field}.requests", request.text, detail)


def _check_name(field: str, name: str) -> Iterator[Violation]:
    problems = qualified_name_problems(name)
    for problem in problems:
        yield invalid(field, json_text(name), problem)
    is_huge = name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
    if not problems and "/" not in name and name not in _STANDARD and not is_huge:
        yield invalid(field, json_text(name), "must be a standard resource type or fully qualified")


def _check_container_name(field: str, name: str) -> Iterator[Violation]:
    yield from _check_name(field, name)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(_HUGE_PAGES):
            yield invalid(field, json_text(name), "must be a standard resource for containers")
    elif not _is_native(name) and not _is_extended(name):
        yield invalid(field, json_text(name), "doesn't follow extended resource name standard")


def _check_pod_name(field: str, name: str) -> Iterator[Violation]:
    found = list(_check_name(field, name))
    if not found and name not in _OF_PODS and not name.startswith(_HUGE_PAGES):
        found = [not_supported(field, name, ("cpu", _HUGE_PAGES, "memory"))]
    yield from found


def is_counted(name: str) -> bool:
    """Whether there are only whole units of it."""
    return name in _COUNTED or _is_extended(name)


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.") and not qualified_name_problems(f"requests.{name}")


def _check_claims(field: str, claims: Sequence[Json], known: Set[str]) -> Iterator[Violation]:
    """Each claim, or each request of a claim, once, and only claims that the pod has."""
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        path, name, request = f"{field}[{position}]", claim["name"], claim.get("request", "")
        if not name:
            yield required(path)
            continue
        if name in seen:
            yield duplicate(path, quoted(name))
        else:
            yield from invalid_texts(f"{path}.request", request, label_problems(request) if request else ())
            key = f"{name}/{request}" if request else name
            if key in seen:
                yield duplicate(path, quoted(key))
            elif not request:
                for _ in (one for one in seen if one.startswith(f"{name}/")):
                    yield duplicate(path, quoted(name))
            seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            yield not_found(path, name, f"must be one of the names in pod.spec.resourceClaims{listed}")
