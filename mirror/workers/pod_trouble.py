"""What keeps one pod of a mirror from running, from its status or an event about it (D22). Pure.

Only pods that are in trouble are kept, and of them a few hundred bytes (D29). Used by ``pods``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from mirror.kube.objects import JUNK, Meta, Object
from mirror.model import names
from mirror.model.reasons import Reason
from mirror.model.text import clean

T = TypeVar("T")

LONGEST_TEXT = 200
LONGEST_NAME = 100
"""Characters of a container's name, or of an image."""

MOST_CLAIMS = 5
LONGEST_KEY = 253
"""Characters of whatever else is kept of an object: no name or uid that an API server gives has more."""

_WAITS: dict[str, Reason] = {
    "ErrImagePull": Reason.IMAGE_PULL_BACK_OFF,
    "ImagePullBackOff": Reason.IMAGE_PULL_BACK_OFF,
    "RegistryUnavailable": Reason.IMAGE_PULL_BACK_OFF,
    "SignatureValidationFailed": Reason.IMAGE_PULL_BACK_OFF,
    "ImageInspectError": Reason.INVALID_IMAGE,
    "ErrImageNeverPull": Reason.INVALID_IMAGE,
    "InvalidImageName": Reason.INVALID_IMAGE,
    "CreateContainerConfigError": Reason.CREATE_CONTAINER_CONFIG_ERROR,
    "CreateContainerError": Reason.CREATE_CONTAINER_ERROR,
    "RunContainerError": Reason.CREATE_CONTAINER_ERROR,
    "PreStartHookError": Reason.CREATE_CONTAINER_ERROR,
    "PostStartHookError": Reason.CREATE_CONTAINER_ERROR,
    "CrashLoopBackOff": Reason.CRASH_LOOP_BACK_OFF,
}
"""Reasons of a container that waits, as kubelets write them; others are on the way to running."""
_ENDED: dict[str, Reason] = {
    "Evicted": Reason.EVICTED,
    "Preempting": Reason.EVICTED,
    "NodeLost": Reason.EVICTED,
    "NodeShutdown": Reason.EVICTED,
    "Terminated": Reason.EVICTED,
}
"""Reasons of a pod that has failed, as kubelets and the node controllers write them."""
_NEVER_STARTED = frozenset(("StartError", "ContainerCannotRun"))
"""Reasons of a container that has ended before its command ran, as containerd and Docker have them."""
_DEADLINE = "DeadlineExceeded"
"""The reason of a pod that a kubelet ended by ``activeDeadlineSeconds``, perhaps before it had a container."""
EVENTS: dict[str, Reason] = {
    "FailedMount": Reason.FAILED_MOUNT,
    "FailedAttachVolume": Reason.FAILED_MOUNT,
    "FailedMapVolume": Reason.FAILED_MOUNT,
    "FailedCreatePodSandBox": Reason.FAILED_CREATE_POD_SANDBOX,
    "NetworkNotReady": Reason.FAILED_CREATE_POD_SANDBOX,
    "FailedPrepareDynamicResources": Reason.FAILED_CREATE_POD_SANDBOX,
    "NodeNotReady": Reason.PODS_NOT_READY,
    "Unhealthy": Reason.PODS_NOT_READY,
    "FailedToRetrieveImagePullSecret": Reason.PODS_NOT_READY,
}
"""Events about pods that report what no status does. Those about readiness are of pods that run, and count only for as
long as pods are not ready for longer than they may be (``decide.following``)."""
CREATE_EVENTS = frozenset(("FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod"))
"""Events about what makes pods, where none may be created: of the Job controller, training-operator and KubeRay."""
_CAUSES: dict[str, re.Pattern[str]] = {
    Reason.CRASH_LOOP_BACK_OFF: re.compile(r"(?:Liveness|Startup) probe failed.*"),
    Reason.IMAGE_PULL_BACK_OFF: re.compile(r"[^;]* image pull secrets? [^;]*"),
}
"""What a kubelet warns of that explains such a trouble of the same pod: it ends containers whose probe fails."""
_MARKS = (b'"waiting"', b'"Failed"', b'"Unschedulable"', b'"SchedulingGated"')
"""One of them is in the status of a pod in trouble."""
_RUNTIMES_ERROR = "unable to start container process: "
"""What follows it is the reason; what precedes it names the runtime's parts, for two hundred characters."""
_IMAGE_ERROR = re.compile(r"^Back-off pulling image \"[^\"]*\"(?:: Err\w+: (?P<why>.*))?", re.DOTALL)


_OF_RAY = re.compile(r"Failed to create (head|worker) Pod [^,]*, ")


class Trouble(msgspec.Struct, frozen=True, gc=False, array_like=True, omit_defaults=True):
    """Why a pod does not run."""

    reason: str
    text: str
    has_failed: bool = False
    """The pod is over, or about to be; its Job may have another one by now."""


class _Kept(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Stored as the status of what is kept of a pod; labels would take more bytes than all the rest of it."""

    source: str
    """The uid of its source."""
    trouble: Trouble


class _Waiting(msgspec.Struct, gc=False):
    reason: str | None = None
    message: str | None = None


class _Terminated(_Waiting, gc=False, rename="camel"):
    exit_code: int | None = None


class _State(msgspec.Struct, gc=False):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    image: str | None = None
    state: _State | None = None
    last_state: _State | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _Claim(msgspec.Struct, gc=False):
    name: str = ""


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None
    resource_claims: list[_Claim] | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[_Condition] | None = None
    init_container_statuses: list[_Container] | None = None
    container_statuses: list[_Container] | None = None


_status = msgspec.json.Decoder(_Status | None)
_spec = msgspec.json.Decoder(_Spec | None)
_kept = msgspec.json.Decoder(_Kept)


def condensed(pod: Object) -> Object | None:
    """What is kept of a pod in trouble; None for one that is not, or not of ours."""
    if names.SOURCE_UID not in pod.labels:
        return None
    is_deleted = pod.metadata.deletion_timestamp is not None
    trouble = disruption_of(bytes(pod.status)) if is_deleted else trouble_of(bytes(pod.status), bytes(pod.spec))
    if trouble is None:
        return None
    metadata, source = pod.metadata, pod.labels[names.SOURCE_UID]
    if not is_short(metadata.name, metadata.namespace, metadata.uid, metadata.resource_version, source):
        return None
    return Object(
        Meta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
        ),
        status=msgspec.Raw(msgspec.json.encode(_Kept(source, trouble))),
    )


def is_short(*texts: str) -> bool:
    """Whether these are names, uids and versions as API servers give them (D29)."""
    return all(len(text) <= LONGEST_KEY for text in texts)


def stored_trouble(kept: Object) -> Trouble:
    """What ``condensed`` has kept."""
    return _kept.decode(kept.status).trouble


def stored_source(kept: Object) -> str:
    """The uid of the source of a pod that ``condensed`` has kept."""
    return _kept.decode(kept.status).source


def trouble_of(status: bytes, spec: bytes = b"") -> Trouble | None:
    """Why a pod with this status does not run; None where it runs, is on its way, or has succeeded.

    A pod of which nobody has said a word is on its way, too: ``PodsNotReady`` is told of it once that has lasted.
    """
    if not any(mark in status for mark in _MARKS):
        return _unnoticed(spec) if b'"Pending"' in status and b'"conditions"' not in status else None
    try:
        found = _status.decode(status)
    except JUNK:
        return None
    if found is None or found.phase == "Succeeded":
        return None
    if found.phase == "Failed":
        return _failed(found)
    for container in (*(found.init_container_statuses or ()), *(found.container_statuses or ())):
        waits = container.state.waiting if container.state is not None else None
        reason = _WAITS.get(waits.reason or "") if waits is not None else None
        if waits is not None and reason is not None:
            return _waits(container, waits, reason)
    for one in found.conditions or ():
        if (one.type, one.status) == ("PodScheduled", "False"):
            reason = Reason.SCHEDULING_GATED if one.reason == "SchedulingGated" else Reason.UNSCHEDULABLE
            return Trouble(reason, _cut(one.message or "no node takes it"))
    return None


def disruption_of(status: bytes) -> Trouble | None:
    """Why a pod with this status is being deleted; None where what made it may have its reasons, or it has succeeded.

    Drains, preemptions, taints and the loss of a node say so by a condition before they delete the pod (KEP-3329).
    Who made the pod says nothing: its Job was suspended, has ended, or wants fewer.
    """
    if b'"DisruptionTarget"' not in status:
        return None
    try:
        found = _status.decode(status)
    except JUNK:
        return None
    why = _disruption(found) if found is not None and found.phase != "Succeeded" else None
    return _failed(found) if why is not None and found is not None and found.phase == "Failed" else why


def _disruption(found: _Status) -> Trouble | None:
    for one in found.conditions or ():
        if (one.type, one.status) == ("DisruptionTarget", "True"):
            return Trouble(Reason.EVICTED, _cut(one.message or one.reason or "disrupted"), has_failed=True)
    return None


def _unnoticed(spec: bytes) -> Trouble | None:
    """Neither a scheduler nor a kubelet has written anything about it: most often there is none of that name."""
    try:
        found = _spec.decode(spec)
    except JUNK:
        return None
    if found is None or not (found.node_name or found.scheduler_name):
        return None
    if found.node_name:
        return Trouble(Reason.PODS_NOT_READY, _cut(f"the kubelet of node {found.node_name} has not taken it"))
    claims = ", ".join(one.name for one in (found.resource_claims or ())[:MOST_CLAIMS])
    refers = f"; it needs the resource claims {claims}" if claims else ""
    return Trouble(
        Reason.PODS_NOT_READY, _cut(f"scheduler {found.scheduler_name} has not reported anything about it{refers}")
    )


def _waits(container: _Container, waits: _Waiting, reason: Reason) -> Trouble:
    name, message = clean(container.name, longest=LONGEST_NAME), waits.message or ""
    if reason in (Reason.IMAGE_PULL_BACK_OFF, Reason.INVALID_IMAGE):
        # The kubelet alternates between two reasons: only what they have in common is reported, so the text stays.
        if known := _IMAGE_ERROR.match(message):
            message = known["why"] or ""
        image = clean(container.image or "", longest=LONGEST_NAME)
        return Trouble(reason, _cut(f"container {name}: image {image}{': ' if message else ''}{message}"))
    last = container.last_state.terminated if container.last_state is not None else None
    if reason is Reason.CRASH_LOOP_BACK_OFF and last is not None:
        if last.reason in _NEVER_STARTED:  # here, too: between two attempts it backs off
            return Trouble(Reason.CREATE_CONTAINER_ERROR, _cut(f"container {name}: {_never_started(last)}"))
        return Trouble(reason, _cut(f"container {name}: {_ended(last)}"))
    return Trouble(reason, _cut(f"container {name}: {_of_runtime(message) or waits.reason}"))


def _failed(found: _Status) -> Trouble:
    if (reason := _ENDED.get(found.reason or "")) is not None:
        return Trouble(reason, _cut(found.message or found.reason or ""), has_failed=True)
    if found.reason and found.reason != _DEADLINE and not found.container_statuses:
        # The kubelet has not let it in: no CPU, memory or device left, a sysctl, another operating system.
        return Trouble(Reason.POD_REJECTED, _cut(f"{found.reason}: {found.message or ''}"), has_failed=True)
    if (disruption := _disruption(found)) is not None:
        return disruption  # exit codes of its containers would be those of a kill
    for container in (*(found.init_container_statuses or ()), *(found.container_statuses or ())):
        ended = container.state.terminated if container.state is not None else None
        if ended is not None and ended.exit_code != 0:
            return _ended_badly(clean(container.name, longest=LONGEST_NAME), ended)
    return Trouble(Reason.PODS_FAILING, _cut(found.message or found.reason or "it failed"), has_failed=True)


def _ended_badly(container: str, ended: _Terminated) -> Trouble:
    if ended.reason in _NEVER_STARTED:
        text = _cut(f"container {container}: {_never_started(ended)}")
        return Trouble(Reason.CREATE_CONTAINER_ERROR, text, has_failed=True)
    kind = Reason.OOM_KILLED if ended.reason == "OOMKilled" else Reason.PODS_FAILING
    return Trouble(kind, _cut(f"container {container}: {_ended(ended)}"), has_failed=True)


def _never_started(ended: _Terminated) -> str:
    return _of_runtime((ended.message or "").strip()) or _code(ended)


def _of_runtime(message: str) -> str:
    """What a container runtime says, without its own parts, which leave no room for the command."""
    return message.partition(_RUNTIMES_ERROR)[2] or message


def _ended(ended: _Terminated) -> str:
    """With the last line of what the container left as its termination message: the error, where it is a log's end."""
    last = (ended.message or "").rstrip().rpartition("\n")[2]
    return f"{_code(ended)}: {last}" if last else _code(ended)


def _code(ended: _Terminated) -> str:
    code = f"exit code {ended.exit_code}" if ended.exit_code is not None else "ended"
    return f"{ended.reason}, {code}" if ended.reason not in (None, "", "Error") else code


def _cut(text: str) -> str:
    return clean(" ".join(text.split()), longest=LONGEST_TEXT)


def is_unready(status: bytes) -> bool:
    """Whether a pod runs, or waits to, and is not ready."""
    try:
        found = _status.decode(status)
    except JUNK:
        return False
    if found is None or found.phase not in ("Pending", "Running"):
        return False
    return not any((one.type, one.status) == ("Ready", "True") for one in found.conditions or ())


def may_hold(trouble: Trouble, status: bytes) -> bool:
    """Whether what was warned of a pod may be so still: one that has started has its volumes, and may be unready."""
    return is_unready(status) if trouble.reason == Reason.PODS_NOT_READY else b'"phase":"Pending"' in status


def warned_of(reason: str, message: str) -> Trouble | None:
    """What a warning about a pod tells that its status does not; None: nothing that counts (``EVENTS``)."""
    found = EVENTS.get(reason)
    return Trouble(found, _cut(message)) if found is not None else None


def refused_create(message: str) -> Trouble:
    """Why pods cannot be created, by a warning of ``CREATE_EVENTS`` about what makes them."""
    text = _OF_RAY.sub("", " ".join(message.split()).removeprefix("Error creating: "), count=1)
    reason = Reason.QUOTA_EXCEEDED if "exceeded quota" in text else Reason.PODS_FORBIDDEN
    # Without the name that a pod would have had: each attempt has another one.
    head, marker, rest = text.partition(" is forbidden: ")
    return Trouble(reason, _cut(rest if marker and head.startswith("pods ") else text))


def most_said(before: Trouble, now: Trouble) -> Trouble:
    """Of two warnings of one pod the newer one, unless only the other says why it is in trouble.

    A pod whose probes all fail is warned of each in turn, and its text would change with every one (D21).
    """
    said, says = (any(cause.match(one.text) for cause in _CAUSES.values()) for one in (before, now))
    return before if said and not says and before.reason == now.reason else now


def first_explained(found: Sequence[tuple[str, Trouble]]) -> tuple[str, Trouble]:
    """The first of these troubles, each with its pod's name, and with what was warned of that pod if that says why."""
    pod, trouble = found[0]
    cause = _CAUSES.get(trouble.reason)
    warned = (one.text for name, one in found if name == pod and one.reason == Reason.PODS_NOT_READY)
    why = next(filter(None, map(cause.match, warned)), None) if cause is not None else None
    return pod, Trouble(trouble.reason, f"{trouble.text}; {why[0]}", trouble.has_failed) if why is not None else trouble
