"""Outlives its owner by a moment, to end what the owner started and to remove its files. A program of its own.

``python keeper.py DIRECTORY`` waits until its standard input ends, which happens when the owner closes it and also when
the owner dies of anything, SIGKILL included. Then it kills the programs noted in ``DIRECTORY/*.pid`` that still run and
removes the directory. Started by ``scratch`` only; uses the standard library only, so that it starts in milliseconds.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

_PATIENCE_SECONDS = 10.0


def birth(pid: int) -> str:
    """Tells one holder of a process number from the next: when it was started; empty if nothing has this number."""
    with contextlib.suppress(OSError):
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state == "Z" else rest[18]
    if sys.platform == "linux":
        return ""
    answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return answer.stdout.strip()


def end_programs(directory: Path) -> None:
    """Kill every noted program that still runs, and wait until it is gone."""
    noted = [file.read_text().split(" ", 1) for file in directory.glob("*.pid")]
    running = [(int(pid), born) for pid, born in noted if born and birth(int(pid)) == born]
    for pid, _ in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while any(birth(pid) == born for pid, born in running) and time.monotonic() < deadline:
        time.sleep(0.01)  # killed processes tell nobody but their parent when they are gone


if __name__ == "__main__":
    kept = Path(sys.argv[1])
    sys.stdin.buffer.read()
    end_programs(kept)
    shutil.rmtree(kept, ignore_errors=True)
