"""What the API refuses in a pod template, in its order (C31): the whole, and the fields of the pod itself.

Called by ``job_spec`` and ``pod``; the template is canonical and defaulted. Parts: ``containers``, ``volumes``,
``scheduling``, ``security``, ``network``, ``windows``, and what containers have.

Left out, because hardly anybody meets it, and accepted in whatever form: claims in ephemeral volumes beyond modes
and size; annotations for mirror pods, tolerations, seccomp and AppArmor; forbidding privileged and host-process
containers (a server without ``--allow-privileged``); and the tolerance for odd values that older servers have stored,
other than those of the Job's own selector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mirror.batch.quoting import quoted
from mirror.batch.syntax import label_problems, qualified_name_problems, range_problems, size, subdomain_problems
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
from mirror.embedded.apiserver.apimachinery.canonical import Json
from mirror.embedded.apiserver.apimachinery.printing import text
from mirror.embedded.apiserver.apimachinery.selectors import check_labels
from mirror.embedded.apiserver.validation.metadata import check_annotations
from mirror.embedded.apiserver.validation.pods import (
    containers,
    ephemeral,
    network,
    resources,
    scheduling,
    security,
    volumes,
    windows,
)

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
    yield from scheduling.check_affinity(f"{_SPEC}.affinity", pod, allow_bad_selector_values=allow_bad_selector_values)
    yield from network.check_dns(f"{_SPEC}.dnsConfig", pod)
    yield from _check_gates(pod)
    yield from scheduling.check_spread(f"{_SPEC}.topologySpreadConstraints", pod)
    yield from windows.check_host_process(_SPEC, pod)
    yield from security.check_host_users(_SPEC, pod)
    yield from _check_names(pod)
    yield from scheduling.check_tolerations(f"{_SPEC}.tolerations", pod)
    yield from network.check_host_aliases(f"{_SPEC}.hostAliases", pod)
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
    usable, found = volumes.check(f"{_SPEC}.volumes", pod.get("volumes", ()), is_pod=is_pod)
    yield from found
    yield from _check_claims(f"{_SPEC}.resourceClaims", pod.get("resourceClaims", ()))
    context = containers.Context.of(pod, usable)
    yield from containers.check_main(f"{_SPEC}.containers", pod.get("containers") or (), context)
    yield from containers.check_init(f"{_SPEC}.initContainers", pod.get("initContainers", ()), context)
    yield from ephemeral.check(f"{_SPEC}.ephemeralContainers", pod, context)
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
        yield from network.check_host_ports(f"{_SPEC}.containers", pod)
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
    yield from windows.check_system(_SPEC, pod)


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
