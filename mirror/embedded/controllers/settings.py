"""How controllers behave, as a value."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything has upstream's default; times are in seconds."""

    nodes: tuple[str, ...] = ("node-0",)
    """The nodes that the kubelet of this control plane plays."""
    has_pod_events: bool = True
    """Whether the scheduler and kubelets tell events about each pod, as real ones do."""
    folder: Path | None = None
    """Where the files of ``--pods=process`` go; None: a temporary folder that is removed at the end."""
    lease_seconds: int = 40
    """How long a node's Lease lasts; it is renewed four times as often."""
    node_grace_seconds: float = 50.0
    """A node of which nothing was heard for so long is NotReady."""
    quarantine_seconds: float = 40.0
    """How long pods stay whose node does not exist."""
    collected: frozenset[str] | None = None
    """The plurals of the kinds that garbage collection follows; None: all. Others are neither owners nor owned to it,
    like the ignored resources of kube-controller-manager."""
