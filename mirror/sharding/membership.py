"""This replica's own Lease, by which the others know that it is there, and whether it could work (S3).

It gives nobody a right: what a replica may write hangs on the Leases of its slots alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

from mirror.kube import requests
from mirror.kube.errors import KubeError, NotFound
from mirror.kube.resources import LEASES
from mirror.model import names
from mirror.runtime.answered import answered
from mirror.runtime.clock import Clock
from mirror.runtime.leadership import Sender
from mirror.runtime.lease_format import micro_time
from mirror.sharding.board import slots_said
from mirror.telemetry.logs import Log

GOODBYE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """Which replica this is. Times in seconds."""

    namespace: str
    identity: str
    slots: int
    duration_seconds: float = 30.0
    renew_seconds: float = 5.0

    @property
    def lease(self) -> str:
        """The name of its Lease: of any identity a name that the API takes."""
        return f"{names.MEMBER_LEASE}-{blake2b(self.identity.encode(), digest_size=8).hexdigest()}"


class Membership:
    """Renews the Lease until cancelled, and takes it away then."""

    def __init__(
        self,
        sender: Sender,
        settings: MemberSettings,
        *,
        is_ready: Callable[[], bool],
        address: Callable[[], str],
        clock: Clock,
        log: Log,
    ) -> None:
        """``address``: where others ask this replica for what only it knows, IP and port; empty: nowhere."""
        self._sender = sender
        self._settings = settings
        self._is_ready = is_ready
        self._address = address
        self._clock = clock
        self._log = log

    async def run(self) -> None:
        """Renew it, until cancelled."""
        try:
            while True:
                await answered(self._renew_in_time(), seconds=GOODBYE_SECONDS)
                await asyncio.sleep(self._settings.renew_seconds)
        finally:
            await asyncio.shield(self._leave())

    async def _renew_in_time(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.renew_seconds):
                await self._renew()

    async def _renew(self) -> None:
        settings = self._settings
        metadata = {"annotations": self._annotations()}
        spec = {
            "holderIdentity": settings.identity,
            "leaseDurationSeconds": max(1, round(settings.duration_seconds)),
            "renewTime": micro_time(self._clock.now()),
        }
        try:
            patch = {"metadata": metadata, "spec": spec}
            await self._send(requests.merge_patch(LEASES, settings.lease, patch, namespace=settings.namespace))
        except NotFound:
            named = {"name": settings.lease, "namespace": settings.namespace, **metadata}
            body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": named, "spec": spec}
            with suppress(KubeError):
                await self._send(requests.create(LEASES, body, namespace=settings.namespace))
        except KubeError as error:
            self._log.warning("member lease not renewed", error=error)

    def _annotations(self) -> Mapping[str, str | None]:
        settings = self._settings
        return {
            names.SLOTS: slots_said(settings.slots, settings.identity),
            names.READY: "true" if self._is_ready() else "false",
            names.ADDRESS: self._address() or None,
        }

    async def _leave(self) -> None:
        """The others need not wait until it ends."""
        delete = requests.delete(LEASES, self._settings.lease, namespace=self._settings.namespace)
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._send(delete)

    async def _send(self, request: requests.Request) -> None:
        await self._sender.send(request.by_any_replica())
