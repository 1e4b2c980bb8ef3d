"""A process of its own that outlives the kubelet of ``--pods=process`` and ends what that leaves behind.

It is started by ``guarding`` as a plain script, with Python's standard library alone. On its standard input it reads
of process groups that begin (``+1234``) and have ended (``-1234``), and of folders to remove (``rm /path``). When that
input ends, the kubelet is gone: whatever it has started is killed, and its folder is removed.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

ROUNDS = 50
PAUSE_SECONDS = 0.02


def marked(marker: bytes) -> "list[int]":
    """Processes with the marker in their environment, wherever they have gone; none where there is no ``/proc``."""
    found: list[int] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if marker in file.read():
                found.append(int(name))
    return found


def kill_group(group: int) -> None:
    """Kill all of a process group."""
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def descendants(process: int) -> "list[int]":
    """Children of a process, their children, and so on; none where there is no ``/proc``."""
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in filter(str.isdigit, names):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            # The name, in parentheses, may hold anything.
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found = list(children.get(process, ()))
    for one in found:
        found += children.get(one, ())
    return found


def kill_family(group: int) -> None:
    """Kill a process group, and what its leader has started that has left it."""
    left = descendants(group)
    kill_group(group)
    for one in left:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)


def kill_marked(marker: bytes) -> int:
    """Kill every marked process; how many there were."""
    found = marked(marker)
    for process in found:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return len(found)


def main() -> None:
    """Keep watch until the input ends, then clean up."""
    marker, folder = sys.argv[1].encode(), sys.argv[2]
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        word = line.strip()
        if word.startswith("+"):
            groups.add(int(word[1:]))
        elif word.startswith("-"):
            groups.discard(int(word[1:]))
        elif word.startswith("rm ") and word[3:].startswith(folder + os.sep):
            shutil.rmtree(word[3:], ignore_errors=True)
    for group in groups:
        kill_group(group)
    for _ in range(ROUNDS):
        if not kill_marked(marker):
            break
        time.sleep(PAUSE_SECONDS)  # what was killed may have started others just before
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
