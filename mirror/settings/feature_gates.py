"""Feature gates of Kubernetes 1.36 that concern its Job controller and that ours does not have as switches. Pure.

An operator who moves here brings the flags of kube-controller-manager along. A gate that is given its default, or that
changes nothing of what Jobs do here, is a warning; an error only where ignoring it would change what Jobs do. Gates
that ours has are ``settings.rules.FEATURE_GATES``. Used by ``settings.rules`` and ``jobcontroller.constants``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpstreamGate:
    """One gate of upstream's (``pkg/features/kube_features.go``, and client-go's)."""

    default: bool
    matters_if: bool | None
    """The value that changes what Jobs do and that ours does not follow; None: neither does."""
    here: str
    """How it is here, as the end of a sentence about the Job controller."""


UPSTREAM_GATES: Mapping[str, UpstreamGate] = {
    "AllAlpha": UpstreamGate(False, True, "alpha gates are not implemented"),
    "AllBeta": UpstreamGate(False, False, "beta gates are switched one by one"),
    "AtomicFIFO": UpstreamGate(True, None, "its informers are always in order"),
    "GangScheduling": UpstreamGate(False, None, "it is the scheduler's"),
    "SidecarContainers": UpstreamGate(True, False, "sidecar containers are always supported"),
    "StaleControllerConsistencyJob": UpstreamGate(True, None, "it always waits until it has seen its own writes"),
}
"""By name. An ``AllBeta`` of false switches every beta gate off upstream, those that are on for Jobs included."""


def judge_gate(name: str, on: bool) -> tuple[str, bool] | None:
    """What to say of a gate that is no switch here, and whether that is an error; None: upstream has no such gate."""
    gate = UPSTREAM_GATES.get(name)
    if gate is None:
        return None
    said = f"{name}={str(on).lower()}"
    if on is gate.matters_if:  # before its default: an explicit AllBeta=false is more than leaving it out
        return f"{said} is not supported, and Jobs would behave otherwise without it: {gate.here}; remove it", True
    if on is gate.default:
        return f"{said} is ignored, it is the default: {gate.here}", False
    return f"{said} is ignored, it has no effect here: {gate.here}", False
