"""The workers of one slot: none of them is a cluster that a worker of another slot has (D19, S2)."""

from __future__ import annotations

import msgspec

from mirror.workers.connection import State
from mirror.workers.inventory import IdentityRejected
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker


class SlotRegistry(Registry):
    """As ``Registry``, beside those of the other slots, whose entries are read anew when a cluster is met first.

    Each entry is written upon a version of which all others are known: of two who write down one cluster at once, the
    later one knows the other's then, and withdraws.
    """

    async def accept_identity(self, worker: Worker, uid: str) -> None:
        if self._record.has_uid(worker.name, uid):
            try:
                await super().accept_identity(worker, uid)
            except IdentityRejected:
                await self._accept_again(worker, uid)
            return
        await self._record.refresh()
        is_new = self._record.known.entry(worker.name).uid != uid
        try:
            await super().accept_identity(worker, uid)
            self._record.known.check_alone(worker.name, uid)
        except BaseException:  # cancelled, or not stored as far as we know: it may be all the same
            if is_new:
                self._withdraw(worker, uid)
            raise

    async def _accept_again(self, worker: Worker, uid: str) -> None:
        """What was known of others may be old; of two that have one cluster, who was never connected withdraws."""
        await self._record.refresh()
        try:
            await super().accept_identity(worker, uid)
        except IdentityRejected:
            known = self._record.known
            other = known.entry(known.registered_as(worker.name, uid) or "")
            if known.entry(worker.name).state != State.CONNECTED.value == other.state:
                self._withdraw(worker, uid)
            raise

    def _withdraw(self, worker: Worker, uid: str) -> None:
        """It is not this cluster, if that is what is known of it; written soon."""
        entry = self._record.known.entry(worker.name)
        if entry.uid == uid:
            self._record.put(worker.name, msgspec.structs.replace(entry, uid=""))
