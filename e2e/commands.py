"""A command that somebody runs in a test: how it ended. For the commands of users, of operators, and of documents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

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
    return await said_by(
        await asyncio.create_subprocess_exec(
            installed_mirror(),
            *arguments,
            f"--kubeconfig={kubeconfig}",
            f"--namespace={manager.namespace}",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    )
