"""A control plane as tests see it, wherever it came from: a kubeconfig, kubectl, a client, and perhaps faults.

What is here works with any cluster. ``cluster`` adds what needs the processes; what a control plane cannot do raises
``CannotDo``. Not here: how it came to be (``cluster``, ``provider``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from e2e.controlplane.assets import find_binaries
from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import Client, StatusError
from e2e.controlplane.kubeconfigs import authority_of, read_kubeconfig, write_kubeconfig

_KUBECTL_TIMEOUT_SECONDS = 180.0
_TOKEN_SECONDS = 24 * 3600


class CannotDo(RuntimeError):
    """This control plane cannot do that, by its nature; the text says what and why. Tests are skipped for it."""


class KubectlFailed(RuntimeError):
    """kubectl ended with an error; ``stderr`` is what it said."""

    def __init__(self, arguments: Sequence[str], code: int, stderr: str) -> None:
        super().__init__(f"kubectl {' '.join(arguments)} ended with {code}: {stderr}")
        self.code = code
        self.stderr = stderr


class ControlPlane:
    """One cluster; ``kubeconfig`` is its administrator's file."""

    def __init__(self, name: str, kubeconfig: Path, directory: Path, *, runs_pods: bool) -> None:
        self.name = name
        self.runs_pods = runs_pods
        self.kubeconfig = kubeconfig
        self.directory = directory
        self._clients: list[Client] = []

    @property
    def server(self) -> str:
        """The URL of its API server."""
        return read_kubeconfig(self.kubeconfig).server

    def client(self, kubeconfig: Path | None = None, *, user_agent: str = "e2e") -> Client:
        """A new client, by default the administrator's; it is closed with the control plane at the latest."""
        client = Client(kubeconfig or self.kubeconfig, user_agent=user_agent)
        self._clients.append(client)
        return client

    async def kubectl(self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None) -> str:
        """Run kubectl and return what it printed.

        Raises:
            KubectlFailed: it ended with an error.
            TimeoutError: it took more than three minutes.
        """
        process = await asyncio.create_subprocess_exec(
            find_binaries("kubectl")["kubectl"],
            f"--kubeconfig={kubeconfig or self.kubeconfig}",
            *arguments,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.directory)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_KUBECTL_TIMEOUT_SECONDS):
                output, errors = await process.communicate(stdin.encode())
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if process.returncode:
            raise KubectlFailed(arguments, process.returncode, errors.decode(errors="replace"))
        return output.decode()

    async def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a day's token of this service account, which is made if absent, as is its namespace."""
        async with Client(self.kubeconfig) as client:
            accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            await _create_if_absent(client, "/api/v1/namespaces", namespace)
            await _create_if_absent(client, accounts, name)
            request = {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
            token = await client.create(f"{accounts}/{name}/token", request)
        path = self.directory / f"{namespace}.{name}.kubeconfig"
        return write_kubeconfig(path, self.server, authority_of(self.kubeconfig), token["status"]["token"])

    def kubeconfig_for(self, user: str, *, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with a client certificate for a user of these groups, who has no rights but what RBAC gives."""
        raise self._cannot(f"make a certificate for {user} of {list(groups)}")

    def need_simulated_pods(self) -> None:
        """Raise ``CannotDo`` unless pods run and end as their annotations say (``stages.yaml``)."""
        if not self.runs_pods:
            raise CannotDo(f"{self.name} has no simulated node")

    async def kill_apiserver(self) -> None:
        """End the API server as by SIGKILL; its connections break, and new ones are refused."""
        raise self._cannot("kill its API server")

    async def restart_apiserver(self) -> None:
        """Start a killed API server again, at the same address and with its data; kill it first if it runs."""
        raise self._cannot("restart its API server")

    def pause_apiserver(self) -> None:
        """Make the API server hang: connections stay, and are accepted, and nothing is answered."""
        raise self._cannot("pause its API server")

    def resume_apiserver(self) -> None:
        """Let a paused API server go on."""
        raise self._cannot("resume its API server")

    async def audit_entries(self) -> list[AuditEntry]:
        """Every request that the API server has answered so far, this call's own left out.

        To count from a point in time, remember the length of the list and look at what follows.
        """
        raise self._cannot("show its audit log")

    async def close(self) -> None:
        """Close the clients. The cluster itself is left alone."""
        clients, self._clients = self._clients, []
        for client in clients:
            await client.close()

    def _cannot(self, what: str) -> CannotDo:
        return CannotDo(f"{self.name} cannot {what}: only those that we start ourselves can")


async def _create_if_absent(client: Client, collection: str, name: str) -> None:
    try:
        await client.create(collection, {"metadata": {"name": name}})
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise
