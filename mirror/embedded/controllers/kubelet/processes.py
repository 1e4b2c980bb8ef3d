"""Containers that are processes of this machine (``--pods=process``): they run as the user who runs this.

Nothing of them is left at the end: each has a session of its own that is killed as a whole, what has left that session
is found as a descendant or by a mark in its environment, and a keeper does the same if this process is killed. What has
left the session, emptied its environment and lost its parent is not found.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet import keeper, launching
from mirror.embedded.controllers.kubelet.environment import Environment
from mirror.embedded.controllers.kubelet.runtime import Ended, Instant, NotYet, Order, Run
from mirror.embedded.controllers.kubelet.simulated import SCHEME
from mirror.embedded.podlogs import ContainerLog, PodLogs
from mirror.runtime.clock import Clock

_READ_BYTES = 2**16
_POLL_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 86_400.0
_MESSAGE_LINES = 80
_MESSAGE_BYTES = 2048
_SIGNALS = {one.name: one for one in signal.Signals}


@dataclass(frozen=True, slots=True)
class Started:
    """A process that was started for a container."""

    process: subprocess.Popen[bytes]
    source: int
    """What it prints comes from this file descriptor."""
    log: ContainerLog
    container_id: str
    mark: bytes
    """An entry of its environment, by which what it starts is known."""


class ProcessRun:
    """One process, its log, and what it has started.

    Invariant: until ``_ended`` is set, the process group exists and the keeper knows of it.
    """

    def __init__(
        self, started: Started, order: Order, *, guard: Guard, clock: Clock, on_change: Callable[[], None]
    ) -> None:
        process, source = started.process, started.source
        self.container_id = started.container_id
        self.started_at = clock.now()
        self._process = process
        self._source = source
        self._log = started.log
        self._mark = started.mark
        self._guard = guard
        self._clock = clock
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._ended: Ended | None = None
        self._kill_timer: asyncio.TimerHandle | None = None
        self._kill_at = float("inf")
        self._is_asked = False
        self._stop_signal = _stop_signal(order.container)
        self._tells_log = order.container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        os.set_blocking(source, False)
        self._loop.add_reader(source, self._read)
        self._watch = _watch_end(process, self._loop, self._look)

    def is_ready(self, now: Instant) -> bool:
        """As long as it runs: probes are not asked."""
        return self._ended is None

    def ended(self, now: Instant) -> Ended | None:
        """How it ended."""
        return self._ended

    def changes_at(self, now: Instant) -> float | None:
        """It says so itself."""
        return None

    def stop(self, now: Instant, grace_seconds: float) -> None:
        """Ask the whole group to end, and kill it after the grace."""
        if self._ended is not None:
            return
        if not self._is_asked and grace_seconds > 0:
            self._is_asked = True
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, self._stop_signal)
        due = self._loop.time() + min(grace_seconds, _LONGEST_WAIT_SECONDS)
        if due < self._kill_at:
            if self._kill_timer is not None:
                self._kill_timer.cancel()
            self._kill_at = due
            self._kill_timer = self._loop.call_at(due, self._kill)

    def close(self) -> None:
        """Kill it now, and wait until it is gone."""
        if self._ended is None:
            self._kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5.0)
            self._look()

    def _kill(self) -> None:
        keeper.kill_family(self._process.pid)

    def _read(self) -> bool:
        """Take what is there of the output; whether more may come."""
        try:
            data = os.read(self._source, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._log.write(data, self._clock.now())
            return True
        self._loop.remove_reader(self._source)
        return False

    def _look(self) -> None:
        """Whether it has ended: then what it left behind ends, too."""
        if self._ended is not None or not _is_over(self._process):
            return
        now = self._clock.now()
        self._kill()  # before its number is free for others
        code = self._process.wait()
        keeper.kill_marked(self._mark)
        self._guard.ended(self._process.pid)
        self._watch()
        if self._kill_timer is not None:
            self._kill_timer.cancel()
        for _ in range(1024):
            if not self._read():
                break
        self._loop.remove_reader(self._source)
        os.close(self._source)
        self._log.end(now)
        exit_code = code if code >= 0 else 128 - code
        message = self._log.last_text(_MESSAGE_LINES, _MESSAGE_BYTES) if self._tells_log and exit_code else ""
        self._ended = Ended(exit_code, now, self._clock.monotonic(), self.started_at, self.container_id, "", message)
        self._on_change()


class Processes:
    """The runtime of a node whose containers are processes."""

    def __init__(
        self, folder: Path, logs: PodLogs, environment: Environment, *, chance: random.Random, clock: Clock
    ) -> None:
        """``folder`` is its own, and removed at the end. Raises OSError: the keeper cannot be started."""
        self._folder = folder
        self._logs = logs
        self._environment = environment
        self._chance = chance
        self._clock = clock
        self._id = f"{os.getpid()}-{chance.getrandbits(64):016x}"
        self._guard = Guard(self._id, folder)
        self._runs: set[ProcessRun] = set()

    def remark(self, container: Json) -> str:
        """What people should know who expect a container."""
        mounts = [one.get("mountPath", "") for one in container.get("volumeMounts") or ()]
        rest = f"; nothing is mounted at {', '.join(mounts)}" if mounts else ""
        return f'Image "{container.get("image", "")}" is ignored: the command runs as a process of this machine{rest}'

    async def start(self, order: Order, on_change: Callable[[], None]) -> Run:
        """Start the command; see ``Runtime``."""
        uid, name = order.pod["metadata"]["uid"], order.container["name"]
        home = self._folder / uid / name
        mark = f"{self._id}/{uid}/{name}/{order.restarts}"
        given = launching.base_variables(order.pod, home)
        variables = await self._environment.of(order.pod, order.container, given)
        variables[MARKER] = mark
        log, source, output = self._open(home, order.restarts)
        try:
            process = launching.start(launching.launch_of(order.container, variables, home), output)
        except BaseException:
            os.close(source)
            log.remove()
            raise
        finally:
            os.close(output)
        container_id = f"{SCHEME}{self._chance.getrandbits(256):064x}"
        self._guard.began(process.pid)
        self._logs.add(container_id, log)

        def ended() -> None:
            self._runs.discard(run)
            on_change()

        run = ProcessRun(
            Started(process, source, log, container_id, f"{MARKER}={mark}\0".encode()),
            order,
            guard=self._guard,
            clock=self._clock,
            on_change=ended,
        )
        self._runs.add(run)
        return run

    def _open(self, home: Path, restarts: int) -> tuple[ContainerLog, int, int]:
        """A folder and a log for a container, and both ends of the pipe between. Raises NotYet."""
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            log = ContainerLog(home.with_name(f"{home.name}.{restarts}.log"))
            try:
                return log, *os.pipe()
            except OSError:
                log.remove()
                raise
        except OSError as error:  # too many open files, a full disk
            raise NotYet("CreateContainerError", str(error)) from error

    def adopt(self, order: Order, container_id: str, started_at: datetime) -> Run | None:
        """Processes end with their kubelet: none is ever found again."""
        return None

    def forget(self, pod: Json, container_ids: list[str]) -> None:
        """Its logs and files are gone."""
        for one in container_ids:
            self._logs.remove(one)
        self._guard.remove(self._folder / pod["metadata"]["uid"])

    def close(self) -> None:
        """Kill whatever runs, and leave nothing behind."""
        for run in list(self._runs):
            run.close()
        self._guard.close()


def _is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; where the system can say so, its number is still taken then."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except (AttributeError, ChildProcessError):
        return process.poll() is not None


def _stop_signal(container: Json) -> int:
    name = (container.get("lifecycle") or {}).get("stopSignal")
    return _SIGNALS.get(str(name), signal.SIGTERM)


def _watch_end(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, look: Callable[[], None]
) -> Callable[[], None]:
    """Call ``look`` when it has ended; gives what ends the watch."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return _poll_end(process, loop, look)

    def end() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)

    loop.add_reader(descriptor, look)
    return end


def _poll_end(
    process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, look: Callable[[], None]
) -> Callable[[], None]:
    """Where the system does not tell, ask it again and again."""
    timer: list[asyncio.TimerHandle] = []

    def poll() -> None:
        look()
        if process.returncode is None:
            timer[:] = [loop.call_later(_POLL_SECONDS, poll)]

    timer.append(loop.call_later(_POLL_SECONDS, poll))

    def end() -> None:
        for one in timer:
            one.cancel()

    return end


# The keeper's end in this process: starts it, reports processes that begin and end.

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
