"""One server program of a control plane: started, paused, killed, and never left behind.

On Linux the kernel kills it when the thread that started it ends (``leash``), so start programs from a thread that
stays, the main one; elsewhere, and for what the kernel misses, ``keeper`` does it. Not tied to an event loop. Not here:
what to start (``components``).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.controlplane import leash
from e2e.controlplane.scratch import Scratch

_LOOK_AGAIN_SECONDS = 0.02
LAZY_COLLECTOR = "400"
"""GOGC of what is written in Go: an API server starts with a fifth less CPU than by default, for 120 MiB more."""


class ProgramEnded(RuntimeError):
    """A program ended although nobody ended it; the text holds its last words."""


class Program:
    """A program with its arguments, its log file, and, while it is started, its process."""

    def __init__(self, command: Sequence[str | Path], scratch: Scratch) -> None:
        self.command = [str(part) for part in command]
        self.name = Path(self.command[0]).name
        self.log = scratch.path / f"{self.name}.log"
        self._scratch = scratch
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process number of the latest start; None before the first."""
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended; a paused one runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the latest start ended, negative for a signal; None before that."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start it, or start it again.

        It sees nothing of our environment but PATH, PYTHONPATH (a worktree's own ``mirror``, where the installed one is
        another's) and GOGC, and has a session of its own, so that Ctrl-C is ours to act upon.
        """
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._scratch.path),
            "GOGC": os.environ.get("GOGC", LAZY_COLLECTOR),
        }
        if path := os.environ.get("PYTHONPATH"):
            environment["PYTHONPATH"] = path
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *self.command],
                cwd=self._scratch.path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._scratch.note(self.name, self._process.pid)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it runs. ``Popen`` makes sure that the process number is still this program's."""
        if self._process is not None:
            self._process.send_signal(number)

    async def kill(self) -> None:
        """SIGKILL it, paused or not, and return when it is gone."""
        self.send(signal.SIGKILL)
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)

    async def wait_until_ended(self, *, seconds: float) -> int:
        """Wait until it ends, by itself or by what was sent, and give its exit code.

        Raises:
            TimeoutError: it goes on.
        """
        async with asyncio.timeout(seconds):
            while True:
                code = self.exit_code
                if code is not None:
                    return code
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    def check(self) -> None:
        """Raise ``ProgramEnded`` unless it runs."""
        if not self.is_running:
            code = self._process.returncode if self._process else None
            raise ProgramEnded(f"{self.name} ended with {code}:\n{self.last_words()}")

    def last_words(self, length: int = 2000) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-length:] if self.log.exists() else ""


def installed_mirror() -> Path:
    """The command ``mirror`` of this environment.

    Raises:
        FileNotFoundError: there is none.
    """
    beside = Path(sys.executable).with_name("mirror")
    program = beside if beside.exists() else shutil.which("mirror")
    if program is None:
        raise FileNotFoundError(f"{beside}: install the project into this environment first")
    return Path(program)
