"""What handlers and the store need of an API server; neither ``registry`` nor ``watch`` nor ``crds`` knows it whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from mirror.batch import times
from mirror.batch.feature_gates import FeatureGates
from mirror.embedded.apiserver.admission.chain import Admission
from mirror.embedded.apiserver.apimachinery.kinds import Registry
from mirror.embedded.apiserver.apimachinery.objects import new_uid
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.authz.authorizer import Authorizer
from mirror.embedded.apiserver.messages import Answer, User
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.side_thread import SideThread
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.podlogs import PodLogs
from mirror.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class Dependencies:
    """One API server's, from the beginning of a request to its end."""

    registry: Registry
    storage: Storage
    admission: Admission
    authorizer: Authorizer
    clock: Clock
    random: Random
    gates: FeatureGates
    logs: PodLogs | None = None
    """What containers have written; None: nobody runs any."""
    side_thread: SideThread | None = None
    """Where pure steps of large requests run; None: in the loop."""

    def context(self, user: User, *, is_dry_run: bool) -> Context:
        """What rules may know, at this moment."""
        now = times.of(self.clock.now())
        return Context(now=now, uid=new_uid(self.random), user=user, gates=self.gates, is_dry_run=is_dry_run)


Action: TypeAlias = Callable[[Dependencies, RequestScope, Context], Awaitable[Answer]]
"""Serves a subresource, or a kind, whose objects are not just read and written."""
