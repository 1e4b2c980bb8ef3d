"""The keeper's end in this process: starts it, tells it what begins and ends, and lets it go at the end."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

from mirror.embedded.controllers.kubelet import keeper

MARKER = "JOBMIRROR_CONTAINER"
"""The variable that every process of a container has, and that tells whose it is."""
_LAST_SECONDS = 5.0


class Guard:
    """A keeper of one kubelet's processes and folder."""

    def __init__(self, kubelet_id: str, folder: Path) -> None:
        """Raises OSError: it cannot be started."""
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, f"{MARKER}={kubelet_id}/", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            text=True,
            bufsize=1,
        )

    def began(self, group: int) -> None:
        """A process group is there."""
        self._tell(f"+{group}")

    def ended(self, group: int) -> None:
        """A process group is gone."""
        self._tell(f"-{group}")

    def remove(self, folder: Path) -> None:
        """A folder inside its own is needed no more."""
        self._tell(f"rm {folder}")

    def close(self) -> None:
        """Let it clean up, and wait for that; it takes milliseconds if nothing is left."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LAST_SECONDS)

    def _tell(self, line: str) -> None:
        """A keeper that somebody has killed is no reason to stop."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.write(line + "\n")
