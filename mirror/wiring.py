"""Builds mirroring with all its parts from settings: the one place that knows which part needs which.

``app`` uses it, and so does every test that runs a whole manager. What each part does is said there; here is only the
order in which they are made, so that each gets what it needs and nothing is set afterwards.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mirror.controllers import reading_workloads
from mirror.controllers.applying import Applier
from mirror.controllers.assigning import Assigner
from mirror.controllers.comparing import Comparison
from mirror.controllers.due_sweeps import DueSweeps
from mirror.controllers.events import event_recorder, warn_about_source, warn_about_worker
from mirror.controllers.history import History
from mirror.controllers.leases import Leases
from mirror.controllers.management_absence import ManagementAbsence
from mirror.controllers.memory import Memories
from mirror.controllers.mirroring import Mirroring, MirroringParts
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.controllers.misspelt import Misspelt
from mirror.controllers.move_turns import MoveScope, MoveTurns
from mirror.controllers.observing import Observer
from mirror.controllers.pending import PendingChanges
from mirror.controllers.preparing import Preparer
from mirror.controllers.priority_classes import Priorities, PriorityClassRounds
from mirror.controllers.reading_cluster_queues import read_cluster_queues
from mirror.controllers.reading_nodes import read_nodes
from mirror.controllers.reading_quotas import read_quotas
from mirror.controllers.reading_workloads import WorkloadReasons
from mirror.controllers.refusals import Refusals
from mirror.controllers.requesting import Candidates, why_there
from mirror.controllers.returning import Returning, has_copy
from mirror.controllers.routes import Routes
from mirror.controllers.sources import Sources
from mirror.controllers.state import Intake, MirroringState
from mirror.controllers.stopped_kinds import StoppedKinds
from mirror.controllers.sweeping import Sweeper
from mirror.controllers.unclaimed import Unclaimed
from mirror.controllers.vanishing import Vanishing
from mirror.controllers.watching_sources import source_informers
from mirror.controllers.worker_rounds import Reading, WorkerRounds
from mirror.controllers.write_context import WriteContext
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.controllers.writing_sources import SourceWriter
from mirror.kinds import registry
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.model.keys import Key
from mirror.placement.policy import Score
from mirror.runtime.environment import Environment
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.queue import WorkQueue
from mirror.runtime.slices import Passes
from mirror.sharding.share import Share
from mirror.workers.known_workers import Workers
from mirror.workers.registry import Registry
from mirror.workers.registry_parts import Connector, RegistryHooks, RegistrySettings
from mirror.workers.remote import RemoteRegistry
from mirror.workers.slot_registry import SlotRegistry
from mirror.workers.worker import Worker

if TYPE_CHECKING:
    from mirror.controllers.dependencies import Dependencies
    from mirror.controllers.dependency_rounds import DependencyRounds
    from mirror.controllers.namespace_policies import NamespacePolicies
    from mirror.controllers.tracing import Traces  # only where traces are wanted


def build_mirroring(
    management: Client,
    settings: MirroringSettings,
    *,
    connector: Connector,
    environment: Environment,
    traces: Traces | None = None,
) -> Mirroring:
    """Mirroring, and the registry of workers that belongs to it; nothing runs yet."""
    workers = Workers(settings.kinds)
    state = _state(settings, workers, environment)
    recorder = event_recorder(
        management, clock=environment.clock, log=environment.log, turn=state.queue.wait_until_quiet
    )
    due, warn = DueSweeps(), partial(warn_about_source, recorder)
    unclaimed = Unclaimed(management, warn, managed_by=settings.managed_by, clock=environment.clock)
    vanishing = Vanishing(management, log=environment.log) if any(one.can_vanish for one in settings.kinds) else None
    doubt = vanishing.add if vanishing is not None else None
    misspelt = Misspelt(warn, settings.share)
    routes = Routes(state, due, managed_by=settings.managed_by, unclaimed=unclaimed, misspelt=misspelt, doubt=doubt)
    absence = ManagementAbsence(environment.clock)
    informers = source_informers(management, state, routes, absence, settings.namespaces)
    registry = _registry_of(settings.share)(
        management,
        _registry_settings(settings),
        workers,
        hooks=RegistryHooks(routes, informers.wait_until_synced, partial(warn_about_worker, recorder)),
        connector=connector,
        environment=environment,
    )
    writes = WriteContext(state, management, recorder, routes.take_source, settings.create_namespaces, traces)
    dependencies, rounds = _dependencies(settings, writes, registry)
    leases = Leases(writes, registry, ttl_seconds=settings.policy.fence_ttl_seconds)
    mirrors = MirrorWriter(writes, leases, dependencies)
    warn_lost = partial(_warn_lost, registry, recorder)
    returning = Returning(writes, mirrors, suspends=settings.suspends_losers, warn=warn_lost)
    namespaces = _namespace_policies(settings, writes)
    moves = _move_turns(settings, state, absence, warn=warn_lost)
    return Mirroring(
        MirroringParts(
            state=state,
            registry=registry,
            informers=informers,
            routes=routes,
            preparer=Preparer(state, registry),
            observer=_observer(settings, state, registry, moves, leases, namespaces),
            writes=writes,
            applier=Applier(writes, SourceWriter(writes, mirrors), mirrors, moves, leases),
            moves=moves,
            leases=leases,
            unclaimed=unclaimed,
            sweeper=Sweeper(state, management, registry, due=due, returning=returning, recorder=recorder),
            sweep_interval_seconds=settings.sweep_interval_seconds,
            priority_classes=_priority_classes(management, settings, state),
            worker_rounds=_worker_rounds(settings, state),
            vanishing=vanishing,
            dependency_rounds=rounds,
            namespace_policies=namespaces,
        )
    )


def _registry_of(share: Share) -> type[Registry]:
    if share.slot is not None:
        return SlotRegistry
    return Registry if share.follows else RemoteRegistry


def _registry_settings(settings: MirroringSettings) -> RegistrySettings:
    return RegistrySettings(
        settings.namespace,
        settings.transform.origin,
        settings.management_uid,
        settings.kinds,
        settings.namespaces,
        secret_sources=settings.secret_sources,
        cluster_profiles=settings.cluster_profiles,
        watch_pods=settings.transform.label_pods,
        recorded_kinds=_recorded(settings.kinds),
        share=settings.share,
        lease_seconds=settings.lease_seconds,
    )


def _dependencies(
    settings: MirroringSettings, writes: WriteContext, registry: Registry
) -> tuple[Dependencies | None, DependencyRounds | None]:
    """What goes along, before a mirror is made and afterwards; nothing where the settings allow none."""
    policy = settings.transform.dependencies
    if policy is None or not policy.kinds:
        return None, None
    from mirror.controllers.dependencies import Dependencies  # only where something goes along
    from mirror.controllers.dependency_rounds import DependencyRounds

    dependencies = Dependencies(writes, policy)
    rounds = DependencyRounds(
        writes,
        dependencies,
        registry,
        policy=policy,
        namespaces=settings.namespaces,
        interval_seconds=settings.dependency_interval_seconds,
    )
    return dependencies, rounds


def _namespace_policies(settings: MirroringSettings, writes: WriteContext) -> NamespacePolicies | None:
    if not settings.on_loss_of_namespaces:
        return None
    from mirror.controllers.namespace_policies import NamespacePolicies  # only where they are read

    state = writes.state
    return NamespacePolicies(
        writes.management,
        settings.policy,
        state.sources,
        state.intake,
        recorder=writes.recorder,
        log=state.environment.log,
    )


def _recorded(kinds: Kinds) -> str:
    """What operators' commands are told of them; nothing of those in code, which they know."""
    if len(kinds.by_name) == len(registry.BUILT_IN.by_name):
        return ""
    from mirror.kinds.declared.recorded import text_of  # only where there are some

    return text_of(kinds)


def _observer(
    settings: MirroringSettings,
    state: MirroringState,
    registry: Registry,
    moves: MoveTurns,
    leases: Leases,
    namespaces: NamespacePolicies | None,
) -> Observer:
    return Observer(
        state,
        replace(settings.policy, manager=settings.namespace),
        moves,
        leases,
        have_workers_settled=registry.have_settled,
        on_loss_of=namespaces.of if namespaces is not None else _says_nothing,
    )


def _move_turns(
    settings: MirroringSettings,
    state: MirroringState,
    absence: ManagementAbsence,
    *,
    warn: Callable[[str, str, str], None],
) -> MoveTurns:
    """When Jobs may be moved, as far as that is this share's to say."""
    return MoveTurns(
        state.workers,
        rate=settings.move_rate,
        environment=state.environment,
        absence=absence,
        warn=warn,
        scope=MoveScope(settings.share, settings.terms),
    )


def _warn_lost(registry: Registry, recorder: EventRecorder, worker: str, reason: str, text: str) -> None:
    """An event on what registers a worker."""
    if (origin := registry.origin_of(worker)) is not None:
        warn_about_worker(recorder, origin, reason, text)


def _says_nothing(namespace: str) -> None:
    """What a Namespace says of lost workers where that is not read."""


def _priority_classes(
    management: Client, settings: MirroringSettings, state: MirroringState
) -> PriorityClassRounds | None:
    if not settings.priority_classes:
        return None
    on_change = state.look_at_waiting
    return PriorityClassRounds(management, state.priorities, environment=state.environment, on_change=on_change)


def _worker_rounds(settings: MirroringSettings, state: MirroringState) -> tuple[WorkerRounds[Any], ...]:
    """For each score that has to be read on workers, and for what their queues say."""
    readings: Mapping[Score, tuple[str, Callable[[Worker], Awaitable[Any]]]] = {
        Score.QUOTA: ("ResourceQuotas", partial(read_quotas, kinds=settings.kinds)),
        Score.CLUSTER_QUEUE: ("ClusterQueues", read_cluster_queues),
    }
    assigner = state.assigner
    found: list[Reading[Any]] = [
        Reading(what, read, partial(assigner.set_shares, score), nothing={})
        for score, (what, read) in readings.items()
        if settings.placement.uses(score)
    ]
    if settings.placement.uses(Score.ALLOCATABLE):
        found.append(Reading("nodes", read_nodes, assigner.set_allocatable, nothing=None))
    if state.workload_reasons is not None:
        told = state.workload_reasons
        found.append(Reading("Workloads", told.read, told.report, {}, reading_workloads.INTERVAL_SECONDS))
    return tuple(WorkerRounds(state.workers, one, environment=state.environment) for one in found)


def _state(settings: MirroringSettings, workers: Workers, environment: Environment) -> MirroringState:
    """What is known, of nothing so far."""
    clock = environment.clock
    policy = settings.placement
    sources = Sources(
        settings.kinds,
        has_copy=partial(has_copy, workers),
        by_uid=settings.transform.label_pods,
        stalled=policy.uses(Score.READINESS),
        requests=not settings.share.follows,
    )
    queue: WorkQueue[Key] = WorkQueue(sources.lane_of, clock=clock)
    intake = Intake(queue, Passes(log=environment.log))
    assigner = Assigner(wake=intake.add, clock=clock, policy=policy)
    sources.report_to(assigner)
    memories = Memories()
    return MirroringState(
        environment=environment,
        share=settings.share,
        terms=settings.terms,
        managed_by=settings.managed_by,
        manager=settings.namespace,
        transform=settings.transform,
        sources=sources,
        workers=workers,
        candidates=Candidates(sources, workers, settings.closed_namespaces, policy),
        memories=memories,
        refusals=Refusals(memories, clock, intake.add),
        comparison=Comparison(memories, settings.transform, managed_by=settings.managed_by),
        pending=PendingChanges(clock),
        assigner=assigner,
        priorities=Priorities(),
        workload_reasons=WorkloadReasons(sources, intake.look) if settings.read_workloads else None,
        history=History(clock, is_kept=settings.keep_history, why_there=partial(why_there, assigner)),
        queue=queue,
        intake=intake,
        stopped=StoppedKinds(clock, workers, settings.multikueue),
    )
