"""A temporary directory that goes away with its owner, whatever the owner dies of; and so do the programs noted in it.

One for each control plane. The work is done by ``keeper``, a small process of its own, since nothing inside a killed
process can clean up after it. Not here: starting programs (``process``).
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from e2e.controlplane import keeper


class Scratch:
    """The directory; ``close`` removes it, and so does the owner's death."""

    def __init__(self, name: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=f"jobmirror-{name}-"))
        # A session of its own: Ctrl-C, and signals to the owner's process group, must not reach the one who cleans up.
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def note(self, name: str, pid: int) -> None:
        """Remember a running program; a later one of the same name takes its place."""
        (self.path / f"{name}.pid").write_text(f"{pid} {keeper.birth(pid)}")

    def close(self) -> None:
        """End what was noted and still runs, and remove the directory. Takes milliseconds; may be called again."""
        if self._keeper.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._keeper.stdin.close()
        self._keeper.wait()
        # Only if somebody killed the keeper is there anything left.
        shutil.rmtree(self.path, ignore_errors=True)
