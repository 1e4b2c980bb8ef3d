"""Where identities that change come from: a token file, a plugin. ``credentials`` asks them anew in time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import os
import signal
import stat
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from datetime import UTC, datetime
from typing import BinaryIO

import msgspec

from mirror.kube.credentials import Identity, IdentityUnavailable, renewal_time
from mirror.kube.kubeconfig import Cluster, ExecPlugin
from mirror.kube.objects import JUNK
from mirror.model.failures import file_words

_FILE_SECONDS = 60.0
"""How old what was read may get; the kubelet replaces such tokens long before they expire."""
_MOST_TOKEN_BYTES = 64 * 1024
_PLUGIN_SECONDS = 30.0
_MOST_PLUGIN_BYTES = 2**20


class TokenFile:
    """A bearer token in a file that somebody else keeps fresh."""

    def __init__(self, path: str, *, wall: Callable[[], float] = time.time) -> None:
        self._path = path
        self._wall = wall

    async def fetch(self) -> Identity:
        return self.read()

    def read(self) -> Identity:
        """As ``fetch``; raises ``IdentityUnavailable``."""
        try:
            token = _read_small_file(self._path).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise IdentityUnavailable(f"the token file cannot be read: {file_words(error)}") from error
        return Identity(authorization=bearer(token), renew_at=self._wall() + _FILE_SECONDS)


class PluginOutput(msgspec.Struct, rename="camel"):
    """The status of an ExecCredential."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: PluginOutput


_decode_output = msgspec.json.Decoder(_ExecCredential).decode


class Plugin:
    """A command that prints an ExecCredential: no terminal, half a minute, and it dies with the request for it."""

    def __init__(self, plugin: ExecPlugin, cluster: Cluster, *, wall: Callable[[], float] = time.time) -> None:
        self._plugin = plugin
        self._cluster = cluster
        self._wall = wall

    async def fetch(self) -> Identity:
        try:
            async with asyncio.timeout(_PLUGIN_SECONDS):
                printed = await self._run()
        except TimeoutError as error:
            raise IdentityUnavailable(f"the credential plugin did not end within {_PLUGIN_SECONDS:g} s") from error
        except OSError as error:
            raise IdentityUnavailable(f"the credential plugin cannot be run: {file_words(error)}") from error
        return self._identity(printed)

    async def _run(self) -> bytes:
        async with _pipe() as (reader, output):
            starting = asyncio.ensure_future(self._start(output))
            try:
                process = await asyncio.shield(starting)
                output.close()
                printed = bytearray()
                while piece := await reader.read(65536):
                    printed += piece
                    if len(printed) > _MOST_PLUGIN_BYTES:
                        raise IdentityUnavailable("the credential plugin prints more than 1 MiB")
                if code := await process.wait():
                    raise IdentityUnavailable(f"the credential plugin failed with exit code {code}")
                return bytes(printed)
            finally:
                await asyncio.shield(_end(starting))

    async def _start(self, output: BinaryIO) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self._plugin.command,
            *self._plugin.args,
            env=self._environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            # Not read: it may quote credentials, and a pipe that nobody empties would block the plugin.
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    def _environment(self) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = _cluster_info(self._cluster)
        credential = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return {**os.environ, **dict(self._plugin.env), "KUBERNETES_EXEC_INFO": json.dumps(credential)}

    def _identity(self, printed: bytes) -> Identity:
        try:
            found = _decode_output(printed)
        except JUNK as error:
            raise IdentityUnavailable("the credential plugin printed no ExecCredential") from error
        if found.kind != "ExecCredential" or found.api_version != self._plugin.api_version:
            raise IdentityUnavailable("the credential plugin printed another kind or version than it was asked for")
        status = found.status
        if not (status.token or (status.client_certificate_data and status.client_key_data)):
            raise IdentityUnavailable("the credential plugin printed neither a token nor a certificate with its key")
        expires_at, renew_at = math.inf, math.inf
        if status.expiration_timestamp is not None:
            when = status.expiration_timestamp
            expires_at = (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
            renew_at = renewal_time(self._wall(), expires_at)
        return Identity(
            bearer(status.token.strip()) if status.token else "",
            status.client_certificate_data.encode(errors="replace"),
            status.client_key_data.encode(errors="replace"),
            renew_at,
            expires_at,
        )


@contextlib.asynccontextmanager
async def _pipe() -> AsyncGenerator[tuple[asyncio.StreamReader, BinaryIO], None]:
    """Both ends of a pipe of our own: with asyncio's, a process whose output nobody reads is never seen to end."""
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    with os.fdopen(writing, "wb", buffering=0) as output:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
        )
        try:
            yield reader, output
        finally:
            transport.close()


async def _end(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Leave nothing running, not even what a plugin started that was given up on while it was being started itself."""
    with contextlib.suppress(OSError):
        process = await starting
        if process.returncode is None:
            # The whole group: plugins are often scripts that wait for something else.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def bearer(token: str) -> str:
    """The Authorization header for a token.

    Raises:
        IdentityUnavailable: there is none, or it could not be sent.
    """
    if not token or not token.isascii() or any(char <= " " or char == "\x7f" for char in token):
        raise IdentityUnavailable("the token is empty, or holds characters that no token has")
    return f"Bearer {token}"


def _read_small_file(path: str) -> bytes:
    """A regular file's content; never waits, as reading a pipe or a device would."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError("not a regular file")
        return file.read(_MOST_TOKEN_BYTES)


def _cluster_info(cluster: Cluster) -> Mapping[str, object]:
    """What a plugin may want to know about the cluster that it gets credentials for."""
    info: dict[str, object] = {"server": cluster.server}
    if cluster.tls_server_name:
        info["tls-server-name"] = cluster.tls_server_name
    if not cluster.verify:
        info["insecure-skip-tls-verify"] = True
    if cluster.ca_pem:
        info["certificate-authority-data"] = base64.b64encode(cluster.ca_pem).decode()
    if cluster.proxy:
        info["proxy-url"] = cluster.proxy
    return info
