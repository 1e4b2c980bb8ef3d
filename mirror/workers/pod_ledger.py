"""What was seen of the pods of one mirror, from a list of them on: whether it proves that none ever ran (D31). Pure.

No container of any of them, init containers included, was ever seen to run, to have ended after a start, or to be
started again; and each that was bound to a node was seen in a final phase before it was deleted, which its kubelet
writes first. Whatever is missing, or cannot be read, proves nothing. Filled by ``pod_proofs``.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from mirror.kube.objects import JUNK, Object, Partial
from mirror.kube.watch import WatchEvent
from mirror.model.text import clean

T = TypeVar("T")

MOST_PODS = 200
"""Of a mirror that has, or had, more since it was looked at nothing is proved."""
COLLECTED = "DeletionByPodGC"
FAILED, PENDING, RAN = "Failed", "Pending", ("Running", "Succeeded")


class _Terminated(msgspec.Struct, gc=False, rename="camel"):
    started_at: str | None = None


class _State(msgspec.Struct, gc=False):
    running: dict[str, object] | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, gc=False, rename="camel"):
    state: _State | None = None
    last_state: _State | None = None
    restart_count: int | None = None
    started: bool | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    reason: str | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    init_container_statuses: list[_Container] | None = None
    container_statuses: list[_Container] | None = None
    ephemeral_container_statuses: list[_Container] | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None


_status = msgspec.json.Decoder(_Status | None)
_spec = msgspec.json.Decoder(_Spec | None)


class PodLedger:
    """The pods of one mirror.

    Invariants: ``_there`` holds exactly those that were shown and not yet seen to go; once ``started`` or ``missed``
    says something, it does so for good.
    """

    def __init__(self) -> None:
        self.started = ""
        """Which pod has, or may have, started a container; empty: none that was seen."""
        self.missed = ""
        """Why not all is known."""
        self.unbound: dict[str, str] = {}
        """Names of pods that went without having been on any node, by uid: that they are gone can be asked for."""
        self._there: set[str] = set()
        self._ended: set[str] = set()
        self._seen = 0

    @property
    def is_empty(self) -> bool:
        """Whether none is left that was shown."""
        return not self._there

    @property
    def is_over(self) -> bool:
        """Whether nothing can be proved by it any more."""
        return bool(self.started or self.missed)

    def miss(self, why: str) -> None:
        """Something happened that may not have been seen."""
        self.missed = self.missed or why

    def take_listed(self, pod: Object) -> None:
        """A pod that was there when they were listed first."""
        self._look(pod)

    def take(self, event: WatchEvent) -> None:
        """What the watch has shown since."""
        pod = event.object
        if event.type == "DELETED":
            self._look(pod)
            self._go(pod)
        elif event.type in ("ADDED", "MODIFIED"):
            self._look(pod)

    def _look(self, pod: Object) -> None:
        uid, name = pod.metadata.uid, clean(pod.metadata.name)
        if uid not in self._there:
            self._seen += 1
            if self._seen > MOST_PODS:
                self.miss(f"it has more than {MOST_PODS} pods")
                return
            self._there.add(uid)
        status = None if isinstance(pod, Partial) else _read(_status, pod.status)
        if status is None:
            self.miss(f"pod {name} cannot be read")
            return
        if why := _started(status):
            self.started = self.started or f"pod {name} {why}"
        if status.phase == FAILED and _is_ended_by_node(status):
            self._ended.add(uid)
        elif status.phase not in (None, "", PENDING, FAILED, *RAN):
            self.miss(f"the phase of pod {name} is unknown")

    def _go(self, pod: Object) -> None:
        """A pod is deleted; what the event shows is the last that there was of it."""
        uid, name = pod.metadata.uid, pod.metadata.name
        self._there.discard(uid)
        spec = None if isinstance(pod, Partial) else _read(_spec, pod.spec)
        if spec is None:
            self.miss(f"pod {clean(name)} cannot be read")
        elif not spec.node_name:
            self.unbound[uid] = name
        elif uid not in self._ended:
            self.miss(f"pod {clean(name)} was deleted before its node said that it had ended")


def _started(status: _Status) -> str:
    """What says that a container of a pod has started; empty: nothing."""
    if status.phase in RAN:
        return f"is {status.phase}"
    for one in (
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ):
        if one.started or (one.restart_count or 0) > 0 or (one.last_state and _tells_a_start(one.last_state)):
            return "has been started"
        if one.state is not None and _tells_a_start(one.state):
            return "has started"
    return ""


def _is_ended_by_node(status: _Status) -> bool:
    """Whether its kubelet says that it has ended: kube-controller-manager says so of pods whose node is lost.

    A kubelet says of each container that it has ended, but for those that had to wait for init containers.
    """
    if any(one.type == "DisruptionTarget" and one.reason == COLLECTED for one in status.conditions or ()):
        return False
    if status.init_container_statuses:
        return True
    containers = status.container_statuses or ()
    return bool(containers) and all(one.state is not None and one.state.terminated is not None for one in containers)


def _tells_a_start(state: _State) -> bool:
    """What was never started ends without a time of its start, or with Go's zero time."""
    if state.running is not None:
        return True
    started_at = state.terminated.started_at if state.terminated is not None else None
    return bool(started_at) and not str(started_at).startswith("0001-01-01")


def _read(decoder: msgspec.json.Decoder[T | None], part: msgspec.Raw) -> T | None:
    """Of a whole pod; None where it makes no sense: a worker may answer anything."""
    try:
        return decoder.decode(part)
    except JUNK:
        return None
