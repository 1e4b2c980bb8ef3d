"""Watches the pods of mirrors that are to be tried elsewhere, on one worker: the shell of ``pod_ledger`` (D31).

The pods of a mirror are listed, and watched from that list's version on without any gap: a watch that its server ends
goes on from its last version; any error ends the proof. When a mirror's own controller says that nothing of it is left,
they are listed once more, and the watch is waited for until it has shown all until then: only then it is confirmed.
What is known is gone with this process, so that another one proves nothing by it. Run by ``pods``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import KubeError, NotFound, describe
from mirror.kube.objects import Object
from mirror.kube.requests import Rank
from mirror.kube.resources import PODS
from mirror.kube.watch import list_pages, watch
from mirror.model.retries import PodProof, ProofState
from mirror.telemetry.logs import Log
from mirror.workers.pod_ledger import PodLedger

MOST_AT_ONCE = 10
"""Mirrors of one worker whose pods are watched for this."""
MOST_KEPT = 200
"""Verdicts that nobody has asked for any more."""
WATCH_SECONDS = 8
"""A server tells how far it is shortly before a watch ends, so that short watches are known to be up to date."""
SILENT_SECONDS = 30.0
BETWEEN_SECONDS = 0.1
LONGEST_SECONDS = 600.0
"""So long the pods of a mirror may take to be gone."""


class _Over(Exception):
    """Nothing more is to be seen of it."""


@dataclass(eq=False, slots=True)
class _Proof:
    """Of one mirror.

    Invariant: ``confirmed`` is a version for which ``asked`` was set when the last list was begun, of which the watch
    has shown everything since.
    """

    source: str
    namespace: str
    selector: str
    ledger: PodLedger = field(default_factory=PodLedger)
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    is_listed: bool = False
    is_under_way: bool = True
    version: int = 0
    """How far the watch is."""
    asked: str = ""
    """The version of the mirror, as of which it is to be confirmed that it has no pod."""
    confirmed: str = ""
    progress: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def describe(self) -> PodProof:
        """What it proves now."""
        if self.ledger.started:
            return PodProof(ProofState.STARTED, self.mark, self.ledger.started)
        if self.ledger.missed:
            return PodProof(ProofState.BROKEN, self.mark, self.ledger.missed)
        if not self.is_listed:
            return PodProof(ProofState.LOOKING, self.mark)
        if self.confirmed:
            return PodProof(ProofState.CONFIRMED, self.mark, confirmed_version=self.confirmed)
        return PodProof(ProofState.CONFIRMING if self.asked else ProofState.WATCHED, self.mark)


class PodProofs:
    """By the uids of mirrors; bounded by ``MOST_AT_ONCE`` and ``MOST_KEPT``."""

    def __init__(self, on_change: Callable[[str], None], *, log: Log) -> None:
        """``on_change``: called with the uid of a source of which something else is known than before."""
        self._on_change = on_change
        self._log = log
        self._proofs: dict[str, _Proof] = {}
        self._begun: asyncio.Queue[_Proof] = asyncio.Queue()
        self._is_running = False

    # -- what others ask ----------------------------------------------------------------------------------------------

    def of(self, mirror_uid: str) -> PodProof | None:
        """What is known; None: nothing was begun here."""
        proof = self._proofs.get(mirror_uid)
        return proof.describe() if proof is not None else None

    @property
    def has_room(self) -> bool:
        """Whether another one may be begun."""
        return self._is_running and sum(one.is_under_way for one in self._proofs.values()) < MOST_AT_ONCE

    def begin(self, mirror_uid: str, source_uid: str, namespace: str, selector: str) -> None:
        """List and watch the pods of a mirror; nothing is done where that is under way, or there is no room."""
        if mirror_uid in self._proofs or not self.has_room:
            return
        for uid in [uid for uid, one in self._proofs.items() if not one.is_under_way][:-MOST_KEPT]:
            del self._proofs[uid]
        proof = self._proofs[mirror_uid] = _Proof(source_uid, namespace, selector)
        self._begun.put_nowait(proof)

    def confirm(self, mirror_uid: str, version: str) -> None:
        """The mirror, as it is in this version, should have no pod any more: see whether that is so."""
        proof = self._proofs.get(mirror_uid)
        if proof is not None and version not in (proof.asked, proof.confirmed):
            proof.asked, proof.confirmed = version, ""
            proof.progress.set()

    def drop(self, mirror_uid: str) -> None:
        """It is not wanted any more."""
        proof = self._proofs.pop(mirror_uid, None)
        if proof is not None:
            proof.is_under_way = False
            if proof.task is not None:
                proof.task.cancel()

    # -- watching -----------------------------------------------------------------------------------------------------

    async def run(self, client: Callable[[], Client]) -> None:
        """See to those that are begun, until cancelled; what is under way then proves nothing."""
        self._is_running = True
        try:
            async with asyncio.TaskGroup() as scope:
                while True:
                    proof = await self._begun.get()
                    if proof.is_under_way:
                        proof.task = scope.create_task(self._prove(proof, client), name="prove that no pod ran")
        finally:
            self._is_running = False
            for proof in self._proofs.values():
                proof.is_under_way = False
                proof.ledger.miss("the worker's pods were not watched all the time")

    async def _prove(self, proof: _Proof, client: Callable[[], Client]) -> None:
        """Until nothing can be proved any more, or nobody wants it."""
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await self._see_all(proof, client)
        except TimeoutError:
            proof.ledger.miss("its pods took too long to go")
        finally:
            proof.is_under_way = False
        self._on_change(proof.source)

    async def _see_all(self, proof: _Proof, client: Callable[[], Client]) -> None:
        try:
            async with asyncio.TaskGroup() as scope:
                version = await self._list(proof, client)
                scope.create_task(self._watch(proof, client, version), name="watch pods")
                scope.create_task(self._confirm(proof, client), name="confirm that there are no pods")
        except* _Over:
            self._log.debug("pods prove nothing", source=proof.source, because=proof.describe().because)

    async def _list(self, proof: _Proof, client: Callable[[], Client]) -> str:
        """The version of the first list, which has been taken.

        Raises:
            _Over: it proves that one has started, or was not whole.
        """
        version, objects = await self._pods(proof, client)
        for pod in objects:
            proof.ledger.take_listed(pod)
        proof.is_listed, proof.version = True, _number(version)
        if not proof.version:
            proof.ledger.miss("the worker's versions are no numbers")
        self._go_on(proof)
        self._on_change(proof.source)
        return version

    async def _pods(self, proof: _Proof, client: Callable[[], Client]) -> tuple[str, list[Object]]:
        """All there are, and the version of that list.

        Raises:
            _Over: they cannot be listed.
        """
        version, found = "", list[Object]()
        try:
            pages = list_pages(client(), PODS, namespace=proof.namespace, label_selector=proof.selector)
            async with aclosing(pages) as stream:
                async for page in stream:
                    version = page.resource_version
                    found += page.objects
        except KubeError as error:
            proof.ledger.miss(f"its pods cannot be listed: {describe(error)}")
            raise _Over from error
        return version, found

    async def _watch(self, proof: _Proof, client: Callable[[], Client], version: str) -> None:
        """Raises _Over once nothing can be proved any more."""
        while True:
            request = requests.watch(
                PODS,
                namespace=proof.namespace,
                label_selector=proof.selector,
                resource_version=version,
                timeout_seconds=WATCH_SECONDS,
            )
            try:
                async with aclosing(watch(client(), request, silent_seconds=lambda: SILENT_SECONDS)) as events:
                    async for event in events:
                        version = event.object.metadata.resource_version or version
                        if event.type != "BOOKMARK":
                            proof.ledger.take(event)
                        proof.version = max(proof.version, _number(version))
                        proof.progress.set()
                        self._go_on(proof)
            except KubeError as error:
                proof.ledger.miss(f"the watch of its pods has ended: {describe(error)}")
                raise _Over from error
            await asyncio.sleep(BETWEEN_SECONDS)  # a server that ends each watch at once gets no flood of them

    async def _confirm(self, proof: _Proof, client: Callable[[], Client]) -> None:
        """Once that is asked for, and none is left: see that there is none, and that none was missed."""
        while True:
            await proof.progress.wait()
            proof.progress.clear()
            asked = proof.asked
            if not asked or not proof.ledger.is_empty:
                continue
            version, objects = await self._pods(proof, client)
            if objects:
                continue  # the watch shows them, too, and then that they go
            await self._see_gone(proof, client)
            while proof.version < _number(version):
                await proof.progress.wait()
                proof.progress.clear()
            if asked == proof.asked and proof.ledger.is_empty:
                proof.asked, proof.confirmed = "", asked
                self._on_change(proof.source)
            else:
                proof.progress.set()

    async def _see_gone(self, proof: _Proof, client: Callable[[], Client]) -> None:
        """What went before it was on a node is gone, and has not only lost the labels that it was found by.

        Raises:
            _Over: one is there, or that cannot be known.
        """
        for uid, name in list(proof.ledger.unbound.items()):
            try:
                request = requests.get(PODS, name, namespace=proof.namespace).in_line(Rank.LAST)
                pod = await client().send_object(request)
            except NotFound:
                continue
            except KubeError as error:
                proof.ledger.miss(f"whether its pods are gone is not known: {describe(error)}")
                raise _Over from error
            if pod.metadata.uid == uid:
                proof.ledger.miss("a pod of it has lost its labels")
                raise _Over

    def _go_on(self, proof: _Proof) -> None:
        if proof.ledger.is_over:
            raise _Over


def _number(version: str) -> int:
    """A resourceVersion as a number; 0: it is none."""
    return int(version) if version.isascii() and version.isdecimal() and len(version) < 20 else 0
