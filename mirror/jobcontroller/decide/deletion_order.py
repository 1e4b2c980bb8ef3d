"""Which active pods go first (A4): those that have got least far."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypeAlias

from mirror.jobcontroller.decide.values import Pod

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_Rank: TypeAlias = tuple[bool, int, bool, float, int, int, float]


def in_order(pods: Iterable[Pod]) -> list[Pod]:
    """The pods, the first to be deleted first."""
    return sorted(pods, key=_rank)


def _rank(pod: Pod) -> _Rank:
    restarts = sidecar_restarts = 0
    for one in pod.containers:
        if not one.is_init:
            restarts = max(restarts, one.restarts)
        elif one.is_sidecar:
            sidecar_restarts = max(sidecar_restarts, one.restarts)
    return (
        bool(pod.node),
        _PHASES.get(pod.phase, 0),
        pod.is_ready,
        _newest_first(_ready_since(pod)) if pod.is_ready else 0.0,
        -restarts,
        -sidecar_restarts,
        _newest_first(pod.created),
    )


def _ready_since(pod: Pod) -> datetime | None:
    return next((one.since for one in pod.conditions if one.type == "Ready" and one.status == "True"), None)


def _newest_first(at: datetime | None) -> float:
    return float("-inf") if at is None else -at.timestamp()
