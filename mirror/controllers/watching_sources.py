"""The watches of sources on the management cluster. Made by ``wiring``; what they show goes to ``routes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mirror.controllers.management_absence import ManagementAbsence
from mirror.controllers.routes import Routes
from mirror.controllers.state import MirroringState
from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds, resource_name
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.runtime.backoff import Backoff
from mirror.runtime.discovering import Discovery
from mirror.runtime.informer import Filter, Informer, InformerHooks, Scope
from mirror.runtime.informers import Informers, WatchRefusals
from mirror.telemetry.logs import Log
from mirror.workers.known_workers import Workers

# Workers are probed and their watches nudged; nobody does that for the management cluster, so its watch asks often.
RELIST = Backoff(first=0.8, most=4.0, jitter=0.3)


def source_informers(
    management: Client,
    state: MirroringState,
    routes: Routes,
    absence: ManagementAbsence,
    namespaces: Sequence[str],
) -> Informers:
    """One watch for each kind, or for each kind and namespace."""
    accepts = routes.is_ours if state.share.assigns else partial(_is_of_slot, state, routes)
    log, kinds = state.environment.log, state.sources.kinds
    refusals, discovery = WatchRefusals(log), _discovery(management, kinds, log)

    def hooks_of(kind: Kind, namespace: str | None) -> InformerHooks:
        what = resource_name(kind) + (f" in namespace {namespace}" if namespace else "")

        def on_trouble(error: KubeError) -> None:
            absence.note(kind.name, error)
            refusals.on_trouble(what, error)

        usual = InformerHooks(
            partial(routes.on_source, kind),
            partial(routes.on_event, kind),
            on_trouble=on_trouble,
            on_healthy=partial(refusals.on_listed, what),
        )
        if discovery is None or not kind.can_vanish:
            return usual
        wait = partial(discovery.wait_until_served, kind.resource)
        return replace(usual, on_absent=partial(_warn_absent, log, kind), wait_until_served=wait)

    def informer_of(kind: Kind, namespace: str | None) -> Informer:
        informer = Informer(
            Scope(kind.resource, namespace),
            state.sources.of(kind),
            client=lambda: management,
            hooks=hooks_of(kind, namespace),
            wanted=Filter(accept=partial(accepts, kind)),
            relist=RELIST,
        )
        if kind.can_move:
            absence.follow(kind.name, lambda: informer.silent_for_seconds)
        return informer

    return Informers(
        {
            f"{kind.resource.plural} {number}": informer_of(kind, namespace)
            for kind in kinds
            for number, namespace in enumerate(namespaces or (None,))
        },
        log=log,
        on_restart=state.environment.metrics.on_task_restart,
        refusals=refusals,
        discovery=discovery,
    )


def _discovery(management: Client, kinds: Kinds, log: Log) -> Discovery | None:
    """By which kinds are found that come to be served; None where none can."""
    optional = [kind.resource for kind in kinds if kind.can_vanish]
    return Discovery(lambda: management, optional, of_workers=False, log=log) if optional else None


def _warn_absent(log: Log, kind: Kind, error: KubeError) -> None:
    log.warning("kind not served on the management cluster", kind=kind.name, error=error)


def _is_of_slot(state: MirroringState, routes: Routes, kind: Kind, found: Object) -> bool:
    """Whether a source is placed on a slot's workers, or left a copy there; one that goes elsewhere is missing (S1).

    One without a record whose mirror is here is ours, too: nobody else can know where it is.
    """
    if not routes.is_ours(kind, found):
        return False
    summary = kind.summary(found)
    placed, left_on = summary.placed, [left.worker for left in summary.left_behind]
    return state.share.keeps(placed, left_on) or (placed is None and _has_mirror(state.workers, kind, found))


def _has_mirror(workers: Workers, kind: Kind, source: Object) -> bool:
    namespace = source.metadata.namespace
    return any(
        worker.mirrors_of(kind).has_one_of(source, worker.namespace_of(namespace))
        for worker in workers.holders_of(kind, source)
    )
