"""What the API refuses in the status of a pod, and what it keeps of the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import qualified_name_problems, subdomain_problems
from mirror.batch.violations import IMMUTABLE, Violation, duplicate, forbidden, invalid, invalid_text, invalid_texts
from mirror.embedded.apiserver.apimachinery import printing
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json
from mirror.embedded.apiserver.registry.builtin import keep
from mirror.embedded.apiserver.registry.resources.pod_defaults import fill_addresses
from mirror.embedded.apiserver.registry.resources.pods import changes, devices
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.cidrs import internal_error
from mirror.embedded.apiserver.validation.pods.template import check_address

_OWN = ("PodScheduled", "Ready", "Initialized")
_NOT_NEGATIVE = "must be a non-negative integer"
_NO_RETURN = "may not be transitioned to non-terminated state"
_RESTART_ALL = "RestartAllContainers"
RESETS = (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))


def prepare(new: Json, old: Json, context: Context) -> Json:
    """A pod whose status was written; spec, deletion and owners are the old ones."""
    keep(new, old, ("spec",))
    keep(new["metadata"], old["metadata"], ("generation", "deletionTimestamp", "ownerReferences"))
    status, before = new["status"], old["status"]
    _drop_fields_of_gates(status)
    fill_addresses(status)
    if not status.get("qosClass"):
        keep(status, before, ("qosClass",))
    if not status.get("observedGeneration"):
        keep(status, before, ("observedGeneration",))
    known: dict[str, list[int]] = {}
    for one in before.get("conditions", ()):
        known.setdefault(one["type"], []).append(one.get("observedGeneration", 0))
    for one in status.get("conditions", ()):
        generations = known.get(one["type"])
        generation = generations.pop(0) if generations else 0
        if not one.get("observedGeneration") and generation:
            one["observedGeneration"] = generation
    return new


def _drop_fields_of_gates(status: Json) -> None:
    """Those of gates that are off. Who has written them owns them nevertheless."""
    status.pop("nodeAllocatableResourceClaimStatuses", None)
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for one in status.get(kind, ()):
            for mount in one.get("volumeMounts", ()):
                mount.pop("volumeStatus", None)


def check(new: Json, old: Json, context: Context) -> Sequence[Violation]:
    """The rules, in the server's order."""
    return [*metadata.check_meta_update(new, old), *changes.check_annotations(new, old), *_check_status(new, old)]


def _check_status(new: Json, old: Json) -> Iterator[Violation]:
    status, before, spec = new["status"], old["status"], old["spec"]
    yield from _check_conditions(status.get("conditions", ()))
    yield from _check_nomination(status.get("nominatedNodeName", ""), before.get("nominatedNodeName", ""), spec)
    if status.get("observedGeneration", 0) < 0:
        yield invalid("status.observedGeneration", status["observedGeneration"], _NOT_NEGATIVE)
    if status.get("qosClass", "") != before.get("qosClass", ""):
        yield invalid("status.qosClass", json_text(status.get("qosClass", "")), IMMUTABLE)
    yield from _check_ends("containerStatuses", status, before, spec, spec.get("containers") or ())
    yield from _check_ends("initContainerStatuses", status, before, spec, spec.get("initContainers", ()))
    yield from _check_ends("ephemeralContainerStatuses", status, before, spec, None)
    yield from _check_claims(status.get("resourceClaimStatuses", ()), spec.get("resourceClaims", ()))
    if "extendedResourceClaimStatus" in status:
        yield from devices.check_extended(status["extendedResourceClaimStatus"], spec)
    yield from _check_addresses("podIPs", status, before)
    addresses = status.get("hostIPs", ())
    if addresses and addresses[0]["ip"] != status.get("hostIP", ""):
        yield invalid_text("status.hostIPs[0].ip", addresses[0]["ip"], "must be equal to `hostIP`")
    yield from _check_addresses("hostIPs", status, before)
    yield from devices.check(status, spec)


def _check_conditions(conditions: Sequence[Json]) -> Iterator[Violation]:
    for position, one in enumerate(conditions):
        field = f"status.conditions[{position}]"
        if one.get("observedGeneration", 0) < 0:
            yield invalid(f"{field}.observedGeneration", one["observedGeneration"], _NOT_NEGATIVE)
        if one["type"] not in _OWN:
            yield from invalid_texts(f"{field}.Type", one["type"], qualified_name_problems(one["type"]))


def _check_nomination(name: str, before: str, spec: Json) -> Iterator[Violation]:
    if not name or name == before:
        return
    yield from invalid_texts("status.nominatedNodeName", name, subdomain_problems(name))
    if spec.get("nodeName"):
        yield forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")


def _check_ends(
    kind: str, status: Json, before: Json, spec: Json, containers: Sequence[Json] | None
) -> Iterator[Violation]:
    """What has ended does not run again, unless it may restart. Of ephemeral containers (None) none may."""
    if containers is not None and _may_all_restart(spec):
        return
    by_name = {one["name"]: one for one in containers or ()}
    for position, one in enumerate(before.get(kind, ())):
        terminated = one["state"].get("terminated")
        if terminated is None:
            continue
        for now in status.get(kind, ()):
            if now["name"] == one["name"] and "terminated" not in now["state"]:
                container = by_name.get(one["name"])
                if container is None or not _may_restart(container, spec, terminated["exitCode"]):
                    yield forbidden(f"status.{kind}[{position}].state", _NO_RETURN)
                if containers is not None:
                    break


def _may_all_restart(spec: Json) -> bool:
    return any(
        rule.get("action") == _RESTART_ALL
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules", ())
    )


def _may_restart(container: Json, spec: Json, exit_code: int) -> bool:
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules", ()):
            codes = rule.get("exitCodes", {})
            is_in = exit_code in codes.get("values", ())
            if codes.get("operator") == ("In" if is_in else "NotIn"):
                if rule.get("action") in ("Restart", _RESTART_ALL):
                    return True
                break
    policy = policy if policy in ("Always", "OnFailure", "Never") else spec["restartPolicy"]
    return policy != "Never" and (policy != "OnFailure" or exit_code != 0)


def _check_claims(statuses: Sequence[Json], claims: Sequence[Json]) -> Iterator[Violation]:
    names, seen = {one["name"] for one in claims}, set()
    for position, one in enumerate(statuses):
        field, name = f"status.resourceClaimStatuses[{position}].name", one["name"]
        if name not in names:
            yield invalid_text(field, name, "must match the name of an entry in `spec.resourceClaims`")
        if name in seen:
            yield duplicate(field, quoted(name))
        claim = one.get("resourceClaimName")
        if claim is not None:
            path = f"status.resourceClaimStatuses[{position}].resourceClaimName"
            yield from invalid_texts(path, claim, subdomain_problems(claim))
        seen.add(name)


def _check_addresses(kind: str, status: Json, before: Json) -> Iterator[Violation]:
    """New addresses are right, and there is at most one of each family."""
    field = f"status.{kind}"
    addresses = [one["ip"] for one in status.get(kind, ())]
    known = [one["ip"] for one in before.get(kind, ())]
    for position, address in enumerate(addresses):
        if address not in known:
            yield from check_address(f"{field}[{position}]", address)
    if len(addresses) < 2:
        return
    wrong = [position for position, address in enumerate(addresses) if not _is_address(address)]
    if wrong:
        why = f"invalid IP[{wrong[0]}]: {addresses[wrong[0]]}"
        yield internal_error(field, f"failed to check for dual stack with error:{why}")
    if wrong or sorted(map(_is_of_six, addresses)) != [False, True]:
        struct = "PodIP" if kind == "podIPs" else "HostIP"
        detail = "may specify no more than one IP for each IP family"
        yield invalid(field, printing.text(status[kind], f"[{struct}]"), detail)


def _is_address(text: str) -> bool:
    """Whether it is an address, be it one with leading zeros or one that is mapped to IPv6."""
    return not any("must be a valid IP address" in one.message for one in check_address("", text))


def _is_of_six(address: str) -> bool:
    """Whether it is of IPv6; a mapped one is of IPv4."""
    return ":" in address and not any("IPv4-mapped" in one.message for one in check_address("", address))
