"""How a sync behaves while requests wait for the rate limit: shorter turns, no write that another makes needless.

While nothing waits, everything is as upstream does it.
"""

from __future__ import annotations

import msgspec

from mirror.jobcontroller.decide.values import Constants
from mirror.kube.client import Client

TURN_SECONDS = 2.0
SHORTEST_TURN = 20
"""Pods. A turn costs a status write besides two requests per pod: shorter ones would cost throughput."""


class Pace:
    """Asked by each sync."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def may_put_off(self) -> bool:
        """Whether a status write that is not urgent should be left to the next one."""
        return self._client.is_saturated

    def turn(self, constants: Constants) -> Constants:
        """The constants of one turn. A big Job takes about as many pods as the limit lets through in some seconds."""
        if not self._client.is_saturated:
            return constants
        qps = self._client.describe().limits.qps
        if not qps:
            return constants
        most = max(SHORTEST_TURN, int(qps * TURN_SECONDS))
        return msgspec.structs.replace(
            constants,
            max_pod_create_delete_per_sync=min(constants.max_pod_create_delete_per_sync, most),
            max_uncounted_pods=min(constants.max_uncounted_pods, most),
        )
