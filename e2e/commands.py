"""A command that somebody runs in a test: how it ended. For the commands of users, of operators, and of documents."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.process import installed_mirror
from e2e.manager import ManagerProcess

_PATIENCE_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended, and what it printed."""

    code: int
    output: str
    errors: str


async def said_by(process: asyncio.subprocess.Process) -> Said:
    """Wait for its end; whoever does not wait that long leaves no process behind."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            output, errors = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Said(process.returncode, output.decode(), errors.decode())


async def administrator_says(manager: ManagerProcess, *arguments: str) -> Said:
    """Run ``mirror …`` with the administrator's kubeconfig of the management cluster, to its end."""
    return await operator_says(manager, manager.management.kubeconfig, *arguments)


async def operator_says(manager: ManagerProcess, kubeconfig: Path, *arguments: str) -> Said:
    """Run ``mirror …`` with somebody's kubeconfig of the management cluster, to its end."""
    return await said_by(await _start(manager, kubeconfig, *arguments))


def contexts(path: Path, planes: Mapping[str, ControlPlane]) -> Path:
    """Write a kubeconfig of all clusters' administrator, with a context for each; the first one's is current."""
    document: Json = {"apiVersion": "v1", "kind": "Config", "current-context": next(iter(planes))}
    for plural in ("clusters", "users", "contexts"):
        document[plural] = []
    for name, plane in planes.items():
        own = yaml.safe_load(plane.kubeconfig.read_text())
        document["clusters"].append({**own["clusters"][0], "name": name})
        document["users"].append({**own["users"][0], "name": name})
        document["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    path.write_text(yaml.safe_dump(document))
    return path


@asynccontextmanager
async def administrator_types(manager: ManagerProcess, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """As ``administrator_says``, while it runs; it has ended when the block is left."""
    process = await _start(manager, manager.management.kubeconfig, *arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def interrupted(process: asyncio.subprocess.Process) -> Said:
    """What it has printed when somebody types Ctrl-C."""
    process.send_signal(signal.SIGINT)
    return await said_by(process)


async def _start(manager: ManagerProcess, kubeconfig: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        installed_mirror(),
        *arguments,
        f"--kubeconfig={kubeconfig}",
        f"--namespace={manager.namespace}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Tests may run in the background of a shell, where it is ignored; a person's terminal does not ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
