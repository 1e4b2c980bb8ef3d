"""What the settings say that mirroring needs. Pure; made from the configuration file for ``wiring``, or by tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from mirror.controllers.multikueue import MultiKueue
from mirror.decide.snapshot import Policy
from mirror.kinds import registry
from mirror.kinds.base import MirrorTransform
from mirror.kinds.dependencies import DependencyPolicy
from mirror.kinds.registry import Kinds
from mirror.kube.resources import CONFIGMAPS, SECRETS, SERVICE_ACCOUNTS
from mirror.model.losses import OnLoss
from mirror.model.terms import NO_TERMS, Terms
from mirror.placement.policy import DEFAULT, PlacementPolicy, policy_of
from mirror.settings.mirror_rules import pairs_of
from mirror.settings.schema import ClusterProfiles, SecretSource, Settings
from mirror.sharding.share import EVERYTHING, Share
from mirror.workers.inventory_record import LEASE_SECONDS


@dataclass(frozen=True, slots=True)
class MirroringSettings:
    """Each field is a setting's, or was found out of the management cluster, or says which part of the work it is."""

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
    lease_seconds: float = LEASE_SECONDS
    """How long whoever leads, or holds a slot, may go on at most without a renewal (S10)."""
    multikueue: MultiKueue | None = None
    """What of the management cluster may run objects of some kinds, too; None: nothing."""


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
            frozenset(map(OnLoss, settings.workers.on_loss_allowed)),
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
        lease_seconds=settings.leader_election.lease_duration_seconds,
    )


def _kinds(settings: Settings) -> Kinds:
    """What is in code, and what else is named or declared."""
    if not settings.kinds:
        return registry.BUILT_IN
    from mirror.kinds.declared.choosing import kinds_of  # only where there are some

    return kinds_of(settings.kinds)


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
