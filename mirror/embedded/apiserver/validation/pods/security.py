"""What the API refuses in security contexts, and about a pod's operating system (C31)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import descending_path_problems, id_problems, size, subdomain_problems
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
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.apimachinery.printing import text

_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_CHANGE_POLICIES = ("Always", "OnRootMismatch")
_GROUP_POLICIES = ("Merge", "Strict")
_SELINUX_POLICIES = ("Recursive",)
_LONGEST_PROFILE, _LONGEST_SYSCTL = 4095, 253
_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_is_sysctl = re.compile(_SYSCTL).fullmatch
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in ("sem", "shm", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "msg", "msgmax", "msgmnb", "msgmni")
)
_SWAPPED = str.maketrans("./", "/.")


def check_pod(field: str, pod: Json) -> Iterator[Violation]:
    """The context of the whole pod."""
    context: Json = pod["securityContext"]
    yield from _check_ids(field, context, ("fsGroup", "runAsUser", "runAsGroup"))
    for position, group in enumerate(context.get("supplementalGroups", ())):
        for problem in id_problems(group):
            yield invalid(f"{field}.supplementalGroups[{position}]", group, problem)
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{field}.shareProcessNamespace", "true", detail)
    yield from _check_sysctls(f"{field}.sysctls", pod)
    yield from _check_word(field, context, "fsGroupChangePolicy", _CHANGE_POLICIES)
    yield from _check_seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    yield from check_options(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _check_app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))
    yield from _check_word(field, context, "supplementalGroupsPolicy", _GROUP_POLICIES)
    yield from _check_word(field, context, "seLinuxChangePolicy", _SELINUX_POLICIES)


def check_container(field: str, context: Json, *, has_host_users: bool) -> Iterator[Violation]:
    """The context of one container. Privileged containers are allowed, as on nearly every cluster."""
    yield from _check_ids(field, context, ("runAsUser", "runAsGroup"))
    yield from _check_word(field, context, "procMount", _PROC_MOUNTS)
    if has_host_users and context.get("procMount") == "Unmasked":
        yield invalid(f"{field}.procMount", '"Unmasked"', "`hostUsers` must be false to use `Unmasked`")
    yield from _check_seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    if not context.get("allowPrivilegeEscalation", True):
        yield from _check_escalation(field, context)
    yield from check_options(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _check_app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))


def check_host_users(path: str, pod: Json) -> Iterator[Violation]:
    """Users of their own do not go together with the node's namespaces."""
    if pod.get("hostUsers", True):
        return
    for name, spelt in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if pod.get(name):
            yield forbidden(f"{path}.{spelt}", "when `hostUsers` is false")
    for kind in ("initContainers", "containers"):
        for position, container in enumerate(pod.get(kind) or ()):
            if container.get("volumeDevices"):
                yield forbidden(f"{path}.{kind}[{position}].volumeDevices", "when `hostUsers` is false")


def _check_escalation(field: str, context: Json) -> Iterator[Violation]:
    printed = text(context, "SecurityContext")
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(field, printed, detail)
    for _ in (one for one in context.get("capabilities", {}).get("add", ()) if one == "CAP_SYS_ADMIN"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        yield invalid(field, printed, detail)


def _check_app_armor(field: str, profile: Json | None) -> Iterator[Violation]:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    if not kind:
        yield required(f"{field}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported(f"{field}.type", kind, _PROFILE_TYPES)
    elif kind != "Localhost":
        if local is not None:
            detail = "can only be set when AppArmor type is Localhost"
            yield invalid(f"{field}.localhostProfile", json_text(local), detail)
    elif not local:
        yield required(f"{field}.localhostProfile", "must be set when AppArmor type is Localhost")
    else:
        if local != local.strip():
            yield invalid_text(f"{field}.localhostProfile", local, "must not be padded with whitespace")
        if size(local) > _LONGEST_PROFILE:
            yield too_long(f"{field}.localhostProfile", _LONGEST_PROFILE)


def _check_sysctls(field: str, pod: Json) -> Iterator[Violation]:
    seen: set[str] = set()
    for position, sysctl in enumerate(pod["securityContext"].get("sysctls", ())):
        path, name = f"{field}[{position}].name", sysctl["name"]
        if not name:
            yield required(path)
        elif size(name) > _LONGEST_SYSCTL or not _is_sysctl(name):
            detail = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield invalid_text(path, name, detail)
        elif name in seen:
            yield duplicate(path, quoted(name))
        seen.add(name)
        dotted = name.translate(_SWAPPED) if _first_separator(name) == "/" else name
        if pod.get("hostNetwork") and dotted.startswith("net."):
            yield invalid_text(path, name, "may not be specified when 'hostNetwork' is true")
        elif pod.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
            yield invalid_text(path, name, "may not be specified when 'hostIPC' is true")


def _first_separator(name: str) -> str:
    return next((one for one in name if one in "./"), "")


def _check_ids(field: str, context: Json, names: tuple[str, ...]) -> Iterator[Violation]:
    for name in names:
        for problem in id_problems(context[name]) if name in context else ():
            yield invalid(f"{field}.{name}", context[name], problem)


def _check_word(field: str, context: Json, name: str, supported: tuple[str, ...]) -> Iterator[Violation]:
    if name in context and context[name] not in supported:
        yield not_supported(f"{field}.{name}", context[name], supported)


def _check_seccomp(field: str, profile: Json | None) -> Iterator[Violation]:
    if profile is None:
        return
    kind, local = profile["type"], profile.get("localhostProfile")
    if not kind:
        yield required(f"{field}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported(f"{field}.type", kind, _PROFILE_TYPES)
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            yield invalid(f"{field}.localhostProfile", text(profile, "SeccompProfile"), detail)
    elif local is None:
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from invalid_texts(f"{field}.localhostProfile", local, descending_path_problems(local))


# The operating system: Windows options, and what does not go with a system.

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
    system = pod["os"].get("name")
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
