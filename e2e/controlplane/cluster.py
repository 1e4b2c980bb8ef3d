"""A control plane of real binaries on this machine: etcd, kube-apiserver and, on request, what makes Jobs run.

``async with Cluster.start("east", WORKER) as east:``; several may run at once. Whatever happens to the process that
started it, nothing of it stays behind (``scratch``, ``process``). Not here: command lines (``components``).
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from e2e.controlplane import components
from e2e.controlplane.assets import find_binaries, start_timeout_seconds
from e2e.controlplane.audit import AuditEntry, read_log, write_policy
from e2e.controlplane.certificates import new_signing_key
from e2e.controlplane.client import Client, StatusError
from e2e.controlplane.components import BARE, Files, Shape
from e2e.controlplane.kubeconfigs import write_kubeconfig
from e2e.controlplane.nodes import add_node, wait_until_node_is_ready
from e2e.controlplane.plane import CannotDo, ControlPlane
from e2e.controlplane.process import Program
from e2e.controlplane.scratch import Scratch
from mirror.serving.x509 import Authority, KeyPair

_LOOK_AGAIN_SECONDS = 0.1
"""A look at an API server that starts costs both about two milliseconds, of a core that it wants for itself."""
_AUDIT_TIMEOUT_SECONDS = 60.0


class NotReady(RuntimeError):
    """The control plane did not become ready in time; the text holds what was seen last."""


class Cluster(ControlPlane):
    """A running control plane of our own. Make one with ``start``."""

    def __init__(self, name: str, shape: Shape) -> None:
        binaries = find_binaries(*shape.programs)
        self._scratch = Scratch(name)
        self._files = Files(self._scratch.path)
        super().__init__(name, self._files["admin.kubeconfig"], self._files.directory, runs_pods=shape.kwok)
        self.shape = shape
        self._port = _reserve_port()
        self._authority = Authority.new(name, now=datetime.now(UTC))
        self._write_files()
        self._etcd = Program(components.etcd(binaries["etcd"], self._files), self._scratch)
        port = self._port.getsockname()[1]
        self._apiserver = Program(
            components.apiserver(binaries["kube-apiserver"], self._files, port, shape), self._scratch
        )
        self._clients_of_it = [Program(command, self._scratch) for command in self._commands(binaries)]

    @classmethod
    @asynccontextmanager
    async def start(cls, name: str, shape: Shape = BARE) -> AsyncIterator[Cluster]:
        """A control plane that is ready for use; it is gone when the block is left.

        Raises:
            MissingBinaries: see ``assets``.
            NotReady, ProgramEnded: it did not come up; the text holds the log.
            ProgramEnded: on leaving: one of its programs ended although nobody ended it.
        """
        cluster = cls(name, shape)
        try:
            await cluster._bring_up()
            yield cluster
            cluster.check()
        finally:
            await cluster.stop()

    @property
    def server(self) -> str:
        """The URL of its API server; it stays the same over restarts."""
        return f"https://127.0.0.1:{self._port.getsockname()[1]}"

    @property
    def programs(self) -> dict[str, Program]:
        """By the names of their binaries, for whoever kills and freezes single ones.

        Whoever ends one starts it again: leaving ``start`` without it is an error, but for the API server.
        """
        return {program.name: program for program in (self._etcd, self._apiserver, *self._clients_of_it)}

    @property
    def pids(self) -> dict[str, int]:
        """The process numbers of its programs by name, for measuring them."""
        programs = self.programs.values()
        return {program.name: program.pid for program in programs if program.pid is not None and program.is_running}

    def log(self, program: str) -> str:
        """What one of its programs has logged."""
        return self._files[f"{program}.log"].read_text(errors="replace")

    def kubeconfig_for(self, user: str, *, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig with a client certificate for a user of these groups, who has no rights but what RBAC gives."""
        path = self._files[f"{user.replace('/', '_')}.kubeconfig"]
        return self._write_kubeconfig(path, self._authority.issue_client(user, groups))

    async def kill_apiserver(self) -> None:
        """End the API server by SIGKILL. Its port stays reserved for the restart."""
        await self._apiserver.kill()

    async def restart_apiserver(self) -> None:
        """Start the API server again on the same port and data, and return when it is ready."""
        await self._apiserver.kill()
        self._apiserver.start()
        await self._wait_until_ready()

    async def take_snapshot(self) -> Path:
        """A copy of etcd's data, made while nothing runs; return when the API server is ready again."""
        copy = self._files[f"etcd-{uuid.uuid4().hex[:8]}"]
        async with self._data_at_rest() as data:
            await asyncio.to_thread(shutil.copytree, data, copy)
        return copy

    async def restore_snapshot(self, copy: Path) -> None:
        """Put back what ``take_snapshot`` copied: everything written since is forgotten."""
        async with self._data_at_rest() as data:
            await asyncio.to_thread(shutil.rmtree, data)
            await asyncio.to_thread(shutil.copytree, copy, data)

    @asynccontextmanager
    async def _data_at_rest(self) -> AsyncIterator[Path]:
        """Stop API server and etcd meanwhile. The controllers, if there are any, have to cope."""
        await self._apiserver.kill()
        await self._etcd.kill()
        yield self._files["etcd"]
        self._etcd.start()
        self._apiserver.start()
        await self._wait_until_ready()

    def pause_apiserver(self) -> None:
        """Stop the API server by SIGSTOP: it hangs."""
        self._apiserver.send(signal.SIGSTOP)

    def resume_apiserver(self) -> None:
        """Let the API server go on, by SIGCONT."""
        self._apiserver.send(signal.SIGCONT)

    async def audit_entries(self) -> list[AuditEntry]:
        """Every request that the API server has answered so far, in order, this call's own left out."""
        if self.shape.audit is None:
            raise CannotDo(f"{self.name} was started without an audit log")
        # The log is written in the order of the answers: once our question is in it, so is all that came before.
        mark = f"/version?mark={uuid.uuid4()}"
        async with Client(self.kubeconfig) as client:
            await client.get(mark)
        async with asyncio.timeout(_AUDIT_TIMEOUT_SECONDS):
            while True:
                entries = read_log(self._files["audit.log"])
                if any(entry.uri == mark for entry in entries):
                    return [entry for entry in entries if not entry.uri.startswith("/version?mark=")]
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def check(self) -> None:
        """Raise ``ProgramEnded`` if a program ended by itself. An API server that a test killed is no complaint."""
        for program in (self._etcd, *self._clients_of_it):
            program.check()

    async def stop(self) -> None:
        """Kill everything and remove every file. May be called again."""
        try:
            await self.close()
        finally:
            for program in (*self._clients_of_it, self._apiserver, self._etcd):
                program.send(signal.SIGKILL)
            for program in (*self._clients_of_it, self._apiserver, self._etcd):
                await program.kill()
            self._scratch.close()
            self._port.close()

    async def _bring_up(self) -> None:
        self._etcd.start()
        self._apiserver.start()
        await self._wait_until_ready()
        for program in self._clients_of_it:
            program.start()
        if self.shape.kwok:
            async with Client(self.kubeconfig) as client:
                await add_node(client)
                await wait_until_node_is_ready(client, seconds=start_timeout_seconds())
        self.check()

    async def _wait_until_ready(self) -> None:
        try:
            async with asyncio.timeout(start_timeout_seconds()), Client(self.kubeconfig) as client:
                while True:
                    if await self._is_ready(client):
                        return
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        except TimeoutError:
            raise NotReady(f"{self.name} is not ready in time:\n{self._apiserver.last_words()}") from None

    async def _is_ready(self, client: Client) -> bool:
        try:
            await client.get("/readyz")
        except (StatusError, aiohttp.ClientError):
            self._etcd.check()
            self._apiserver.check()
            return False
        return True

    def _write_files(self) -> None:
        serving = self._authority.issue_server(["127.0.0.1", "localhost", "kubernetes.default.svc"])
        tokens = new_signing_key()
        for name, content in (
            ("ca.crt", self._authority.certificate),
            ("serving.crt", serving.certificate),
            ("serving.key", serving.key),
            ("tokens.pub", tokens.certificate),
            ("tokens.key", tokens.key),
        ):
            self._files[name].write_bytes(content)
        if self.shape.audit is not None:
            write_policy(self._files["audit-policy.json"], self.shape.audit)
        self._write_kubeconfig(self.kubeconfig, self._authority.issue_client("admin", ["system:masters"]))

    def _commands(self, binaries: dict[str, Path]) -> list[list[str | Path]]:
        """The programs that are clients of the API server."""

        def identity(user: str) -> Path:
            return self.kubeconfig_for(user, groups=["system:masters"])

        commands = []
        if self.shape.controllers is not None:
            kubeconfig = identity("system:kube-controller-manager")
            binary = binaries["kube-controller-manager"]
            commands.append(components.controller_manager(binary, self._files, kubeconfig, self.shape))
        if self.shape.scheduler:
            kubeconfig = identity("system:kube-scheduler")
            commands.append(components.scheduler(binaries["kube-scheduler"], kubeconfig, self.shape))
        if self.shape.kwok:
            commands.append(components.kwok(binaries["kwok"], identity("kwok")))
        return commands

    def _write_kubeconfig(self, path: Path, user: KeyPair) -> Path:
        return write_kubeconfig(path, self.server, self._authority.certificate, user)


def _reserve_port() -> socket.socket:
    """A free port that stays ours until the socket is closed, also while no API server listens on it.

    The API server may bind it too, since both ask for SO_REUSEPORT. A socket that is bound and never listens gets no
    connections.
    """
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved
