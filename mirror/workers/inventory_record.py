"""Keeps the ConfigMap ``jobmirror-workers`` like the inventory that is known: reading, writing, conflicts (D13, D19).

Used by ``registry``. What an inventory is, and what follows from it, is ``inventory``'s. It is one for any number of
slots: each writes the entries of its own workers, and none while another number is in force (S10, S11, decision 0031).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial

import tenacity

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Conflict, KubeError, NotFound, NotLeading, refusal_of
from mirror.kube.objects import Object
from mirror.kube.resources import CONFIGMAPS
from mirror.model import names
from mirror.sharding.in_force import InForce, Step, next_step, seconds_to_wait, to_write
from mirror.sharding.share import EVERYTHING, Share
from mirror.telemetry.logs import Log
from mirror.workers.inventory import FORMER, NOTHING, Entry, EntryTexts, WorkerInventory, written

RETRY_SECONDS = 1.0
MOST_CONFLICTS = 10
"""So many others may write between our reading and our writing; then it is an error, and tried again later."""
LEASE_SECONDS = 15.0


class InventoryRecord:
    """What is known of all workers, and what of that is written. Only a leader writes it.

    Invariant: ``_written`` is what is stored in the version ``_version``; what differs from it in ``known`` we have
    changed. Of other slots' workers ``known`` has what we read last.
    """

    def __init__(
        self,
        management: Client,
        namespace: str,
        *,
        annotations: Mapping[str, str],
        log: Log,
        share: Share = EVERYTHING,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """``annotations``: written beside the workers, for operators' commands; empty text: it is not there."""
        self.known = WorkerInventory({})
        self._management = management
        self._namespace = namespace
        # Without slots nothing is in force but who leads: what is said of slots afterwards was late.
        self._annotations = {**annotations, names.SLOTS: ""} if share.is_whole else annotations
        self._written_annotations: Mapping[str, str] = {}
        self._log = log
        self._share = share
        self._mine = InForce(share.slot_count, lease_seconds)
        self._in_force: InForce | None = None  # None: there is no record
        self._texts = EntryTexts()
        self._written: dict[str, Entry] = {}
        self._written_texts: dict[str, str] = {}
        self._version = ""
        # Whether what is known may be other than what is written: false once it was written.
        self._is_due = True
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        self.refused_because = ""
        """Why it cannot be read or written, where waiting does not help; empty when it can."""

    def put(self, worker: str, entry: Entry) -> None:
        """This is known of a worker from now on; it is written soon."""
        self.known.put(worker, entry)
        self.write_soon()

    def drop(self, worker: str) -> None:
        """See ``WorkerInventory.drop``; it is written soon."""
        if self.known.drop(worker):
            self.write_soon()

    def forget(self, worker: str, *, at: datetime) -> None:
        """See ``WorkerInventory.forget``; it is written soon."""
        self.known.forget(worker, at=written(at))
        self.write_soon()

    def is_written(self, worker: str) -> bool:
        """Whether what is known of a worker is what is written."""
        return self.known.entries.get(worker) == self._written.get(worker)

    def has_uid(self, worker: str, uid: str) -> bool:
        """Whether it is written that this worker is this cluster."""
        return bool(uid) and self._written.get(worker, NOTHING).uid == uid

    def has_written(self, worker: str, uid: str, prefix: str) -> bool:
        """Whether it is written who a worker is and where its mirrors live."""
        entry = self._written.get(worker, NOTHING)
        return (entry.uid, entry.namespace_prefix) == (uid, prefix)

    def write_soon(self) -> None:
        """What is known may not be written yet."""
        self._is_due = True
        self._changed.set()

    async def read(self) -> None:
        """Know what is written, and nothing else; tries until it can be read."""
        self.known = await self._retrying("workers not read")(self._read_noting)
        self._set_written(dict(self.known.entries))

    async def take_over(self) -> bool:
        """Return once the number of slots of our share is in force; waits for as long as that takes (S10).

        It writes nothing of workers, and says whether others have worked until then: what was read before that has to
        be read anew, as what is written here.
        """
        assigns, waited_for, has_waited = self._share.assigns, None, False
        if assigns and not self._share.is_whole:
            self._mine = self._mine._replace(mark=uuid.uuid4().hex[:8])
        while True:
            await self._retrying("workers not read")(self.refresh)
            found, mine = self._in_force, self._mine
            match next_step(found, mine, assigns=assigns, waited_for=waited_for):
                case Step.BEGIN:
                    return has_waited
                case Step.WRITE:
                    put = partial(self._put, to_write(found, mine, assigns=assigns))
                    await self._retrying("workers not written")(put)
                case Step.WAIT_OUT:
                    assert found is not None
                    seconds, waited_for, has_waited = seconds_to_wait(found, mine), found, True
                    self._log.warning("number of slots changes", before=found.slots, after=mine.slots, seconds=seconds)
                    await asyncio.sleep(seconds)
                case Step.WAIT_FOR_ASSIGNER:
                    has_waited = True
                    await asyncio.sleep(RETRY_SECONDS)

    async def _put(self, in_force: InForce) -> None:
        """Say so upon the version that was read; somebody may have written since, or deleted it."""
        try:
            async with self._writing:
                with self._noting("written"):
                    await self._send({names.SLOTS: str(in_force)}, {})
        except (Conflict, NotFound) as error:
            self._log.info("number of slots not written", error=error)
            await asyncio.sleep(RETRY_SECONDS)

    async def keep(self, *, is_leading: Callable[[], bool]) -> None:
        """Write whatever changes, until cancelled."""

        async def write_if_leading() -> None:
            if is_leading():
                await self.write()

        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._retrying("workers not written")(write_if_leading)

    @contextmanager
    def _noting(self, done: str) -> Iterator[None]:
        """Say in errors what they are about, and keep why it is refused until it works."""
        what = f"ConfigMap {self._namespace}/{names.WORKERS_CONFIGMAP} of the management cluster not {done}"
        try:
            yield
        except KubeError as error:
            refused = refusal_of(error)
            self.refused_because = f"{what}: {refused}" if refused else ""
            error.add_note(what)
            raise
        self.refused_because = ""

    def _retrying(self, failure: str) -> tenacity.AsyncRetrying:
        """Logs a failure of the cluster, or of the way to it, once, and tries again, without an end."""
        logged: set[str] = set()

        def report(state: tenacity.RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            because = self.refused_because or str(error)
            if because not in logged:
                logged.add(because)
                self._log.warning(failure, because=because)

        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(KubeError),
            wait=tenacity.wait_fixed(RETRY_SECONDS),
            before_sleep=report,
        )

    async def write(self) -> None:
        """Write what is known now; nothing where somebody else has done so meanwhile.

        Raises:
            KubeError: it could not be written.
        """
        async with self._writing:
            if not self._is_due:
                return
            self._is_due = False
            try:
                with self._noting("written"):
                    await self._write()
            except BaseException:
                self._is_due = True
                raise

    async def refresh(self) -> None:
        """Know what others have written since, beside what we have changed.

        Raises:
            KubeError: it could not be read.
        """
        async with self._writing:
            self._merge(await self._read_noting())

    async def _write(self) -> None:
        for _ in range(MOST_CONFLICTS):
            try:
                await self._write_changes()
            except (Conflict, NotFound):
                # Somebody else's workers, or somebody edited it, or a leader of before was late (D28): what we know of
                # ours holds, the rest stays.
                self._merge(await self._read())
            else:
                return
        await self._write_changes()

    def _merge(self, found: WorkerInventory) -> None:
        """This is stored now, beside which our changes hold, and all that we know of our own workers."""
        before, known, entries = self._written, self.known.entries, dict(found.entries)
        for name in before.keys() | known.keys():
            if known.get(name) == before.get(name) and not self._is_ours(name):
                continue
            if (entry := known.get(name)) is not None:
                entries[name] = entry
            else:
                entries.pop(name, None)
        self.known = WorkerInventory(entries)
        self._set_written(dict(found.entries))
        if entries != found.entries:
            self.write_soon()

    def _is_ours(self, name: str) -> bool:
        """Whether nobody else writes this entry; those of clusters that are no workers any more are all slots'."""
        return self._share.has(name) and (self._share.slot is None or not name.startswith(FORMER))

    def _may_write(self, name: str) -> bool:
        """Whether an entry is ours, or we have changed it; how short others' are written is not our business."""
        return self._is_ours(name) or self.known.entries.get(name) != self._written.get(name)

    async def _read_noting(self) -> WorkerInventory:
        with self._noting("read"):
            return await self._read()

    async def _read(self) -> WorkerInventory:
        wanted = requests.get(CONFIGMAPS, names.WORKERS_CONFIGMAP, namespace=self._namespace)
        self._version = ""
        try:
            found = await self._management.send_object(wanted)
        except NotFound:
            self._in_force = None
            return WorkerInventory({})
        self._take_metadata(found)
        return WorkerInventory.of(found)

    async def _write_changes(self) -> None:
        known, in_force = dict(self.known.entries), self._in_force
        texts, stored = self._texts.of(known), self._written_texts
        differing = (name for name, text in texts.items() if stored.get(name) != text)
        data: dict[str, str | None] = {name: texts[name] for name in differing if self._may_write(name)}
        data |= {name: None for name in stored if name not in texts}
        if not data and (self._written_annotations == self._annotations or not known):
            self._written = known  # but for what is left out of it
            return
        if self._share.slot is not None and in_force is not None and in_force.slots != self._mine.slots:
            raise NotLeading(
                f"not sent: managers with {in_force.slots} slots work now, and not with {self._mine.slots}"
            )
        await self._send(self._annotations, data)
        self._written, self._written_texts = known, texts

    async def _send(self, annotations: Mapping[str, str], data: Mapping[str, str | None]) -> None:
        """Write these changes upon the version that was read last; empty annotations and None are taken away.

        Raises:
            Conflict: somebody has written it since, or made it.
            NotFound: somebody has deleted it since.
            KubeError: it could not be written.
        """
        name, namespace = names.WORKERS_CONFIGMAP, self._namespace
        if self._version:
            changes = {key: text or None for key, text in annotations.items()}
            metadata: dict[str, object] = {"resourceVersion": self._version, "annotations": changes}
            patch = {"metadata": metadata, "data": data}
            request = requests.merge_patch(CONFIGMAPS, name, patch, namespace=namespace)
        else:
            said = {**self._annotations, names.SLOTS: str(self._mine), **annotations}
            metadata = {"name": name, "namespace": namespace}
            metadata["annotations"] = {key: text for key, text in said.items() if text}
            texts = {key: text for key, text in data.items() if text is not None}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts}
            request = requests.create(CONFIGMAPS, body, namespace=namespace)
        self._take_metadata(await self._management.send_object(request))

    def _set_written(self, entries: dict[str, Entry]) -> None:
        self._written, self._written_texts = entries, EntryTexts().of(entries)

    def _take_metadata(self, stored: Object) -> None:
        self._version = stored.metadata.resource_version
        self._in_force = InForce.of(stored.annotations.get(names.SLOTS, ""))
        self._written_annotations = {key: stored.annotations.get(key, "") for key in self._annotations}
