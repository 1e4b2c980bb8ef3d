"""The trouble of our mirrors' pods on one worker, as watched there (D22, setting ``workers.watchPods``).

Two watches: of pods with our labels, and of warnings. Pods that run are not kept. Bounded in number (D29); that the
worker does not allow it is logged and makes it no lost worker. What is shown of it: ``obstruction_of``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol

import msgspec

from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import PODS
from mirror.kube.watch import WatchEvent
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason
from mirror.model.text import clean
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change, Informer, InformerHooks, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.store import Store
from mirror.runtime.store_writer import Filter
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log
from mirror.workers import pod_events, pod_trouble
from mirror.workers.first_look import FirstLook
from mirror.workers.pod_events import Warned
from mirror.workers.pod_lookups import LookupHost, PodLookups
from mirror.workers.pod_makers import PodMakers
from mirror.workers.pod_owners import controller_of
from mirror.workers.pod_proofs import PodProofs
from mirror.workers.pod_trouble import Trouble

MOST_PODS = 5_000
"""Of pods in trouble so many are kept for each worker."""
MOST_WARNINGS = 5_000
MOST_COMPARED = 50
"""Pods of one Job that are looked at, by name."""
NEWEST_SECONDS = 600.0
"""A warning that has not been repeated for so long is over: controllers and kubelets repeat theirs more often. So is
what a pod failed of that has been deleted for so long."""
MOST_PAST = 1_000
"""Of so many sources it is remembered why their last pods did not run, once these are deleted."""
UNFINISHED = "status.phase!=Succeeded"
"""What happens to a pod after its good end, its finalizers and its deletion, is not sent."""
BY_SOURCE = "source"


class KnownMirrors(Protocol):
    """The mirrors of a worker (``watching``)."""

    def source_uid_of(self, kind: str, namespace: str, name: str, uid: str) -> str | None: ...

    @property
    def are_synced(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class PodHost:
    """What the watches of pods need of their worker."""

    worker: str
    clock: Clock
    origin: str
    """The management cluster's, by whose label pods of mirrors are found."""
    on_change: Callable[[str], None]
    """Called with the uid of a source whose pods have another trouble than before."""
    mirrors: KnownMirrors
    kinds: Kinds
    """Of mirrors."""


class _Note(msgspec.Struct, frozen=True, gc=False):
    """A warning: about one pod, or (``pod`` empty) about pods that cannot be created."""

    source: str
    namespace: str
    pod: str
    trouble: Trouble
    noted_at: float
    maker: str = ""
    """The name of what cannot create pods; empty of a pod."""


class _Past(msgspec.Struct, frozen=True, gc=False):
    """A pod that was in trouble until it was deleted, or was deleted for a reason that is not its controller's."""

    namespace: str
    pod: str
    trouble: Trouble
    noted_at: float


class PodWatches:
    """Which pods of which source are in trouble.

    Invariants: ``_store`` holds pods in trouble only, ``MOST_PODS`` at most; ``_notes`` holds warnings by the uid of
    what they are about, ``MOST_WARNINGS`` at most, and ``_noted`` the same uids by source. ``_past`` holds by source
    what its last pod in trouble that was deleted waited for, where none has followed, or failed of; of ``MOST_PAST`` at
    most.
    """

    def __init__(self, host: PodHost, *, log: Log) -> None:
        self._host = host
        self._log = log
        self.proofs = PodProofs(host.on_change, log=log)
        """Whether any pod of a mirror that is to be tried elsewhere ever ran (D31)."""
        self._store = Store({BY_SOURCE: lambda pod: (pod_trouble.stored_source(pod),)})
        self._notes: OrderedDict[str, _Note] = OrderedDict()
        self._noted: dict[str, set[str]] = {}
        self._past: OrderedDict[str, _Past] = OrderedDict()
        self._condensed: tuple[Object | None, Object | None] = (None, None)
        looking = LookupHost(
            host.clock,
            host.origin,
            PodMakers(host.kinds, host.mirrors.source_uid_of),
            are_mirrors_synced=lambda: host.mirrors.are_synced,
            source_of=self._source_of,
            on_found=self._note_warning,
            on_error=partial(self._on_refused, what="whose pods are is not read"),
        )
        self._lookups = PodLookups(looking, log=log)
        self._is_refused = False
        self.first_look = FirstLook(host.on_change)

    # -- watching -----------------------------------------------------------------------------------------------------

    async def run(self, client: Callable[[], Client], namespaces: Iterable[str | None]) -> None:
        """Keep what is known, until cancelled."""
        where = tuple(namespaces)
        informers = Informers(
            {
                f"pods of {self._host.worker} in {namespace or '*'}": Informer(
                    Scope(PODS, namespace, f"{names.ORIGIN}={self._host.origin}", UNFINISHED),
                    self._store,
                    client=client,
                    hooks=InformerHooks(
                        self._on_pod, self._on_event, self._on_refused, self._on_healthy, of_workers=True
                    ),
                    wanted=Filter(accept=self._accepts, keep=self._kept),
                )
                for namespace in where
            },
            log=self._log,
        )
        async with asyncio.TaskGroup() as scope:
            scope.create_task(informers.run(), name=f"pods {self._host.worker}")
            scope.create_task(
                self.first_look.run(informers, self._lookups), name=f"first look at pods {self._host.worker}"
            )
            for namespace in where:
                follow = partial(
                    pod_events.follow, client, namespace, take=self._on_warning, on_trouble=self._on_refused
                )
                name = f"warnings {self._host.worker} in {namespace or '*'}"
                scope.create_task(supervise(name, follow, log=self._log), name=name)
            scope.create_task(self._lookups.run(client), name=f"owners of pods {self._host.worker}")
            scope.create_task(self.proofs.run(client), name=f"proofs {self._host.worker}")

    def _accepts(self, pod: Object) -> bool:
        kept = self._condense(pod)
        if kept is None:
            return False
        return len(self._store) < MOST_PODS or self._store.get(pod.metadata.namespace, pod.metadata.name) is not None

    def _kept(self, pod: Object) -> Object:
        kept = self._condense(pod)
        assert kept is not None
        return kept

    def _condense(self, pod: Object) -> Object | None:
        """Once for each object: it is asked for twice."""
        if self._condensed[0] is not pod:
            self._condensed = (pod, pod_trouble.condensed(pod))
        return self._condensed[1]

    def _on_pod(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        if found is None or (old is not None and new is not None and bytes(old.status) == bytes(new.status)):
            return
        before, now = (pod_trouble.stored_trouble(one).reason if one is not None else "" for one in (old, new))
        if {before, now} <= {"", Reason.PODS_NOT_READY}:
            return  # each new pod is in it for a moment; where it lasts, its source is looked at anyway
        self._host.on_change(pod_trouble.stored_source(found))

    def _on_event(self, event: WatchEvent) -> None:
        """What was warned of is over once the pod is ready or has gone; that none can be created, with a new one."""
        pod = event.object
        self._keep_past(event)
        if not self._notes:
            return
        note = self._notes.get(pod.metadata.uid)
        if note is not None and (event.type == "DELETED" or not pod_trouble.may_hold(note.trouble, bytes(pod.status))):
            self._forget(pod.metadata.uid)
        source, maker = pod.labels.get(names.SOURCE_UID, ""), controller_of(pod.metadata.owner_references or ())
        for uid in tuple(self._noted.get(source, ())) if event.type == "ADDED" else ():
            note = self._notes[uid]
            if not note.pod and (maker is None or maker.name == note.maker):  # another child Job's may be refused still
                self._forget(uid)

    def _keep_past(self, event: WatchEvent) -> None:
        """Before a pod that is deleted is forgotten: its Job may end of what it waited for.

        Where it was evicted, the one that takes its place has most often been created by now.
        """
        pod = event.object
        source = pod.labels.get(names.SOURCE_UID, "")
        past = self._past.get(source)
        if event.type == "ADDED":
            if past is not None and not past.trouble.has_failed:
                del self._past[source]
        elif event.type == "DELETED" or pod.metadata.deletion_timestamp is not None:
            kept = self._condense(pod) or self._store.get(pod.metadata.namespace, pod.metadata.name)
            note = self._notes.get(pod.metadata.uid)
            trouble = pod_trouble.stored_trouble(kept) if kept is not None else note.trouble if note else None
            where = pod.metadata.namespace, pod.metadata.name
            if trouble is None or trouble.reason == Reason.PODS_NOT_READY or not pod_trouble.is_short(source, *where):
                return
            self._past.pop(source, None)
            self._past[source] = _Past(*where, trouble, self._now())
            if len(self._past) > MOST_PAST:
                self._past.popitem(last=False)

    # -- warnings -----------------------------------------------------------------------------------------------------

    def _on_warning(self, warned: Warned) -> None:
        about, is_of_pod = warned.about, warned.about.kind == "Pod"
        if warned.reason not in (pod_trouble.EVENTS if is_of_pod else pod_trouble.CREATE_EVENTS):
            return
        if warned.seconds_ago(self._host.clock.now()) > NEWEST_SECONDS:
            return
        if self._lookups.is_of_others(about.uid) or not pod_trouble.is_short(*msgspec.structs.astuple(about)):
            return
        source = self._source_of(warned)
        if source is not None:
            self._note_warning(source, warned)
        else:
            self._lookups.ask(warned)

    def _source_of(self, warned: Warned) -> str | None:
        """Whose a mirror is, or what was found out before."""
        about, known = warned.about, self._notes.get(warned.about.uid)
        if known is not None or about.kind == "Pod":
            return known.source if known is not None else None
        return self._host.mirrors.source_uid_of(about.kind, about.namespace, about.name, about.uid)

    def _note_warning(self, source: str, warned: Warned) -> None:
        about = warned.about
        if about.kind == "Pod":
            trouble = pod_trouble.warned_of(warned.reason or "", warned.text)
            assert trouble is not None, "only these reasons get here"
            self._note(about.uid, _Note(source, about.namespace, about.name, trouble, self._now()))
        else:
            trouble = pod_trouble.refused_create(warned.text)
            self._note(about.uid, _Note(source, about.namespace, "", trouble, self._now(), about.name))

    def _note(self, uid: str, note: _Note) -> None:
        before = self._notes.get(uid)
        if before is not None and before.source != note.source:  # a worker may say of any uid what it likes
            self._forget(uid)
        before = self._notes.pop(uid, None)
        if before is not None:
            note = msgspec.structs.replace(note, trouble=pod_trouble.most_said(before.trouble, note.trouble))
        self._notes[uid] = note
        self._noted.setdefault(note.source, set()).add(uid)
        for oldest in list(islice(self._notes, 2)):
            if self._now() - self._notes[oldest].noted_at > NEWEST_SECONDS or len(self._notes) > MOST_WARNINGS:
                self._forget(oldest)
        if before is None or before.trouble != note.trouble:
            self._host.on_change(note.source)

    def _forget(self, uid: str) -> None:
        if (note := self._notes.pop(uid, None)) is None:
            return
        left = self._noted[note.source]
        left.discard(uid)
        if not left:
            del self._noted[note.source]
        self._host.on_change(note.source)

    # -- what is shown ------------------------------------------------------------------------------------------------

    def obstruction_of(self, source: str, namespace: str, *, is_stalled: bool | None) -> Obstruction | None:
        """What keeps the pods of a source from running, the worst first; None: nothing that is known.

        Args:
            source: its uid.
            namespace: of its mirror: who makes pods in another one may label them as they like.
            is_stalled: since pods have failed none has succeeded, or runs: those that have failed are worth telling.
                None: nobody counts them, so two that are there do.
        """
        waiting, failed = self._troubles_of(source, namespace)
        if waiting and waiting[0][1].reason != Reason.PODS_NOT_READY:
            return self._told(*pod_trouble.first_explained(waiting))
        if failed and (len(failed) > 1 if is_stalled is None else is_stalled):
            return self._told(*failed[-1])
        return self._told(*waiting[0]) if waiting else None

    def failure_of(self, source: str, namespace: str) -> Obstruction | None:
        """Why the pods of a failed source failed, or what they waited for; None: nothing that is known.

        Its arguments are those of ``obstruction_of``.
        """
        waiting, failed = self._troubles_of(source, namespace)
        if failed:
            return self._told(*failed[-1])
        if waiting and waiting[0][1].reason != Reason.PODS_NOT_READY:
            return self._told(*waiting[0])
        past = self._past.get(source)
        if past is None or past.namespace != namespace or past.trouble.has_failed:
            return None  # of pods that have failed it is among those above, while it counts
        return self._told(past.pod, past.trouble)

    def _troubles_of(self, source: str, namespace: str) -> tuple[list[tuple[str, Trouble]], list[tuple[str, Trouble]]]:
        """Of pods that wait, with what says most first, and of pods that have failed, each with the pod's name."""
        waiting: list[tuple[str, Trouble]] = []
        failed: list[tuple[str, Trouble]] = []
        pods = sorted(name for where, name in self._store.names(BY_SOURCE, source) if where == namespace)
        for name in pods[:MOST_COMPARED]:
            if (kept := self._store.get(namespace, name)) is not None:
                trouble = pod_trouble.stored_trouble(kept)
                (failed if trouble.has_failed else waiting).append((name, trouble))
        past = self._past.get(source)
        if not failed and past is not None and past.namespace == namespace and past.trouble.has_failed:
            is_over = self._now() - past.noted_at > NEWEST_SECONDS
            failed += [] if is_over else [(past.pod, past.trouble)]
        for uid in sorted(self._noted.get(source, ())):
            note = self._notes[uid]
            if note.namespace == namespace and self._now() - note.noted_at <= NEWEST_SECONDS:
                waiting.append((note.pod, note.trouble))
        # That one is not ready yet says least: what keeps others from running may be why.
        waiting.sort(key=lambda found: found[1].reason == Reason.PODS_NOT_READY)
        return waiting, failed

    def _told(self, pod: str, trouble: Trouble) -> Obstruction:
        worker = self._host.worker
        what = f"pod {clean(pod)}" if pod else "pods cannot be created"
        text = f"worker {worker}: {what}: {trouble.text}"
        return Obstruction(trouble.reason, text, is_of_ended_pods=trouble.has_failed)

    def _now(self) -> float:
        return self._host.clock.monotonic()

    def _on_refused(self, error: KubeError, what: str = "pods are not watched") -> None:
        if isinstance(error, Forbidden) and not self._is_refused:  # other errors are reported for the worker itself
            self._is_refused = True
            self._log.warning(what, worker=self._host.worker, error=error)

    def _on_healthy(self) -> None:
        self._is_refused = False
