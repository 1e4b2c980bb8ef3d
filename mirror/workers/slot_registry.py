"""The workers of one slot: none of them is a cluster that a worker of another slot has (D19, S2)."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from mirror.kube import requests
from mirror.kube.errors import NotFound
from mirror.kube.resources import CONFIGMAPS
from mirror.model import names
from mirror.model.drains import MOVING, WAIT
from mirror.workers.inventory import FORMER, Entry, IdentityRejected, WorkerInventory
from mirror.workers.registry import Registry
from mirror.workers.spec import Problem, WorkerSpec
from mirror.workers.worker import SECRET_GONE, Worker

_MOVING = "moves Jobs to other workers, which is not supported yet where sharding.slots is over 1"


class SlotWorker(Worker):
    """A worker whose Jobs nobody can move: its holder assigns them no other one (decision 0025)."""

    def update(self, spec: WorkerSpec | None, *, because: str = SECRET_GONE) -> None:
        super().update(None if spec is None else without_moves(spec), because=because)


def without_moves(spec: WorkerSpec) -> WorkerSpec:
    """The same, where what would move its Jobs is a problem, and keeps new ones away only."""
    if spec.drain not in MOVING and not spec.is_gone:
        return spec
    wanted = ((names.DRAIN, spec.drain in MOVING), (names.GONE, spec.is_gone))
    problems = [Problem(f"metadata.annotations[{name}]", _MOVING) for name, is_set in wanted if is_set]
    return replace(spec, drain=WAIT, is_gone=False, problems=(*spec.problems, *problems))


class SlotRegistry(Registry):
    """As ``Registry``, beside those of the other slots, whose records it reads when it meets a cluster first.

    Who writes down a cluster looks at the others' records before and after: of two that do so at once, the one that has
    written later sees the other, and withdraws.
    """

    _WORKER = SlotWorker

    async def accept_identity(self, worker: Worker, uid: str) -> None:
        if self._record.has_uid(worker.name, uid):
            await super().accept_identity(worker, uid)
            return
        others = await self._read_others()
        _check(others, uid)
        if (former := others.entries.get(FORMER + uid)) is not None:
            # It was a worker of another slot by another name: its mirrors are where they were.
            self._record.known = self._record.known.with_entry(FORMER + uid, former)
        await super().accept_identity(worker, uid)
        try:
            _check(await self._read_others(), uid)
        except IdentityRejected:
            known = self._record.known
            self._record.change(
                known.with_entry(worker.name, msgspec.structs.replace(known.entry(worker.name), uid=""))
            )
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
