"""Nodes. Their status may be given on create, as a kubelet does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import MappingProxyType

from mirror.batch.quoting import quoted
from mirror.batch.syntax import label_value_problems, qualified_name_problems, size
from mirror.batch.violations import (
    DUPLICATE,
    NEGATIVE,
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported,
    required,
)
from mirror.embedded.apiserver.apimachinery import printing, quantities
from mirror.embedded.apiserver.apimachinery.decoding.syntax import complaint
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import CORE_REFUSAL, Builtin, status_update
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.validation import cidrs, metadata
from mirror.embedded.apiserver.validation.pods.resources import is_counted

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINTS = "scheduler.alpha.kubernetes.io/taints"
_LONGEST_FEATURE = 253
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*", re.ASCII)
_FEATURE_FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or"
    " MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)
_ROLE_PREFIX, _ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


class Nodes(Builtin):
    """Cluster-scoped."""

    struct = "Node"
    is_namespaced = False
    selectable = MappingProxyType(
        {"spec.unschedulable": lambda body: "true" if body["spec"].get("unschedulable") else "false"}
    )
    selector_refusal = CORE_REFUSAL
    columns = (
        printers.NAME,
        Column("Status", description="The status of the node"),
        Column("Roles", description="The roles of the node"),
        printers.AGE,
        Column("Version", description=TEXTS["NODE_KUBELET"]),
        Column("Internal-IP", priority=1, description=TEXTS["NODE_ADDRESSES"]),
        Column("External-IP", priority=1, description=TEXTS["NODE_ADDRESSES"]),
        Column("OS-Image", priority=1, description=TEXTS["NODE_OS"]),
        Column("Kernel-Version", priority=1, description=TEXTS["NODE_KERNEL"]),
        Column("Container-Runtime", priority=1, description=TEXTS["NODE_RUNTIME"]),
    )

    def __init__(self) -> None:
        self.subresources = {"status": status_update(self, check=_check_update, takes=_without_config)}

    def default(self, body: Json, context: Context) -> None:
        capacity = body["status"].get("capacity")
        if capacity and "allocatable" not in body["status"]:
            body["status"]["allocatable"] = dict(capacity)
        _pair_ranges(body["spec"])

    def prepare_create(self, body: Json, context: Context) -> Json:
        status = body["status"]
        body = super().prepare_create(body, context)
        status.pop("config", None)
        body["status"] = status
        body["spec"].pop("configSource", None)
        return body

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        if "configSource" not in old["spec"]:
            new["spec"].pop("configSource", None)
        return new

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        spec = body["spec"]
        if problem := complaint(body["metadata"].get("annotations", {}).get(_TAINTS, "[]").encode() or b"[]"):
            yield invalid_text("metadata.annotations", _TAINTS, problem)
        yield from _check_taints(spec.get("taints", ()))
        yield from _check_resources(body["status"])
        swap = body["status"].get("nodeInfo", {}).get("swap", {}).get("capacity")
        if swap is not None and swap <= 0:
            # The server has it under metadata, by mistake.
            yield invalid("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero")
        yield from _check_features(body["status"].get("declaredFeatures", ()))
        yield from cidrs.check_list("spec.podCIDRs", spec.get("podCIDRs", ()))

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [
            *self.check_meta(new),
            *self.check(new, context),
            *metadata.check_meta_update(new, old),
            *_check_update(new, old, context),
        ]

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        found = []
        if "configSource" in new["spec"]:
            found.append("spec.configSource: the feature is removed")
        if new["spec"].get("externalID"):
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        return found

    def cells(self, body: Json, now: datetime) -> list[object]:
        spec, status = body["spec"], body["status"]
        info = status.get("nodeInfo", {})
        kernel, architecture = info.get("kernelVersion") or printers.UNKNOWN, info.get("architecture")
        return [
            body["metadata"]["name"],
            ",".join([_readiness(status), *(["SchedulingDisabled"] if spec.get("unschedulable") else [])]),
            ",".join(_roles(body["metadata"].get("labels", {}))) or printers.NONE,
            printers.age(body, now),
            info.get("kubeletVersion", ""),
            _address(status, "InternalIP"),
            _address(status, "ExternalIP"),
            info.get("osImage") or printers.UNKNOWN,
            f"{kernel} ({architecture})" if architecture else kernel,
            info.get("containerRuntimeVersion") or printers.UNKNOWN,
        ]


def _pair_ranges(spec: Json) -> None:
    """``podCIDR`` is the first of ``podCIDRs``; where they differ, the single one wins."""
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not ranges or ranges[0] != first):
        spec["podCIDRs"] = [first]
    elif ranges:
        spec["podCIDR"] = ranges[0]


def _without_config(new: Json, old: Json, context: Context) -> Json:
    if "config" not in old["status"]:
        new["status"].pop("config", None)
    return new


def _check_update(new: Json, old: Json, context: Context) -> Iterator[Violation]:
    """What an update of a node or its status may change, beside the rules of metadata."""
    spec, old_spec, status = new["spec"], old["spec"], new["status"]
    yield from _check_resources(status)
    yield from _check_features(status.get("declaredFeatures", ()))
    seen: list[Json] = []
    for position, address in enumerate(status.get("addresses", ())):
        if address in seen:
            printed = printing.text(address, "NodeAddress")
            yield Violation(f"status.addresses[{position}]", DUPLICATE, f"Duplicate value: {printed}")
        seen.append(address)
    ranges, old_ranges = spec.get("podCIDRs", []), old_spec.get("podCIDRs", [])
    if old_ranges:
        changes = 1 if len(ranges) != len(old_ranges) else sum(map(str.__ne__, ranges, old_ranges))
        for _ in range(changes):
            yield forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if old_spec.get("providerID") and old_spec["providerID"] != spec.get("providerID"):
        yield forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
    yield from _check_taints(spec.get("taints", ()))
    if spec.get("externalID", "") != old_spec.get("externalID", ""):
        yield forbidden("spec.externalID", "may not be updated")


def _check_taints(taints: Sequence[Json]) -> Iterator[Violation]:
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        # The server has them under metadata, by mistake.
        field, effect, value = f"metadata.taints[{position}]", taint["effect"], taint.get("value", "")
        yield from invalid_texts(f"{field}.key", taint["key"], qualified_name_problems(taint["key"]))
        if problems := label_value_problems(value):
            yield invalid_text(f"{field}.value", value, ";".join(problems))
        if not effect:
            yield required(f"{field}.effect")
        elif effect not in _EFFECTS:
            yield not_supported(f"{field}.effect", effect, _EFFECTS)
        if (taint["key"], effect) in seen:
            detail = "taints must be unique by key and effect pair"
            yield Violation(field, DUPLICATE, f"Duplicate value: {printing.text(taint, 'Taint')}: {detail}")
        seen.add((taint["key"], effect))


def _check_resources(status: Json) -> Iterator[Violation]:
    for part in ("capacity", "allocatable"):
        for name, text in status.get(part, {}).items():
            amount = quantities.parse(text)
            if amount is not None and amount.nano < 0:
                yield invalid_text(f"status.{part}.{name}", amount.text, NEGATIVE)
            if amount is not None and is_counted(name) and not amount.is_whole:
                yield invalid_text(f"status.{part}.{name}", amount.text, "must be an integer")


def _check_features(names: Sequence[str]) -> Iterator[Violation]:
    field = "status.declaredFeatures"
    for position, name in enumerate(names):
        if size(name) > _LONGEST_FEATURE:
            told = f"invalid feature name {quoted(name)}: must be no more than {_LONGEST_FEATURE} characters"
            yield invalid_text(f"{field}[{position}]", name, told)
        elif not _FEATURE.fullmatch(name):
            yield invalid_text(f"{field}[{position}]", name, f"invalid feature name {quoted(name)}: {_FEATURE_FORM}")
        after = names[position + 1] if position + 1 < len(names) else None
        if after == name:
            yield duplicate(f"{field}[{position + 1}]", quoted(name))
        elif after is not None and name > after:
            yield invalid_text(f"{field}[{position + 1}]", after, "list must be sorted alphabetically")


def _readiness(status: Json) -> str:
    ready = [one for one in status.get("conditions", ()) if one["type"] == "Ready"]
    if not ready:
        return "Unknown"
    return "Ready" if ready[-1]["status"] == "True" else "NotReady"


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get(_ROLE_LABEL, "")}) - {""})


def _address(status: Json, kind: str) -> str:
    found = (one["address"] for one in status.get("addresses", ()) if one["type"] == kind)
    return next(found, printers.NONE)


def kind() -> Kind:
    """``v1`` ``nodes``."""
    return Kind("", "v1", "Node", "nodes", Nodes(), singular="node", short_names=("no",), is_namespaced=False)
