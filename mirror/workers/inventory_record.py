"""Keeps the ConfigMap ``jobmirror-workers`` like the inventory that is known: reading, writing, conflicts (D13, D19).

Used by ``registry``. What an inventory is, and what follows from it, is ``inventory``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import tenacity

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Conflict, KubeError, NotFound, refusal_of
from mirror.kube.objects import Object
from mirror.kube.resources import CONFIGMAPS
from mirror.model import names
from mirror.telemetry.logs import Log
from mirror.workers.inventory import NOTHING, Entry, EntryTexts, WorkerInventory

RETRY_SECONDS = 1.0


class InventoryRecord:
    """What is known of all workers, and what of that is written. Only a leader writes it."""

    def __init__(
        self,
        management: Client,
        namespace: str,
        *,
        annotations: Mapping[str, str],
        log: Log,
        name: str = names.WORKERS_CONFIGMAP,
    ) -> None:
        """``annotations``: written beside the workers, for operators' commands; empty text: it is not there."""
        self._name = name
        self.known = WorkerInventory({})
        self._management = management
        self._namespace = namespace
        self._annotations = annotations
        self._written_annotations: Mapping[str, str] = {}
        self._log = log
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

    def forget(self, worker: str) -> None:
        """See ``WorkerInventory.forget``; it is written soon."""
        self.known.forget(worker)
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

        async def read() -> WorkerInventory:
            with self._noting("read"):
                return await self._read()

        self.known = await self._retrying("workers not read")(read)
        self._set_written(dict(self.known.entries))

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

    async def _write(self) -> None:
        try:
            await self._write_changes()
        except Conflict:
            # Somebody edited it, or a leader of before was late (D28): what we know holds, the rest stays.
            ours = self._written.keys() | self.known.entries.keys()
            found = (await self._read()).entries
            self._set_written({name: entry for name, entry in found.items() if name in ours})
            await self._write_changes()

    async def _read(self) -> WorkerInventory:
        wanted = requests.get(CONFIGMAPS, self._name, namespace=self._namespace)
        self._version = ""
        try:
            found = await self._management.send_object(wanted)
        except NotFound:
            return WorkerInventory({})
        self._take_metadata(found)
        return WorkerInventory.of(found)

    async def _write_changes(self) -> None:
        known = dict(self.known.entries)
        texts, written = self._texts.of(known), self._written_texts
        data: dict[str, str | None] = {name: text for name, text in texts.items() if written.get(name) != text}
        data |= {name: None for name in written if name not in texts}
        if not data and (self._written_annotations == self._annotations or not known):
            self._written = known  # but for what is left out of it
            return
        name, namespace = self._name, self._namespace
        annotations = {key: text for key, text in self._annotations.items() if text}
        changes = {key: text or None for key, text in self._annotations.items()}
        metadata = {"resourceVersion": self._version or None, "annotations": changes}
        changed = {"metadata": metadata, "data": data}
        patch = requests.merge_patch(CONFIGMAPS, name, changed, namespace=namespace)
        try:
            stored = await self._management.send_object(patch)
        except NotFound:
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
                "data": texts,
            }
            stored = await self._management.send_object(requests.create(CONFIGMAPS, body, namespace=namespace))
        self._written, self._written_texts = known, texts
        self._take_metadata(stored)

    def _set_written(self, entries: dict[str, Entry]) -> None:
        self._written, self._written_texts = entries, EntryTexts().of(entries)

    def _take_metadata(self, stored: Object) -> None:
        self._version = stored.metadata.resource_version
        self._written_annotations = {key: stored.annotations.get(key, "") for key in self._annotations}
