"""What the API refuses about a pod's operating system: Windows options, and what does not go with a system (C31)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mirror.batch.quoting import json_text
from mirror.batch.syntax import size, subdomain_problems
from mirror.batch.violations import Violation, forbidden, invalid, not_supported, required
from mirror.embedded.apiserver.apimachinery.canonical import Json

SYSTEMS = ("linux", "windows")
_LONGEST_SPEC_KIB = 64
_LONGEST_DOMAIN, _LONGEST_USER = 256, 104
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r"""[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}""")
_DNS_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_BAD_CHARACTERS = frozenset('"/\\:;|=,+*?<>@[]')
_NOT_IN_WINDOWS = (
    "appArmorProfile",
    "seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "shareProcessNamespace",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_OF_PODS = frozenset(("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"))
"""Which of these are fields of the pod, and not of its security context."""
_NOT_IN_WINDOWS_CONTAINERS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def check_system(path: str, pod: Json) -> Iterator[Violation]:
    """Whether the pod fits the system that it names."""
    system = pod.get("os", {}).get("name")
    match system:
        case None:
            return
        case "":
            yield required(f"{path}.os.name")
        case "linux":
            for where, owner in _owners(path, pod):
                if "windowsOptions" in owner.get("securityContext", {}):
                    field = f"{where}.securityContext.windowsOptions"
                    yield forbidden(field, "windows options cannot be set for a linux pod")
        case "windows":
            yield from _check_windows(path, pod)
        case _:
            yield not_supported(f"{path}.os", system, SYSTEMS)


def check_options(field: str, options: Json | None) -> Iterator[Violation]:
    """Credentials and the user of a Windows process."""
    if options is None:
        return
    name, spec = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    for problem in () if name is None else subdomain_problems(name):
        yield invalid(f"{field}.gmsaCredentialSpecName", json_text(name or ""), problem)
    if spec is not None and not spec:
        yield invalid(f"{field}.gmsaCredentialSpec", '""', "gmsaCredentialSpec cannot be an empty string")
    elif spec is not None and size(spec) > _LONGEST_SPEC_KIB * 1024:
        detail = f"gmsaCredentialSpec size must be under {_LONGEST_SPEC_KIB} KiB"
        yield invalid(f"{field}.gmsaCredentialSpec", json_text(spec), detail)
    user = options.get("runAsUserName")
    for problem in () if user is None else _user_problems(user):
        yield invalid(f"{field}.runAsUserName", json_text(user or ""), f"runAsUserName{problem}")


def check_host_process(path: str, pod: Json) -> Iterator[Violation]:
    """Windows processes of the node: all containers or none, and on the node's network."""
    of_pod = _host_process(pod)
    inherited = []
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(pod.get(kind) or ()):
            own = _host_process(container)
            if of_pod is not None and own is not None and own != of_pod:
                field = f"{path}.{kind}[{position}].securityContext.windowsOptions.hostProcess"
                was = "true" if of_pod else "false"
                detail = f"pod hostProcess value must be identical if both are specified, was {was}"
                yield invalid(field, "true" if own else "false", detail)
            inherited.append(bool(of_pod if own is None else own))
    if not any(inherited):
        return
    if not all(inherited):
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, '""', detail)
    if not pod.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(f"{path}.hostNetwork", "false", detail)


def _host_process(owner: Json) -> bool | None:
    found: bool | None = owner.get("securityContext", {}).get("windowsOptions", {}).get("hostProcess")
    return found


def _check_windows(path: str, pod: Json) -> Iterator[Violation]:
    detail = "cannot be set for a windows pod"
    (_, _), *containers = _owners(path, pod)
    for name in _NOT_IN_WINDOWS:
        owner = pod if name in _OF_PODS else pod["securityContext"]
        if name in owner:
            yield forbidden(f"{path}.{name}" if name in _OF_PODS else f"{path}.securityContext.{name}", detail)
    for where, container in containers:
        for name in _NOT_IN_WINDOWS_CONTAINERS:
            if name in container.get("securityContext", {}):
                yield forbidden(f"{where}.securityContext.{name}", detail)


def _owners(path: str, pod: Json) -> list[tuple[str, Json]]:
    """All that has a security context: the pod, then its containers."""
    return [
        (path, pod),
        *(
            (f"{path}.{kind}[{position}]", container)
            for kind in ("initContainers", "containers")
            for position, container in enumerate(pod.get(kind) or ())
        ),
    ]


def _user_problems(name: str) -> Iterator[str]:
    parts = name.split("\\")
    if not name:
        yield " cannot be an empty string"
    elif _CONTROL.search(name):
        yield " cannot contain control characters"
    elif len(parts) > 2:
        yield " cannot contain more than one backslash"
    else:
        yield from _domain_problems(parts[0] if len(parts) == 2 else None)
        yield from _account_problems(parts[-1])


def _domain_problems(domain: str | None) -> Iterator[str]:
    if domain is None:
        return
    if size(domain) >= _LONGEST_DOMAIN:
        yield f"'s Domain length must be under {_LONGEST_DOMAIN} characters"
    if not _NETBIOS.fullmatch(domain) and not _DNS.fullmatch(domain):
        yield "'s Domain doesn't match the NetBios nor the DNS format"


def _account_problems(user: str) -> Iterator[str]:
    if not user:
        yield "'s User cannot be empty"
    elif size(user) > _LONGEST_USER:
        yield f"'s User length must not be longer than {_LONGEST_USER} characters"
    if user and not user.strip(". "):
        yield "'s User cannot contain only periods or spaces"
    if _BAD_CHARACTERS & set(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
