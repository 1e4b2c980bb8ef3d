"""The client of one worker: made of its Secret's kubeconfig, checked, replaced, closed. Used by ``worker``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.runtime.turns import probing
from mirror.workers.probes import OLDEST_MINOR, check_version, cluster_uid
from mirror.workers.spec import WorkerSpec


class ClientSession:
    """At most one client; a changed kubeconfig gets another, which takes its place once it has proved itself."""

    def __init__(self, worker: str, connect: Callable[[WorkerSpec], Awaitable[Client]]) -> None:
        self._worker = worker
        self._connect = connect
        self._client: Client | None = None
        self._connected_with: bytes | None = None
        self.version = ""
        """Of the worker's Kubernetes, as it says itself; empty before the first contact."""

    @property
    def client(self) -> Client:
        """The client in use.

        Raises:
            Unreachable: there is none.
        """
        if self._client is None:
            raise Unreachable(f"worker {self._worker} is not connected")
        return self._client

    async def check(self, spec: WorkerSpec, accept_identity: Callable[[str], Awaitable[None]]) -> bool:
        """Prove that the cluster answers and is the one it should be; return whether a new client is in use since.

        Where many are proved at once, each waits for its turn.

        Raises:
            Unsupported, KubeconfigRefused, KubeError, or what ``accept_identity`` raises for the cluster's uid.
        """
        await probing().wait()
        client, is_new = self._client, False
        if client is None or self._connected_with != spec.kubeconfig:
            client, is_new = await self._connect(spec), True
        try:
            if is_new:
                self.version = await check_version(client, OLDEST_MINOR)
            await accept_identity(await cluster_uid(client))
        except BaseException:
            if is_new:
                await client.close()
            if is_new and self._client is not None:
                await self.close()
            raise
        if is_new:
            old, self._client, self._connected_with = self._client, client, spec.kubeconfig
            if old is not None:
                await old.close()
        return is_new

    async def close(self) -> None:
        """Close the client, if there is one."""
        client, self._client, self._connected_with = self._client, None, None
        if client is not None:
            await client.close()
