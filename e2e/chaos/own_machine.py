"""What a campaign changes in the process of a manager, so that it is as if on a machine of its own.

Each request names the process as the Lease does, but for what is random there: workers know both managers by one
account. Its clock is ahead of everybody's by what a file says, also when that changes, and after a restart. Called by
``drill_manager``, before it imports ``mirror``; nothing of that is imported here.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

NAME, CLOCK = "MIRROR_CHAOS_NAME", "MIRROR_CHAOS_CLOCK"
"""The variables that say what the machine is called, and where the file of its clock is."""
_WIDTH = 16
"""Bytes of that file, always: whoever reads it while it is written has the old or the new ones."""
_PROCESS = re.compile(r"\((\S+_[0-9]+)\)")


def command(settings: Mapping[str, str], program: Sequence[str]) -> list[str]:
    """A program with these variables in its environment.

    Raises:
        FileNotFoundError: this machine lacks ``env``.
    """
    env = shutil.which("env")
    if env is None:
        raise FileNotFoundError("env")
    return [env, *(f"{name}={value}" for name, value in settings.items()), *program]


def settle_in() -> None:
    """Be on the machine that the environment names, or change nothing."""
    if name := os.environ.get(NAME):
        socket.gethostname = lambda: name
    if path := os.environ.get(CLOCK):
        time.time = _time_by(Path(path))


class Clock:
    """The clock of a machine, as those set it who are outside."""

    def __init__(self, path: Path, ahead_seconds: float = 0.0) -> None:
        """``path``: of its file, which is written."""
        self.path = path
        path.touch()
        self.ahead_seconds = ahead_seconds

    @property
    def ahead_seconds(self) -> float:
        """By how much it is ahead of the clusters' clocks; negative: behind."""
        return self._ahead_seconds

    @ahead_seconds.setter
    def ahead_seconds(self, seconds: float) -> None:
        self._ahead_seconds = seconds
        with self.path.open("r+b") as file:
            file.write(f"{seconds:<+{_WIDTH}.3f}".encode())


def _time_by(path: Path) -> Callable[[], float]:
    """``time.time`` of a machine with this clock."""
    file, here = os.open(path, os.O_RDONLY), time.time
    return lambda: here() + float(os.pread(file, _WIDTH, 0))


def signature() -> str:
    """What to say of oneself behind the version; empty where the environment names no machine."""
    name = os.environ.get(NAME)
    return f" ({name}_{os.getpid()})" if name else ""


def process_of(user_agent: str) -> str:
    """Who has sent a request, from what it says of itself; empty: it does not say so."""
    found = _PROCESS.search(user_agent)
    return found[1] if found else ""


def machine_of(process: str) -> str:
    """What the machine of a process is called, which names itself so."""
    return process.rpartition("_")[0]
