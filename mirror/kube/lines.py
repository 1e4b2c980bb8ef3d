"""Who waits for a rate limit, and whose turn it is. Kept by ``limits``; nothing here waits."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TypeAlias

from mirror.kube.requests import Rank

Waiter: TypeAlias = asyncio.Future[None]

PATIENCE_SECONDS = {Rank.SECOND: 1.0, Rank.LAST: 30.0}
"""Who has waited for longer goes before everybody else: a rank may cost time, and must not starve anybody."""


class _Ranked:
    """Those of one rank.

    Invariant: ``by_flow`` holds each waiter of ``oldest_first`` under its flow, and no empty flow.
    """

    __slots__ = ("by_flow", "oldest_first")

    def __init__(self) -> None:
        self.oldest_first: OrderedDict[Waiter, tuple[float, str]] = OrderedDict()
        self.by_flow: OrderedDict[str, OrderedDict[Waiter, None]] = OrderedDict()


class Line:
    """Waiters by rank; within a rank flows take turns, within a flow the oldest is first."""

    def __init__(self) -> None:
        self._ranks = {rank: _Ranked() for rank in Rank}
        self._rank_of: dict[Waiter, Rank] = {}

    def __len__(self) -> int:
        return len(self._rank_of)

    def join(self, waiter: Waiter, rank: Rank, flow: str, now: float) -> None:
        """Stand at the end of one's flow."""
        ranked = self._ranks[rank]
        ranked.oldest_first[waiter] = now, flow
        ranked.by_flow.setdefault(flow, OrderedDict())[waiter] = None
        self._rank_of[waiter] = rank

    def leave(self, waiter: Waiter) -> None:
        """Served, or given up: the others of its flow let the other flows go first. Nothing if it is not in line."""
        rank = self._rank_of.pop(waiter, None)
        if rank is None:
            return
        ranked = self._ranks[rank]
        _, flow = ranked.oldest_first.pop(waiter)
        waiters = ranked.by_flow[flow]
        del waiters[waiter]
        if waiters:
            ranked.by_flow.move_to_end(flow)
        else:
            del ranked.by_flow[flow]

    def whose_turn(self, now: float) -> Waiter:
        """The one to be served next; only while somebody waits."""
        for rank, patience in PATIENCE_SECONDS.items():
            oldest_first = self._ranks[rank].oldest_first
            if oldest_first:
                waiter, (since, _) = next(iter(oldest_first.items()))
                if now - since > patience:
                    return waiter
        by_flow = next(ranked.by_flow for ranked in self._ranks.values() if ranked.by_flow)
        return next(iter(next(iter(by_flow.values()))))
