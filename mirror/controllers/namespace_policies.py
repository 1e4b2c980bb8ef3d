"""What the management cluster's Namespaces say of lost workers, where ``workers.onLossOfNamespaces`` asks for it (D14).

A watch of Namespaces, while we lead. A Job needs what its Namespace says long before a loss, since a lease is put on
while its worker is reachable; so that is kept, and not read when it is too late. Used by ``observing``. Not here: what
holds of what is said (``decide/loss_policies``).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from mirror.controllers.sources import Sources
from mirror.controllers.state import Intake
from mirror.decide.snapshot import Policy
from mirror.kinds.own_annotations import OF_USERS, wrong_names
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import NAMESPACES
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.model.losses import UNREAD, OnLoss, OnNamespace, loss_policy
from mirror.model.reasons import Reason
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.events import WARNING, Regarding
from mirror.runtime.informer import Change, Filter, Informer, InformerHooks, Scope
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

FIRST_READ_SECONDS = 5.0
"""For so long nothing is placed that a Namespace might say something about."""


OTHERS = tuple(name for name in OF_USERS if name != names.ON_WORKER_LOSS)
"""Of Jobs: what they mean on a Namespace, nobody has said, so nothing is said of them."""


def mistakes_of(namespace: Object) -> tuple[str, ...]:
    """Annotations that look like ours, and mean nothing: most likely misspelt."""
    return wrong_names(namespace.annotations, (names.ON_WORKER_LOSS,), others=OTHERS)


def said_by(namespace: Object | None) -> str | None:
    """What a Namespace says; None: nothing."""
    return None if namespace is None else namespace.annotations.get(names.ON_WORKER_LOSS)


class NamespacePolicies:
    """By namespace; what has not been read, or may not be, is ``UNREAD``: the safest holds."""

    def __init__(
        self,
        management: Client,
        policy: Policy,
        sources: Sources,
        intake: Intake,
        *,
        recorder: EventRecorder,
        log: Log,
    ) -> None:
        self._policy = policy
        self._sources = sources
        self._intake = intake
        self._recorder = recorder
        self._log = log
        self._is_failing = False
        self._has_read = False
        self._store = Store()
        self._informer = Informer(
            Scope(NAMESPACES),
            self._store,
            client=lambda: management,
            hooks=InformerHooks(self._on_change, on_trouble=self._on_trouble, on_healthy=self._on_read),
            wanted=Filter(accept=lambda found: names.ON_WORKER_LOSS in found.annotations or bool(mistakes_of(found))),
        )

    def of(self, namespace: str) -> OnNamespace:
        """What it says of its Jobs' lost workers."""
        if not self._informer.is_synced:
            return UNREAD
        return said_by(self._store.get("", namespace))

    async def run(self) -> None:
        """Keep what they say, until cancelled."""
        self._informer.expire()
        self._has_read = False
        await self._informer.run()

    async def wait_until_read(self) -> None:
        """For the first time since we lead; not for long, since we may lack the permission."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_READ_SECONDS):
                await self._informer.wait_until_synced()

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        if new is not None and (old is None or old.annotations != new.annotations):
            self._point_out(new, mistakes_of(new))
        if found is None or said_by(old) == said_by(new):
            return
        if new is not None:
            self._point_out_mistake(new)
        if self._has_read:  # else all of them are looked at once it has
            self._wake_sources(found.metadata.name)

    def _on_read(self) -> None:
        if not self._has_read:
            self._wake_sources("")
        self._has_read, self._is_failing = True, False

    def _on_trouble(self, error: KubeError) -> None:
        if not self._is_failing:
            self._log.warning("Namespaces not read", error=error)
        self._is_failing = True

    def _wake_sources(self, namespace: str) -> None:
        """Those in this namespace, or all of them, that are not over: a lease may be put on or taken off."""
        what = f"sources in namespace {namespace}" if namespace else "sources by what namespaces say"
        self._intake.go_over(what, partial(self._sources.keys_in, namespace), self._wake_source)

    def _wake_source(self, key: SourceKey) -> None:
        source = self._sources.get(key)
        if source is not None and not self._sources.kinds[key.kind].summary(source).is_finished:
            self._intake.add_when_quiet(key)

    def _point_out_mistake(self, namespace: Object) -> None:
        """In the namespace itself, where its author looks; each Job there says it as well, once its worker is lost."""
        policy = self._policy
        mistake = loss_policy(None, said_by(namespace), default=policy.on_loss, allowed=policy.on_loss_allowed).mistake
        self._point_out(
            namespace, (f"annotation {names.ON_WORKER_LOSS}: {mistake}; {OnLoss.WAIT} holds",) if mistake else ()
        )

    def _point_out(self, namespace: Object, mistakes: tuple[str, ...]) -> None:
        if mistakes:
            metadata = namespace.metadata
            regarding = Regarding(NAMESPACES, metadata.name, metadata.name, metadata.uid, metadata.resource_version)
            self._recorder.event(regarding, WARNING, Reason.UNKNOWN_ANNOTATION, "; ".join(mistakes))
