"""The workers of one slot: none of them is a cluster that a worker of another slot has (D19, S2)."""

from __future__ import annotations

import msgspec

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
            await super().accept_identity(worker, uid)
            return
        await self._record.refresh()
        await super().accept_identity(worker, uid)
        try:
            self._record.known.check_alone(worker.name, uid)
        except IdentityRejected:
            entry = self._record.known.entry(worker.name)
            self._record.put(worker.name, msgspec.structs.replace(entry, uid=""))
            if self.is_leading:
                await self._record.write()
            raise
