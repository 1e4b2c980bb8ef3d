"""The workers of one slot: none of them is a cluster that a worker of another slot has (D19, S2)."""

from __future__ import annotations

import msgspec

from mirror.kube import requests
from mirror.kube.errors import NotFound
from mirror.kube.resources import CONFIGMAPS
from mirror.workers.inventory import FORMER, Entry, IdentityRejected, WorkerInventory
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker


class SlotRegistry(Registry):
    """As ``Registry``, beside those of the other slots, whose records it reads when it meets a cluster first.

    Who writes down a cluster looks at the others' records before and after: of two that do so at once, the one that has
    written later sees the other, and withdraws.
    """

    async def accept_identity(self, worker: Worker, uid: str) -> None:
        if self._record.has_uid(worker.name, uid):
            await super().accept_identity(worker, uid)
            return
        others = await self._read_others()
        _check(others, uid)
        if (former := others.entries.get(FORMER + uid)) is not None:
            # It was a worker of another slot by another name: its mirrors are where they were.
            self._record.known.put(FORMER + uid, former)
        await super().accept_identity(worker, uid)
        try:
            _check(await self._read_others(), uid)
        except IdentityRejected:
            entry = self._record.known.entry(worker.name)
            self._record.put(worker.name, msgspec.structs.replace(entry, uid=""))
            await self._record.write()
            raise

    async def _read_others(self) -> WorkerInventory:
        """What the other slots' records say, now."""
        entries: dict[str, Entry] = {}
        share, namespace = self._settings.share, self._settings.namespace
        for record in sorted(share.beside):
            try:
                found = await self._management.send_object(requests.get(CONFIGMAPS, record, namespace=namespace))
            except NotFound:
                continue
            entries.update(WorkerInventory.of(found).entries)
        return WorkerInventory(entries)


def _check(others: WorkerInventory, uid: str) -> None:
    """Whether a cluster is nobody's there.

    Raises:
        IdentityRejected: it is another worker's.
    """
    for name, entry in sorted(others.entries.items()):
        if entry.uid == uid and not name.startswith(FORMER):
            raise IdentityRejected(f"this cluster is registered already, as worker {name}")
