"""``pods/resize``: CPU and memory of a pod that runs change in place; and the quality of service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror.batch.quoting import json_text
from mirror.batch.violations import Violation, forbidden, invalid
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json
from mirror.embedded.apiserver.registry.builtin import keep
from mirror.embedded.apiserver.registry.resources.pods.changes import KEPT_METADATA
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.pods import template

_RESIZED = ("cpu", "memory")
_KINDS = ("containers", "initContainers")
_ONLY = "only cpu and memory resources are mutable"


def prepare(new: Json, old: Json, context: Context) -> Json:
    """The pod as it was, with these resources; one with other containers stays as it came, for the rules to see."""
    spec, before = new["spec"], old["spec"]
    if any(len(spec.get(kind) or ()) != len(before.get(kind) or ()) for kind in _KINDS):
        return new
    made = dict(before)
    for kind in _KINDS:
        if spec.get(kind):
            made[kind] = _merged(spec[kind], before[kind])
    keep(made, spec, ("resources",))
    keep(new, old, ("status",))
    keep(new["metadata"], old["metadata"], KEPT_METADATA)
    new["spec"] = made
    if not same(made, before):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def check(new: Json, old: Json, context: Context) -> Sequence[Violation]:
    """The rules, in the server's order."""
    if template.MIRROR in old["metadata"].get("annotations", {}):
        return [forbidden("[]", "static pods cannot be resized")]
    if old["spec"].get("os", {}).get("name") == "windows":
        return [forbidden("[]", "windows pods cannot be resized")]
    found = [*metadata.check_meta_update(new, old), *template.check_pod(new), *_check_pod(new, old)]
    spec, before = new["spec"], old["spec"]
    reordered = list(_check_order(spec, before))
    if reordered:
        return [*found, *reordered]
    for kind in ("initContainers", "containers"):
        for position, (one, other) in enumerate(zip(spec.get(kind) or (), before.get(kind) or (), strict=True)):
            found.extend(
                _check_removed(f"spec.{kind}[{position}].resources", "resource", one["resources"], other["resources"])
            )
    own = before.get("resources")
    made = {**spec, "resources": _unresized(spec.get("resources"), own) or own}
    for kind in _KINDS:
        if before.get(kind):
            made[kind] = [_container_unresized(*pair) for pair in zip(spec[kind], before[kind], strict=True)]
    found.extend(_check_containers(spec, made, before))
    if not found and not same(made, before):
        found.append(forbidden("spec", _ONLY))
    return found


def _merged(new: Sequence[Json], old: Sequence[Json]) -> list[Json]:
    """Containers as they were, with what may be asked for; the new ones if they are others."""
    if any(one["name"] != other["name"] for one, other in zip(new, old, strict=True)):
        return list(new)
    made = []
    for one, other in zip(new, old, strict=True):
        container = dict(other)
        keep(container, one, ("resources", "resizePolicy"))
        made.append(container)
    return made


def _check_pod(new: Json, old: Json) -> Iterator[Violation]:
    """What holds for the whole pod."""
    if old["status"].get("qosClass", "") != of(new["spec"]):
        printed = json_text(new["status"].get("qosClass", ""))
        yield invalid("spec", printed, "Pod QOS Class may not change as a result of resizing")
    running = (one for one in old["status"].get("containerStatuses", ()) if "running" in one["state"])
    first = next(running, None)
    if first is not None and "resources" not in first:
        yield forbidden("spec", "Pod running on node without support for resize")
    yield from _check_pod_resources(new["spec"].get("resources"), old["spec"].get("resources"))
    if old["status"].get("nodeAllocatableResourceClaimStatuses"):
        yield forbidden("spec", "pods with node allocatable resource claims cannot be resized")


def _check_pod_resources(new: Json | None, old: Json | None) -> Iterator[Violation]:
    if not _is_set(new) and not _is_set(old):
        return
    if old is not None and new is None:
        yield forbidden("spec.resources", "pod-level resources cannot be removed")
        return
    if old is not None:
        yield from _check_removed("spec.resources", "pod-level resource", new or {}, old)
    if not same(_unresized(new, old) or {}, old or {}):
        yield forbidden("spec", f"{_ONLY} at pod-level")


def _check_order(new: Json, old: Json) -> Iterator[Violation]:
    for kind in _KINDS:
        listed, before = new.get(kind) or (), old.get(kind) or ()
        if len(listed) != len(before):
            yield forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for position, (one, other) in enumerate(zip(listed, before, strict=True)):
            if one["name"] != other["name"]:
                yield forbidden(f"spec.{kind}[{position}].name", f"{kind} may not be renamed or reordered on resize")


def _check_removed(field: str, what: str, new: Json, old: Json) -> Iterator[Violation]:
    for kind in ("requests", "limits"):
        if old.get(kind, {}).keys() - new.get(kind, {}).keys():
            yield forbidden(f"{field}.{kind}", f"{what} {kind} cannot be removed")


def _check_containers(spec: Json, made: Json, before: Json) -> Iterator[Violation]:
    """Beside CPU and memory, containers are what they were."""
    for one, other in zip(made.get("containers") or (), before.get("containers") or (), strict=True):
        if not same(one, other):
            yield forbidden("spec", _ONLY)
    for position, other in enumerate(before.get("initContainers", ())):
        field, one = f"spec.initContainers[{position}]", made["initContainers"][position]
        if not same(one, other):
            yield forbidden(field, "only cpu and memory resources for init or sidecar containers are mutable")
        if other.get("restartPolicy") != "Always" and not same(spec["initContainers"][position], other):
            for policy in one.get("resizePolicy", ()):
                if policy["restartPolicy"] == "RestartContainer":
                    detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
                    yield forbidden(field, detail)


def _container_unresized(new: Json, old: Json) -> Json:
    made = _unresized(new["resources"], old["resources"]) or {}
    # Claims of a container are not looked at, and so may not be there.
    return {**new, "resources": {name: value for name, value in made.items() if name != "claims"}}


def _unresized(new: Json | None, old: Json | None) -> Json | None:
    """Resources with the CPU and memory that there were."""
    if new is None:
        return None
    made = dict(new)
    for kind in ("limits", "requests"):
        before = (old or {}).get(kind, {})
        listed = {name: amount for name, amount in new.get(kind, {}).items() if name not in _RESIZED}
        listed |= {name: before[name] for name in _RESIZED if name in before}
        if listed:
            made[kind] = listed
        else:
            made.pop(kind, None)
    return made


def _is_set(resources: Json | None) -> bool:
    return bool(resources and (resources.get("requests") or resources.get("limits")))


# The quality of service of a pod, which follows from what its containers request.

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")


def of(spec: Json) -> str:
    """The class of a pod with this spec (canonical, with defaults)."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    has_all_limits = True
    if "resources" in spec:
        _add(requests, spec["resources"].get("requests"))
        _add(limits, spec["resources"].get("limits"))
        has_all_limits = "limits" not in spec["resources"] or set(limits) == set(_COUNTED)
    else:
        for container in (*(spec.get("containers") or ()), *spec.get("initContainers", ())):
            _add(requests, container["resources"].get("requests"))
            has_all_limits &= _add(limits, container["resources"].get("limits")) == set(_COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if has_all_limits and requests == limits else BURSTABLE


def _add(total: dict[str, int], listed: dict[str, str] | None) -> set[str]:
    """The names of resources of which there is some."""
    found = set()
    for name in _COUNTED:
        amount = quantities.parse((listed or {}).get(name, ""))
        if amount is not None and amount.nano > 0:
            total[name] = total.get(name, 0) + amount.nano
            found.add(name)
    return found
