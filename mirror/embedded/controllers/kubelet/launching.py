"""Starts a container's command as a process of this machine: a session of its own, with limits, tied to our life.

What a container has that a process has not (its image, volumes, users, network) is not here, and not pretended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet.environment import expanded
from mirror.embedded.controllers.kubelet.runtime import CannotStart

_PR_SET_PDEATHSIG = 1
_NANO = 10**9
_CREATE = "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
_LIMITS = {"memory": resource.RLIMIT_DATA, "ephemeral-storage": resource.RLIMIT_FSIZE}
"""Amounts that a process can be held to: its own memory, and the length of each file that it writes. A share of the
processors is none of them."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A process to be started."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    folder: Path
    """Where it begins."""
    limits: tuple[tuple[int, int], ...] = ()
    """Kinds and amounts for ``setrlimit``."""


def launch_of(container: Json, variables: Mapping[str, str], folder: Path) -> Launch:
    """What to start for a container; ``folder`` is its own.

    Raises:
        CannotStart: it says no command, or names a folder that is not there.
    """
    if not container.get("command"):
        name = container["name"]
        raise CannotStart(
            f"container {quoted(name)} has no command: what an image would run is not known, since images are ignored"
        )
    words = [*container["command"], *(container.get("args") or ())]
    where = container.get("workingDir")
    if where:
        where = expanded(where, variables)
        if not os.path.isdir(where):
            told = "no such file or directory" if not os.path.exists(where) else "not a directory"
            raise CannotStart(f"{_CREATE}chdir to cwd ({quoted(where)}) set in config.json failed: {told}")
    return Launch(
        tuple(expanded(word, variables) for word in words),
        variables,
        Path(where) if where else folder,
        tuple(limits_of(container)),
    )


def limits_of(container: Json) -> Sequence[tuple[int, int]]:
    """``resources.limits`` as far as a process can be held to them."""
    limits = (container.get("resources") or {}).get("limits") or {}
    found = []
    for name, kind in _LIMITS.items():
        amount = quantities.of(limits[name]) if name in limits else None
        if amount is not None and amount.nano > 0:
            found.append((kind, min(-(-amount.nano // _NANO), 2**62)))
    return found


def start(launch: Launch, output: int) -> subprocess.Popen[bytes]:
    """Start it; what it writes goes to the file descriptor ``output``.

    Raises:
        CannotStart: there is no such program, or it may not be run.
    """
    command = launch.command[0]
    try:
        return subprocess.Popen(
            launch.command,
            env=dict(launch.variables),
            cwd=launch.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_tie(launch.limits),
        )
    except FileNotFoundError as error:
        what = "no such file or directory" if "/" in command else "executable file not found in $PATH"
        raise CannotStart(f"{_CREATE}exec: {quoted(command)}: {what}") from error
    except PermissionError as error:
        raise CannotStart(f"{_CREATE}exec: {quoted(command)}: permission denied") from error
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise CannotStart(f"{_CREATE}exec: {quoted(command)}: {error}") from error


def base_variables(pod: Json, folder: Path) -> dict[str, str]:
    """What every container finds: where programs are, a home, its name. Nothing else of our own environment."""
    here = os.path.dirname(sys.executable)
    path = os.environ.get("PATH") or os.defpath
    found = {
        "PATH": path if here in path.split(os.pathsep) else f"{path}{os.pathsep}{here}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "HOSTNAME": str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63],
    }
    return found | {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}


def _tie(limits: Sequence[tuple[int, int]]) -> Callable[[], None]:
    """What the new process does before it becomes the command: it dies with us, and stays within its limits.

    It runs between fork and exec, where other threads' locks may be held for ever: so it makes system calls, and
    nothing else. A program in between, which would do without that, costs each container the start of an interpreter.
    """
    prctl = _PRCTL
    parent = os.getpid()

    def tie() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(137)
        for kind, amount in limits:
            _, most = resource.getrlimit(kind)
            amount = amount if most == resource.RLIM_INFINITY else min(amount, most)
            resource.setrlimit(kind, (amount, amount))

    return tie


def _find_prctl() -> Callable[..., int] | None:
    """Linux has it; elsewhere the keeper does alone."""
    if not sys.platform.startswith("linux"):
        return None
    with contextlib.suppress(OSError, AttributeError):
        found: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
        return found
    return None


_PRCTL = _find_prctl()
