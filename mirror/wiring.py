"""Builds mirroring with all its parts from settings: the one place that knows which part needs which.

``app`` uses it, and so does every test that runs a whole manager. What each part does is said there; here is only the
order in which they are made, so that each gets what it needs and nothing is set afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mirror.controllers import reading_workloads
from mirror.controllers.applying import Applier
from mirror.controllers.assigning import Assigner
from mirror.controllers.comparing import Comparison
from mirror.controllers.events import event_recorder, warn_about_source, warn_about_worker
from mirror.controllers.history import History
from mirror.controllers.leases import Leases
from mirror.controllers.memory import Memories
from mirror.controllers.mirroring import Mirroring, MirroringParts
from mirror.controllers.move_turns import ManagementAbsence, MoveTurns
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
from mirror.controllers.returning import Returning
from mirror.controllers.routes import Routes
from mirror.controllers.sources import Sources
from mirror.controllers.state import Intake, MirroringState
from mirror.controllers.stopped_kinds import StoppedKinds
from mirror.controllers.sweeping import DueSweeps, Sweeper
from mirror.controllers.unclaimed import Unclaimed
from mirror.controllers.vanishing import Vanishing
from mirror.controllers.watching_sources import source_informers
from mirror.controllers.worker_rounds import Reading, WorkerRounds
from mirror.controllers.write_context import WriteContext
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.controllers.writing_sources import SourceWriter
from mirror.decide.snapshot import Policy
from mirror.kinds import registry
from mirror.kinds.base import MirrorTransform
from mirror.kinds.dependencies import DependencyPolicy
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.resources import CONFIGMAPS, SECRETS, SERVICE_ACCOUNTS
from mirror.model.keys import Key
from mirror.model.losses import OnLoss
from mirror.model.terms import NO_TERMS, Terms
from mirror.placement.policy import DEFAULT, PlacementPolicy, Score, policy_of
from mirror.runtime.environment import Environment
from mirror.runtime.queue import WorkQueue
from mirror.settings.mirror_rules import pairs_of
from mirror.settings.schema import ClusterProfiles, SecretSource, Settings
from mirror.sharding.share import EVERYTHING, Share
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


@dataclass(frozen=True, slots=True)
class MirroringSettings:
    """What the settings say that mirroring needs."""

    namespace: str
    """Where Secrets and the record of workers are."""
    management_uid: str
    """Of the management cluster."""
    managed_by: str
    transform: MirrorTransform
    policy: Policy
    closed_namespaces: tuple[str, ...]
    kinds: Kinds = field(default_factory=lambda: registry.BUILT_IN)
    namespaces: tuple[str, ...] = ()
    create_namespaces: bool = False
    sweep_interval_seconds: float = 60.0
    dependency_interval_seconds: float = 60.0
    keep_history: bool = False
    """Whether anybody can ask what happened to a Job."""
    secret_sources: tuple[SecretSource, ...] = ()
    cluster_profiles: ClusterProfiles = field(default_factory=ClusterProfiles)
    placement: PlacementPolicy = DEFAULT
    priority_classes: bool = False
    read_workloads: bool = False
    move_rate: float = 5.0
    """Jobs moved a second from lost workers."""
    suspends_losers: bool = False
    """Copies that were left there are suspended, not deleted."""
    on_loss_of_namespaces: bool = False
    """Namespaces are read for their policy."""
    share: Share = EVERYTHING
    """Which workers, and the sources that are placed on them (S1)."""
    terms: Terms = NO_TERMS


def mirroring_settings(settings: Settings, *, management_uid: str, server_knows_rule_names: bool) -> MirroringSettings:
    """As the configuration file has them.

    Raises:
        BadKinds: ``settings.kinds`` names or declares one that cannot be mirrored.
    """
    mirrors = settings.mirrors
    return MirroringSettings(
        namespace=settings.namespace,
        management_uid=management_uid,
        managed_by=settings.managed_by,
        transform=MirrorTransform(
            origin=settings.origin or management_uid,
            management_uid=management_uid if settings.origin not in ("", management_uid) else "",
            strip_labels=mirrors.strip.labels,
            strip_annotations=mirrors.strip.annotations,
            set_labels=tuple(mirrors.set.labels.items()),
            set_annotations=tuple(mirrors.set.annotations.items()),
            strip_node_selectors=mirrors.strip.node_selectors,
            strip_tolerations=mirrors.strip.tolerations,
            replace_node_selectors=pairs_of(mirrors.replace.node_selectors),
            label_pods=settings.workers.watch_pods == "labelled",
            server_knows_rule_names=server_knows_rule_names,
            dependencies=_dependency_policy(settings),
            fence_ttl_seconds=int(settings.workers.fence_ttl_seconds),
        ),
        policy=Policy(
            settings.workers.lost_after_seconds,
            mirrors.retention_seconds,
            OnLoss(settings.workers.on_loss),
            frozenset(map(OnLoss, settings.losses_allowed)),
            settings.workers.move_limit,
            settings.workers.seed_progress,
            int(settings.workers.fence_ttl_seconds),
            settings.placement.retry_after_seconds,
        ),
        move_rate=settings.workers.move_rate,
        suspends_losers=settings.workers.losers == "suspend",
        on_loss_of_namespaces=settings.workers.on_loss_of_namespaces,
        closed_namespaces=("kube-*", settings.namespace),
        kinds=_kinds(settings),
        namespaces=settings.namespaces,
        create_namespaces=settings.workers.create_namespaces,
        sweep_interval_seconds=settings.sweep.interval_seconds,
        dependency_interval_seconds=settings.dependencies.interval_seconds,
        keep_history=settings.access.enabled or settings.page.enabled,
        secret_sources=settings.workers.secret_sources,
        cluster_profiles=settings.workers.cluster_profiles,
        placement=policy_of(settings.placement),
        priority_classes=settings.placement.priority_classes,
        read_workloads=settings.workers.read_workloads,
    )


def _kinds(settings: Settings) -> Kinds:
    """What is in code, and what else is named or declared."""
    if not settings.kinds:
        return registry.BUILT_IN
    from mirror.kinds.declared.choosing import kinds_of  # only where there are some

    return kinds_of(settings.kinds)


def _recorded(kinds: Kinds) -> str:
    """What operators' commands are told of them; nothing of those in code, which they know."""
    if len(kinds.by_name) == len(registry.BUILT_IN.by_name):
        return ""
    from mirror.kinds.declared.recorded import text_of  # only where there are some

    return text_of(kinds)


def _dependency_policy(settings: Settings) -> DependencyPolicy:
    """What goes along; never from namespaces where credentials of workers are: our own, and those that declare some."""
    chosen = settings.dependencies
    allowed = {
        CONFIGMAPS.kind: chosen.config_maps,
        SECRETS.kind: chosen.secrets,
        SERVICE_ACCOUNTS.kind: chosen.service_accounts,
    }
    kinds = frozenset(kind for kind, is_on in allowed.items() if is_on)
    workers = settings.workers
    declaring = [*(of for source in workers.secret_sources for of in source.namespaces)]
    declaring += workers.cluster_profiles.namespaces if workers.cluster_profiles.enabled else ()
    return DependencyPolicy(kinds, chosen.namespaces, closed=(settings.namespace, *dict.fromkeys(declaring)))


def build_mirroring(
    management: Client,
    settings: MirroringSettings,
    *,
    connector: Connector,
    environment: Environment,
    traces: Traces | None = None,
) -> Mirroring:
    """Mirroring, and the registry of workers that belongs to it; nothing runs yet."""
    workers: dict[str, Worker] = {}
    state = _state(settings, workers, environment)
    recorder = event_recorder(
        management, clock=environment.clock, log=environment.log, turn=state.queue.wait_until_quiet
    )
    due = DueSweeps()
    warn = partial(warn_about_source, recorder)
    unclaimed = Unclaimed(management, warn, managed_by=settings.managed_by, clock=environment.clock)
    vanishing = Vanishing(management, log=environment.log) if any(one.can_vanish for one in settings.kinds) else None
    doubt = vanishing.add if vanishing is not None else None
    routes = Routes(state, due, managed_by=settings.managed_by, unclaimed=unclaimed, doubt=doubt)
    absence = ManagementAbsence(environment.clock)
    informers = source_informers(management, state, routes, absence, settings.namespaces)
    registry = _registry_of(settings.share)(
        management,
        RegistrySettings(
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
        ),
        workers,
        hooks=RegistryHooks(routes, informers.wait_until_synced, partial(warn_about_worker, recorder)),
        connector=connector,
        environment=environment,
    )
    writes = WriteContext(state, management, recorder, routes.take_source, settings.create_namespaces, traces)
    policy = settings.transform.dependencies
    dependencies: Dependencies | None = None
    rounds: DependencyRounds | None = None
    if policy is not None and policy.kinds:
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
    leases = Leases(writes, registry, ttl_seconds=settings.policy.fence_ttl_seconds)
    mirrors = MirrorWriter(writes, leases, dependencies)
    returning = Returning(writes, mirrors, suspends=settings.suspends_losers)

    def warn_lost(worker: str, reason: str, text: str) -> None:
        if (origin := registry.origin_of(worker)) is not None:
            warn_about_worker(recorder, origin, reason, text)

    namespaces: NamespacePolicies | None = None
    if settings.on_loss_of_namespaces:
        from mirror.controllers.namespace_policies import NamespacePolicies  # only where they are read

        wake, log = state.intake.add_when_quiet, environment.log
        namespaces = NamespacePolicies(
            management, settings.policy, state.sources, wake=wake, recorder=recorder, log=log
        )
    moves = MoveTurns(workers, rate=settings.move_rate, environment=environment, absence=absence, warn=warn_lost)
    return Mirroring(
        MirroringParts(
            state=state,
            registry=registry,
            informers=informers,
            routes=routes,
            preparer=Preparer(state, registry),
            observer=Observer(
                state,
                replace(settings.policy, manager=settings.namespace),
                moves,
                leases,
                have_workers_settled=registry.have_settled,
                on_loss_of=namespaces.of if namespaces is not None else _says_nothing,
            ),
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


def _says_nothing(namespace: str) -> None:
    """What a Namespace says of lost workers where that is not read."""


def _priority_classes(
    management: Client, settings: MirroringSettings, state: MirroringState
) -> PriorityClassRounds | None:
    if not settings.priority_classes:
        return None
    on_change = state.assigner.wake_all
    return PriorityClassRounds(management, state.priorities, environment=state.environment, on_change=on_change)


def _worker_rounds(settings: MirroringSettings, state: MirroringState) -> tuple[WorkerRounds[Any], ...]:
    """For each score that has to be read on workers, and for what their queues say."""
    readings = {
        Score.QUOTA: ("ResourceQuotas", read_quotas),
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


def _state(settings: MirroringSettings, workers: dict[str, Worker], environment: Environment) -> MirroringState:
    """What is known, of nothing so far."""
    clock = environment.clock
    policy = settings.placement
    sources = Sources(settings.kinds, by_uid=settings.transform.label_pods, stalled=policy.uses(Score.READINESS))
    queue: WorkQueue[Key] = WorkQueue(sources.lane_of, clock=clock)
    intake = Intake(queue)
    candidates = Candidates(sources, workers, settings.closed_namespaces, policy)
    assigner = Assigner(candidates, wake=intake.add, clock=clock, policy=policy)
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
        candidates=candidates,
        memories=memories,
        refusals=Refusals(memories, clock, intake.add),
        comparison=Comparison(memories, settings.transform, managed_by=settings.managed_by),
        pending=PendingChanges(clock),
        assigner=assigner,
        priorities=Priorities(),
        workload_reasons=WorkloadReasons(sources, intake.add) if settings.read_workloads else None,
        history=History(clock, is_kept=settings.keep_history, why_there=partial(why_there, assigner)),
        queue=queue,
        intake=intake,
        stopped=StoppedKinds(clock),
    )
