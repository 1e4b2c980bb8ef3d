"""What the API refuses in security contexts (C31)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import descending_path_problems, id_problems, size
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
from mirror.embedded.apiserver.apimachinery.canonical import Json
from mirror.embedded.apiserver.apimachinery.printing import text
from mirror.embedded.apiserver.validation.pods import windows

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
    yield from windows.check_options(f"{field}.windowsOptions", context.get("windowsOptions"))
    yield from _check_app_armor(f"{field}.appArmorProfile", context.get("appArmorProfile"))
    yield from _check_word(field, context, "supplementalGroupsPolicy", _GROUP_POLICIES)
    yield from _check_word(field, context, "seLinuxChangePolicy", _SELINUX_POLICIES)


def check_container(field: str, context: Json | None, *, has_host_users: bool) -> Iterator[Violation]:
    """The context of one container. Privileged containers are allowed, as on nearly every cluster."""
    if context is None:
        return
    yield from _check_ids(field, context, ("runAsUser", "runAsGroup"))
    yield from _check_word(field, context, "procMount", _PROC_MOUNTS)
    if has_host_users and context.get("procMount") == "Unmasked":
        yield invalid(f"{field}.procMount", '"Unmasked"', "`hostUsers` must be false to use `Unmasked`")
    yield from _check_seccomp(f"{field}.seccompProfile", context.get("seccompProfile"))
    if not context.get("allowPrivilegeEscalation", True):
        yield from _check_escalation(field, context)
    yield from windows.check_options(f"{field}.windowsOptions", context.get("windowsOptions"))
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
