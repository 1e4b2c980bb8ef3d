"""What the API refuses in pod templates and pods, in its order (C31): the whole, and the fields of the pod itself.

The template is canonical and defaulted. Parts: ``containers``, ``volumes``, ``scheduling``, ``security``, and what
containers have (``env``, ``resources``).

Left out, because hardly anybody meets it, and accepted in whatever form: claims in ephemeral volumes beyond modes
and size; annotations for mirror pods, tolerations, seccomp and AppArmor; forbidding privileged and host-process
containers (a server without ``--allow-privileged``); and the tolerance for odd values that older servers have stored,
other than those of the Job's own selector.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mirror.batch.quoting import json_texts, quoted
from mirror.batch.syntax import (
    label_problems,
    qualified_name_problems,
    range_problems,
    search_domain_problems,
    size,
    subdomain_problems,
)
from mirror.batch.violations import (
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_found,
    one_of,
    required,
    too_long,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.printing import text
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.metadata import check_annotations, check_labels
from mirror.embedded.apiserver.validation.pods import containers, resources, scheduling, security, volumes

_SPEC = "spec.template.spec"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_INTEGER = re.compile(r"-0*[0-9]{1,10}|0|[1-9][0-9]{0,9}")
_LARGEST = 2**31 - 1
_LONGEST_HOSTNAME = 64


def check(template: Json, *, allow_bad_selector_values: bool, is_pod: bool = False) -> Iterator[Violation]:
    """All rules of a pod template."""
    meta, pod = template["metadata"], template["spec"]
    yield from check_labels("spec.template.labels", meta.get("labels"))
    yield from check_annotations("spec.template.annotations", meta.get("annotations"))
    yield from _check_deletion_cost(meta.get("annotations", {}))
    yield from _check_contents(pod, is_pod=is_pod)
    yield from _check_policies(pod)
    yield from security.check_pod(f"{_SPEC}.securityContext", pod)
    if "affinity" in pod:
        yield from scheduling.check_affinity(
            f"{_SPEC}.affinity", pod["affinity"], allow_bad_selector_values=allow_bad_selector_values
        )
    yield from check_dns(f"{_SPEC}.dnsConfig", pod)
    yield from _check_gates(pod)
    if "topologySpreadConstraints" in pod:
        yield from scheduling.check_spread(f"{_SPEC}.topologySpreadConstraints", pod["topologySpreadConstraints"])
    yield from security.check_host_process(_SPEC, pod)
    yield from security.check_host_users(_SPEC, pod)
    yield from _check_names(pod)
    if "tolerations" in pod:
        yield from scheduling.check_tolerations(f"{_SPEC}.tolerations", pod["tolerations"])
    yield from check_host_aliases(f"{_SPEC}.hostAliases", pod)
    yield from _check_classes(pod)
    yield from _check_file_volumes(pod)
    if pod.get("ephemeralContainers"):
        yield forbidden(f"{_SPEC}.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _check_deletion_cost(annotations: dict[str, str]) -> Iterator[Violation]:
    cost = annotations.get(_DELETION_COST)
    if cost is None or (_INTEGER.fullmatch(cost) and -_LARGEST - 1 <= int(cost) <= _LARGEST):
        return
    yield invalid_text(f"spec.template.annotations[{_DELETION_COST}]", cost, "must be a 32bit integer")


def _check_contents(pod: Json, *, is_pod: bool) -> Iterator[Violation]:
    """Volumes, claims and containers."""
    usable: Mapping[str, Json] = {}
    if "volumes" in pod:
        usable, found = volumes.check(f"{_SPEC}.volumes", pod["volumes"], is_pod=is_pod)
        yield from found
    yield from _check_claims(f"{_SPEC}.resourceClaims", pod.get("resourceClaims", ()))
    context = containers.Context.of(pod, usable)
    yield from containers.check_main(f"{_SPEC}.containers", pod.get("containers") or (), context)
    yield from containers.check_init(f"{_SPEC}.initContainers", pod.get("initContainers", ()), context)
    yield from containers.check(f"{_SPEC}.ephemeralContainers", pod, context)
    if "resources" in pod:
        yield from resources.check_pod(f"{_SPEC}.resources", pod, context.claims)


def _check_claims(field: str, claims: list[Json]) -> Iterator[Violation]:
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        path, name = f"{field}[{position}]", claim["name"]
        if not name:
            yield required(f"{path}.name")
        elif name in seen:
            yield duplicate(f"{path}.name", quoted(name))
        else:
            yield from invalid_texts(f"{path}.name", name, label_problems(name))
            seen.add(name)
        sources = [one for one in ("resourceClaimName", "resourceClaimTemplateName") if one in claim]
        if len(sources) != 1:
            many = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            none = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(path, text(claim, "PodResourceClaim"), many if sources else none)
        for one in sources:
            yield from invalid_texts(f"{path}.{one}", claim[one], subdomain_problems(claim[one]))


def _check_policies(pod: Json) -> Iterator[Violation]:
    if pod.get("hostNetwork"):
        yield from check_host_ports(f"{_SPEC}.containers", pod)
    yield from one_of(f"{_SPEC}.restartPolicy", pod["restartPolicy"], _RESTART_POLICIES)
    yield from one_of(f"{_SPEC}.dnsPolicy", pod["dnsPolicy"], _DNS_POLICIES)
    yield from check_labels(f"{_SPEC}.nodeSelector", pod.get("nodeSelector"))


def _check_gates(pod: Json) -> Iterator[Violation]:
    for position, gate in enumerate(pod.get("readinessGates", ())):
        kind = gate["conditionType"]
        field = f"{_SPEC}.readinessGates[{position}].conditionType"
        yield from invalid_texts(field, kind, qualified_name_problems(kind))
    seen: set[str] = set()
    for position, gate in enumerate(pod.get("schedulingGates", ())):
        field, name = f"{_SPEC}.schedulingGates[{position}]", gate["name"]
        yield from invalid_texts(field, name, qualified_name_problems(name))
        if name in seen:
            yield duplicate(field, quoted(name))
        seen.add(name)


def _check_names(pod: Json) -> Iterator[Violation]:
    """Host names, accounts, nodes, and how long a pod may run."""
    yield from _check_hostname_override(pod)
    for name in ("serviceAccountName", "nodeName"):
        if name in pod:
            yield from invalid_texts(f"{_SPEC}.{name}", pod[name], subdomain_problems(pod[name]))
    deadline = pod.get("activeDeadlineSeconds")
    if deadline is not None:
        for problem in range_problems(deadline, 1, _LARGEST):
            yield invalid(f"{_SPEC}.activeDeadlineSeconds", deadline, problem)
    for name in ("hostname", "subdomain"):
        if name in pod:
            yield from invalid_texts(f"{_SPEC}.{name}", pod[name], label_problems(pod[name]))


def _check_hostname_override(pod: Json) -> Iterator[Violation]:
    hostname, field = pod.get("hostnameOverride"), f"{_SPEC}.hostnameOverride"
    if hostname is None:
        return
    if pod.get("setHostnameAsFQDN"):
        yield forbidden(field, "may not be specified when setHostnameAsFQDN is true")
    if pod.get("hostNetwork"):
        yield forbidden(field, "may not be specified when hostNetwork is true")
    if size(hostname) > _LONGEST_HOSTNAME:
        yield too_long(field, _LONGEST_HOSTNAME)
    yield from invalid_texts(field, hostname, subdomain_problems(hostname))


def _check_classes(pod: Json) -> Iterator[Violation]:
    """Priority, runtime, preemption, overhead and operating system."""
    for name in ("priorityClassName", "runtimeClassName"):
        if name in pod:
            yield from invalid_texts(f"{_SPEC}.{name}", pod[name], subdomain_problems(pod[name]))
    if "preemptionPolicy" in pod:
        supported = ("PreemptLowerPriority", "Never")
        yield from one_of(f"{_SPEC}.preemptionPolicy", pod["preemptionPolicy"], supported)
    if "overhead" in pod:
        yield from resources.check_container(f"{_SPEC}.overhead", {"limits": pod["overhead"]}, frozenset())
    if "os" in pod:
        yield from security.check_system(_SPEC, pod)


def _check_file_volumes(pod: Json) -> Iterator[Violation]:
    """Variables that are read from a file need a volume of the pod's own for it."""
    sources = {one["name"]: one for one in pod.get("volumes", ())}
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(pod.get(kind) or ()):
            for position, variable in enumerate(container.get("env", ())):
                file = variable.get("valueFrom", {}).get("fileKeyRef")
                if file is None:
                    continue
                field = f"{_SPEC}.{kind}[{number}].env[{position}].valueFrom.fileKeyRef.volumeName"
                name = file["volumeName"]
                if name not in sources:
                    yield not_found(field, name)
                elif "emptyDir" not in sources[name]:
                    yield invalid_text(field, name, "referenced volume must be of type emptyDir")


# DNS, host aliases, ports of the node.

_ZEROS = re.compile(r"(?<![0-9a-fA-F])0+(?=[0-9])")
"""Leading zeros of the decimal parts of an address, which older parsers ignored."""
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048


def check_dns(field: str, pod: Json) -> Iterator[Violation]:
    """Name servers and search domains; without a policy there must be some."""
    config: Json | None = pod.get("dnsConfig")
    if config is None:
        if pod["dnsPolicy"] == "None":
            yield required(field, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers: Sequence[str] = config.get("nameservers", ())
    if pod["dnsPolicy"] == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{field}.nameservers", detail)
        return
    if len(servers) > _MOST_SERVERS:
        detail = f"must not have more than {_MOST_SERVERS} nameservers"
        yield invalid(f"{field}.nameservers", json_texts(servers), detail)
    for position, server in enumerate(servers):
        yield from check_address(f"{field}.nameservers[{position}]", server)
    yield from _check_searches(f"{field}.searches", config.get("searches", ()))
    for position, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            yield required(f"{field}.options[{position}]", "must not be empty")


def check_host_aliases(field: str, pod: Json) -> Iterator[Violation]:
    """Lines for the hosts file."""
    for position, alias in enumerate(pod.get("hostAliases", ())):
        yield from check_address(f"{field}[{position}].ip", alias["ip"])
        for number, name in enumerate(alias.get("hostnames", ())):
            yield from invalid_texts(f"{field}[{position}].hostnames[{number}]", name, subdomain_problems(name))


def check_host_ports(field: str, pod: Json) -> Iterator[Violation]:
    """On the network of the node, a port of a container is the node's."""
    for position, container in enumerate(pod.get("containers") or ()):
        for number, port in enumerate(container.get("ports", ())):
            host_port = port.get("hostPort", 0)
            if host_port and host_port != port["containerPort"]:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{field}[{position}].ports[{number}].hostPort", host_port, detail)


def _check_searches(field: str, searches: Sequence[str]) -> Iterator[Violation]:
    if len(searches) > _MOST_SEARCHES:
        yield invalid(field, json_texts(searches), f"must not have more than {_MOST_SEARCHES} search paths")
    if size(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid(field, json_texts(searches), detail)
    for position, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from invalid_texts(f"{field}[{position}]", name, search_domain_problems(name))


def check_address(field: str, address: str) -> Iterator[Violation]:
    """An IP address, written without leading zeros and not as one of the other family."""
    if "%" not in address:
        plain = _ZEROS.sub("", address) if "." in address else address
        try:
            found = ipaddress.ip_address(plain)
        except ValueError:
            pass
        else:
            if plain != address:
                yield invalid_text(field, address, "must not have leading 0s")
            elif isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
                yield invalid_text(field, address, "must not be an IPv4-mapped IPv6 address")
            return
    yield invalid_text(field, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


# Pods: the rules of templates under a pod's paths, and those that only pods have.

MIRROR, DELETION_COST = "kubernetes.io/config.mirror", "controller.kubernetes.io/pod-deletion-cost"
_TEMPLATE, _OF_TEMPLATES = "spec.template.", "spec.template.spec.ephemeralContainers"


def check_create(pod: Json) -> Iterator[Violation]:
    """A new pod."""
    spec = pod["spec"]
    yield from check_pod(pod)
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def check_pod(pod: Json) -> Iterator[Violation]:
    """Metadata and spec of any pod."""
    spec = pod["spec"]
    yield from metadata.check_meta(pod["metadata"])
    yield from check_pod_annotations(pod["metadata"].get("annotations", {}), spec)
    yield from check_spec(spec)
    if not spec.get("serviceAccountName"):
        yield from _check_token_volumes(spec)
    for kind in ("containers", "initContainers"):
        yield from _check_images(f"spec.{kind}", spec.get(kind) or ())


def check_spec(spec: Json) -> Iterator[Violation]:
    """The rules that templates have, too."""
    for violation in check({"metadata": {}, "spec": spec}, allow_bad_selector_values=False, is_pod=True):
        if violation.field != _OF_TEMPLATES:
            yield replace(violation, field=violation.field.removeprefix(_TEMPLATE))


def check_pod_annotations(annotations: Mapping[str, str], spec: Json) -> Iterator[Violation]:
    """Annotations that mean something to the server."""
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid_text(f"metadata.annotations[{MIRROR}]", annotations[MIRROR], detail)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not (_INTEGER.fullmatch(cost) and -_LARGEST - 1 <= int(cost) <= _LARGEST):
        yield invalid_text(f"metadata.annotations[{DELETION_COST}]", cost, "must be a 32bit integer")


def _check_token_volumes(spec: Json) -> Iterator[Violation]:
    for position, volume in enumerate(spec.get("volumes", ())):
        for number, source in enumerate(volume.get("projected", {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                field = f"spec.volumes[{position}].projected.sources[{number}].serviceAccountToken"
                yield forbidden(field, "must not be specified when serviceAccountName is not set")


def _check_images(field: str, containers: Sequence[Json]) -> Iterator[Violation]:
    for position, container in enumerate(containers):
        image = container.get("image", "")
        if image != image.strip():
            yield invalid_text(f"{field}[{position}].image", image, "must not have leading or trailing whitespace")
