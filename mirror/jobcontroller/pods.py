"""Which cached pods a sync has to look at, kept up to date with each change: never by walking all of them.

Fed by ``handlers``; read by ``claiming``, ``syncing`` and ``orphans``. The objects are in the informer's store.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeVar

from mirror.batch.label_selectors import LabelSelector
from mirror.jobcontroller.podview import CachedPod, labels_of
from mirror.kube.objects import Object, OwnerReference
from mirror.kube.resources import JOBS
from mirror.runtime.store import Name, name_of

_K = TypeVar("_K", bound=Hashable)


class Controller(NamedTuple):
    """The Job that a pod says it belongs to (O1).

    A uid alone would do for honest people: who may write pods in some namespace can write any owner into them.
    """

    namespace: str
    name: str
    uid: str


class ByLabel:
    """Some pods, found by a label selector without looking at the others.

    Invariant: ``_by_label[n, k, v]`` holds the pods of ``_in_namespace[n]`` with that label.
    """

    def __init__(self) -> None:
        self._in_namespace: dict[str, dict[Name, CachedPod]] = {}
        self._by_label: dict[tuple[str, str, str], dict[Name, CachedPod]] = {}

    def put(self, pod: CachedPod) -> None:
        name, namespace = name_of(pod), pod.metadata.namespace
        self._in_namespace.setdefault(namespace, {})[name] = pod
        for key, value in labels_of(pod).items():
            self._by_label.setdefault((namespace, key, value), {})[name] = pod

    def remove(self, pod: CachedPod) -> None:
        """Nothing if it is not there; ``pod`` as it was put."""
        name, namespace = name_of(pod), pod.metadata.namespace
        _drop(self._in_namespace, namespace, name)
        for key, value in labels_of(pod).items():
            _drop(self._by_label, (namespace, key, value), name)

    def matching(self, namespace: str, selector: LabelSelector) -> list[CachedPod]:
        if selector.is_missing:
            return []
        pivot = selector.pivot
        found = self._by_label.get((namespace, *pivot)) if pivot is not None else self._in_namespace.get(namespace)
        return [pod for pod in (found or {}).values() if selector.matches(labels_of(pod))]


class PodIndex:
    """Pods by what they mean to us.

    Invariants: a pod controlled by a Job is either *open*, or *settled*: finished, without our finalizer, and seen in
    that state, with those labels, by a sync of its Job. Only open ones are walked by a sync, so that the cost of one
    does not grow with what the Job has done. ``_settled`` names all of these, ``_failed`` keeps those that failed.
    ``_orphans`` are the pods without controller, ``_tracked`` those with our finalizer.
    """

    def __init__(self) -> None:
        self._open: defaultdict[Controller, dict[Name, CachedPod]] = defaultdict(dict)
        self._failed: defaultdict[Controller, dict[Name, CachedPod]] = defaultdict(dict)
        self._settled: set[Name] = set()
        self._orphans = ByLabel()
        self._tracked = ByLabel()

    def change(self, old: CachedPod | None, new: CachedPod | None) -> None:
        """A pod came, changed or went."""
        stays = old is not None and new is not None and self._stays_settled(old, new)
        if old is not None:
            self._remove(old)
        if new is not None:
            self._put(new, settled=stays)

    def open_of(self, job: Object) -> list[CachedPod]:
        """The pods that a Job controls and that a sync of it has to look at."""
        found = self._open.get(_as_controller(job))
        return list(found.values()) if found else []

    def failed_of(self, job: Object) -> list[CachedPod]:
        """The settled pods of a Job that failed."""
        found = self._failed.get(_as_controller(job))
        return list(found.values()) if found else []

    def settle(self, job: Object, pods: Iterable[CachedPod]) -> None:
        """A sync has looked at these: those that are over need not be looked at again."""
        controller = _as_controller(job)
        pods_open = self._open.get(controller)
        for pod in pods:
            if not pod.is_settled:
                continue
            name = name_of(pod)
            if pods_open is not None and pods_open.get(name) is pod:
                _drop(self._open, controller, name)
                self._put(pod, settled=True)

    def orphans(self, namespace: str, selector: LabelSelector) -> list[CachedPod]:
        """Pods that nobody controls and that a selector matches."""
        return self._orphans.matching(namespace, selector)

    def tracked(self, namespace: str, selector: LabelSelector) -> list[CachedPod]:
        """Pods with our finalizer that a selector matches."""
        return self._tracked.matching(namespace, selector)

    def _stays_settled(self, old: CachedPod, new: CachedPod) -> bool:
        is_same = old.metadata.uid == new.metadata.uid and old.owner == new.owner and labels_of(old) == labels_of(new)
        return is_same and new.is_settled and name_of(old) in self._settled

    def _put(self, pod: CachedPod, *, settled: bool) -> None:
        name, owner = name_of(pod), pod.owner
        if pod.pod.has_finalizer:
            self._tracked.put(pod)
        if owner is None:
            self._orphans.put(pod)
        elif owner.kind != JOBS.kind:
            return
        elif not settled:
            self._open[_controller_of(pod, owner)][name] = pod
        else:
            self._settled.add(name)
            if pod.pod.phase == "Failed":
                self._failed[_controller_of(pod, owner)][name] = pod

    def _remove(self, pod: CachedPod) -> None:
        name, owner = name_of(pod), pod.owner
        if pod.pod.has_finalizer:
            self._tracked.remove(pod)
        if owner is None:
            self._orphans.remove(pod)
            return
        self._settled.discard(name)
        controller = _controller_of(pod, owner)
        _drop(self._open, controller, name)
        _drop(self._failed, controller, name)


def _as_controller(job: Object) -> Controller:
    return Controller(job.metadata.namespace, job.metadata.name, job.metadata.uid)


def _controller_of(pod: CachedPod, owner: OwnerReference) -> Controller:
    return Controller(pod.metadata.namespace, owner.name, owner.uid)


def _drop(found: dict[_K, dict[Name, CachedPod]], key: _K, name: Name) -> None:
    """Take a pod out of one of the dictionaries of a dictionary, and that one when it is empty."""
    pods = found.get(key)
    if pods is not None:
        pods.pop(name, None)
        if not pods:
            del found[key]
