"""What an API server warns of in a pod template (DF17): deprecated labels, things said twice, fractions of bytes.

The template is canonical and the rules accept it. Left out: claims in ephemeral volumes, seccomp and AppArmor
annotations, addresses in odd forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from mirror.batch.quoting import quoted
from mirror.batch.syntax import label_value_problems
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.errors import Json

_OLD_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": ('deprecated since v1.17; use "topology.kubernetes.io/region" instead'),
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_OLD_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_MISSPELT = {"storageos": "storageOS"}
_BYTES = ("memory", "ephemeral-storage")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def template_warnings(path: str, template: Json) -> Iterator[str]:
    """All texts, in the server's order."""
    pod, spec = template["spec"], f"{path}.spec"
    yield from _label_warnings(spec, pod)
    annotations = template["metadata"].get("annotations", {})
    for key in _OLD_ANNOTATIONS:
        if key in annotations:
            yield f"{path}.metadata.annotations[{key}]: {_OLD_ANNOTATIONS[key]}"
    for position, volume in enumerate(pod.get("volumes", ())):
        for kind in _OLD_VOLUMES:
            if kind in volume:
                yield f"{spec}.volumes[{position}].{_MISSPELT.get(kind, kind)}: {_OLD_VOLUMES[kind]}"
    yield from overlap_warnings(pod.get("volumes", ()))
    yield from _repeated(f"{spec}.hostAliases", "ip", pod.get("hostAliases", ()))
    yield from _repeated(f"{spec}.imagePullSecrets", "name", pod.get("imagePullSecrets", ()))
    for position, secret in enumerate(pod.get("imagePullSecrets", ())):
        if not secret.get("name"):
            yield f'{spec}.imagePullSecrets[{position}].name: invalid empty name ""'
    yield from _fractions(f"{spec}.overhead", pod.get("overhead", {}))
    containers = _containers(spec, pod)
    for where, container in containers:
        for resource in _BYTES:
            for kind in ("limits", "requests"):
                amounts = container["resources"].get(kind, {})
                yield from _fractions(f"{where}.resources.{kind}", amounts, (resource,))
        yield from _hidden_variables(f"{where}.env", container.get("env", ()))
    yield from _port_warnings(containers)
    yield from _port_name_warnings(containers)
    if pod["terminationGracePeriodSeconds"] < 0:
        yield (
            f"{spec}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    yield from _affinity_warnings(f"{spec}.affinity", pod.get("affinity", {}))


def _label_warnings(spec: str, pod: Json) -> Iterator[str]:
    for key in sorted(pod.get("nodeSelector", {})):
        if key in _OLD_LABELS:
            yield f"{spec}.nodeSelector[{key}]: {_OLD_LABELS[key]}"
    node = pod.get("affinity", {}).get("nodeAffinity", {})
    path = f"{spec}.affinity.nodeAffinity"
    for position, term in enumerate(node.get(_REQUIRED, {}).get("nodeSelectorTerms") or ()):
        yield from _node_term_warnings(f"{path}.{_REQUIRED}.nodeSelectorTerms[{position}]", term)
    for position, weighted in enumerate(node.get(_PREFERRED, ())):
        where = f"{path}.{_PREFERRED}[{position}].preference"
        yield from _node_term_warnings(where, weighted["preference"], with_values=True)
    for position, constraint in enumerate(pod.get("topologySpreadConstraints", ())):
        where, key = f"{spec}.topologySpreadConstraints[{position}]", constraint["topologyKey"]
        if key in _OLD_LABELS:
            yield f"{where}.topologyKey: {key} is {_OLD_LABELS[key]}"
        if "labelSelector" not in constraint:
            yield f"{where}.labelSelector: {_NO_SELECTOR}"


def _node_term_warnings(path: str, term: Json, *, with_values: bool = False) -> Iterator[str]:
    for position, expression in enumerate(term.get("matchExpressions", ())):
        where, key = f"{path}.matchExpressions[{position}]", expression["key"]
        if key in _OLD_LABELS:
            yield f"{where}.key: {key} is {_OLD_LABELS[key]}"
        for number, value in enumerate(expression.get("values", ())) if with_values else ():
            for problem in label_value_problems(value):
                yield f"{where}.values[{number}]: {value} is invalid, {problem}"


def _repeated(path: str, name: str, items: Sequence[Json]) -> Iterator[str]:
    seen: set[str] = set()
    for position, item in enumerate(items):
        value = item.get(name, "")
        if value in seen:
            yield f"{path}[{position}].{name}: duplicate {name} {quoted(value)}"
        seen.add(value)


def _fractions(path: str, amounts: Json, resources: Sequence[str] = _BYTES) -> Iterator[str]:
    for resource in resources:
        amount = quantities.parse(amounts[resource]) if resource in amounts else None
        if amount is not None and not amount.is_whole:
            yield f"{path}[{resource}]: fractional byte value {quoted(amount.text)} is invalid, must be an integer"


def _containers(spec: str, pod: Json) -> list[tuple[str, Json]]:
    return [
        (f"{spec}.{kind}[{position}]", container)
        for kind in ("initContainers", "containers")
        for position, container in enumerate(pod.get(kind) or ())
    ]


def _hidden_variables(path: str, variables: Sequence[Json]) -> Iterator[str]:
    """A variable that is set again is fine only if its new value is made of the old one."""
    seen: set[str] = set()
    for position, variable in enumerate(variables):
        name, value = variable["name"], variable.get("value", "")
        own = f"$({name})"
        if name in seen and ("valueFrom" in variable or value == own or own not in value):
            text = f"hides previous definition of {quoted(name)}, which may be dropped when using apply"
            yield f"{path}[{position}]: {text}"
        seen.add(name)


def _port_warnings(containers: Sequence[tuple[str, Json]]) -> Iterator[str]:
    known: dict[str, _SamePorts] = {}
    for where, container in containers:
        for position, port in enumerate(container.get("ports", ())):
            path = f"{where}.ports[{position}]"
            host_ip, host_port = port.get("hostIP", ""), port.get("hostPort", 0)
            if host_ip and not host_port:
                printed = f"{port.get('name', '')} HostPort:0 ContainerPort:{port['containerPort']}"
                printed = f"{{Name:{printed} Protocol:{port['protocol']} HostIP:{host_ip}}}"
                yield f"{path}: hostIP set without hostPort: {printed}"
            others = known.setdefault(f"{port['containerPort']}/{port['protocol']}", _SamePorts())
            for other_path, other in others.near(host_ip, host_port):
                other_ip, other_port = other.get("hostIP", ""), other.get("hostPort", 0)
                if (host_ip, host_port) == (other_ip, other_port):
                    yield f"{path}: duplicate port definition with {other_path}"
                elif not host_port or not other_port:
                    yield f"{path}: overlapping port definition with {other_path}"
                elif host_port == other_port and bool(host_ip) != bool(other_ip):
                    yield f"{path}: dangerously ambiguous port definition with {other_path}"
            others.add(path, port)


class _SamePorts:
    """Definitions of one port of containers, so that a new one meets only those of which something is to be said."""

    def __init__(self) -> None:
        self._all: list[tuple[str, Json]] = []
        self._of_port: dict[int, list[int]] = {}
        self._of_address: dict[tuple[int, str], list[int]] = {}
        self._with_address: dict[int, list[int]] = {}

    def near(self, host_ip: str, host_port: int) -> Iterator[tuple[str, Json]]:
        """Those that may be said to meet it, in their order."""
        if not host_port:
            yield from list(self._all)
            return
        found = {*self._of_port.get(0, ()), *self._of_address.get((host_port, host_ip), ())}
        found.update(self._of_address.get((host_port, ""), ()) if host_ip else self._with_address.get(host_port, ()))
        for number in sorted(found):
            yield self._all[number]

    def add(self, path: str, port: Json) -> None:
        """One more."""
        host_ip, host_port, number = port.get("hostIP", ""), port.get("hostPort", 0), len(self._all)
        self._all.append((path, port))
        self._of_port.setdefault(host_port, []).append(number)
        self._of_address.setdefault((host_port, host_ip), []).append(number)
        if host_ip:
            self._with_address.setdefault(host_port, []).append(number)


def _port_name_warnings(containers: Sequence[tuple[str, Json]]) -> Iterator[str]:
    known: dict[str, str] = {}
    for where, container in containers:
        for position, port in enumerate(container.get("ports", ())):
            path, name = f"{where}.ports[{position}]", port.get("name", "")
            if name in known:
                first = known[name]
                text = f"duplicate port name {quoted(name)} with {first}"
                yield f"{path}: {text}, services and probes that select ports by name will use {first}"
            elif name:
                known[name] = path


def _affinity_warnings(path: str, affinity: Json) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(kind, {})
        for position, term in enumerate(part.get(_REQUIRED, ())):
            if "labelSelector" not in term:
                yield f"{path}.{kind}.{_REQUIRED}[{position}].labelSelector: {_NO_SELECTOR}"
        for position, weighted in enumerate(part.get(_PREFERRED, ())):
            if "labelSelector" not in weighted["podAffinityTerm"]:
                yield f"{path}.{kind}.{_PREFERRED}[{position}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


# Files in one volume that are in one place, or one below another.

_MOST_OVERLAPS = 1000
"""With one path; no answer has room for more."""
_Place: TypeAlias = tuple[str, str]
"""A path, and where its file comes from if that must be said."""


def overlap_warnings(volumes: Sequence[Json]) -> Iterator[str]:
    """All texts about these volumes, in the server's order."""
    for volume in volumes:
        name = quoted(volume["name"])
        for words, source in _plain_sources(volume):
            for overlap in _overlaps([(item["path"], "") for item in source.get("items", ())]):
                yield f"volume {name} ({words}): overlapping paths: {overlap}"
        sources = volume.get("projected", {}).get("sources") or ()
        for _ in (one for one in sources if not one):
            yield f"volume {name} (Projected) has no sources provided"
        for overlap in _overlaps([place for one in sources for place in _projected(one)]):
            yield f"volume {name} (Projected): overlapping paths: {overlap}"


def _plain_sources(volume: Json) -> Iterator[tuple[str, Json]]:
    if "configMap" in volume:
        yield f"ConfigMap {quoted(volume['configMap'].get('name', ''))}", volume["configMap"]
    if "secret" in volume:
        yield f"Secret {quoted(volume['secret'].get('secretName', ''))}", volume["secret"]
    if "downwardAPI" in volume:
        yield "DownwardAPI", volume["downwardAPI"]


def _projected(source: Json) -> list[_Place]:
    for kind, words in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = source.get(kind, {}).get("items")
        if items:
            origin = f"{words} {quoted(source[kind].get('name', ''))}"
            return [(item["path"], origin) for item in items]
    items = source.get("downwardAPI", {}).get("items")
    if items:
        return [(item["path"], "DownwardAPI") for item in items]
    return [(source["serviceAccountToken"]["path"], "ServiceAccountToken")] if "serviceAccountToken" in source else []


class _Node:
    """A segment of paths: the places whose path ends here, and what is below."""

    __slots__ = ("below", "places")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.places: list[int] = []


def _overlaps(places: Sequence[_Place]) -> Iterator[str]:
    """Pairs of which one is the other's path or above it; found in a tree, since there may be thousands."""
    root, known = _Node(), [(path.rstrip("/"), origin) for path, origin in places]
    for number, (path, origin) in enumerate(known):
        if not path:
            continue
        node, met = root, []
        for segment in path.split("/"):
            met += node.places
            node = node.below.setdefault(segment, _Node())
        met += islice(_within(node), _MOST_OVERLAPS)
        for other in sorted(met):
            yield f"{_shown(path, origin)} with {_shown(*known[other])}"
        node.places.append(number)


def _within(node: _Node) -> Iterator[int]:
    """All places here and below."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield from one.places
        waiting += one.below.values()


def _shown(path: str, origin: str) -> str:
    return f"{quoted(path)} ({origin})" if origin else quoted(path)
