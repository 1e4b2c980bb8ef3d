"""How a sync behaves where there is more to do than may be done: turns that end in time, no write that another makes
needless.

Where neither the limit nor the server is what everybody waits for, everything is as upstream does it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mirror.jobcontroller.decide.values import Constants
from mirror.jobcontroller.parallel_requests import ParallelRequests
from mirror.kube.client import Client

TURN_SECONDS = 2.0
SHORTEST_TURN = 20
"""Pods. A turn costs a status write besides two requests per pod: shorter ones would cost throughput."""


class Pace:
    """Asked by each sync."""

    def __init__(self, client: Client, parallel: ParallelRequests, *, behind: Callable[[], bool]) -> None:
        """Put together what it asks.

        Args:
            client: whose rate limit counts.
            parallel: how much is under way.
            behind: whether Jobs wait for a sync while as many as may be are being synced.
        """
        self._client = client
        self._parallel = parallel
        self._is_behind = behind

    def may_put_off(self) -> bool:
        """Whether a status write that is not urgent should be left to the next one: while requests wait."""
        return self._client.is_saturated or self._parallel.is_crowded or self._is_behind()

    def turn(self, constants: Constants) -> Constants:
        """The constants of one turn: a big Job takes as many pods as the limit lets through in some seconds.

        While nobody waits they are the settings': there is nobody to let pass.
        """
        if not self._client.is_saturated:
            return constants
        limits = self._client.describe().limits
        if not limits.qps:
            return constants
        most = max(SHORTEST_TURN, int(limits.qps * TURN_SECONDS))
        if most >= max(constants.max_pod_create_delete_per_sync, constants.max_uncounted_pods):
            return constants
        return msgspec.structs.replace(
            constants,
            max_pod_create_delete_per_sync=min(constants.max_pod_create_delete_per_sync, most),
            max_uncounted_pods=min(constants.max_uncounted_pods, most),
        )
