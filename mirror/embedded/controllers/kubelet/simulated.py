"""Containers that are only said to run: for how long and how they end, annotations of their pod tell.

The annotations are those of the simulated pods of the end-to-end tests (``e2e/README.md``), with the same meaning.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
from datetime import datetime

from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet.runtime import KILLED, TERMINATED, Ended, Instant, NotYet, Order, Run
from mirror.embedded.podlogs import ContainerLog, PodLogs
from mirror.model.durations import BadDuration, parse_duration

PREFIX = "e2e.jobmirror.io/"
RUN_FOR = PREFIX + "run-for"
"""How long a container runs; ``never``: until it is deleted."""
START_AFTER = PREFIX + "start-after"
"""How long a container waits for its image once its pod is bound; ``never``: it does not start."""
EXIT_CODE = PREFIX + "exit-code"
EXIT_CODE_OF_INDEX = PREFIX + "exit-code-index-"
"""The same for one index of an Indexed Job."""
EXIT_CODE_OF_RESTART = PREFIX + "exit-code-restart-"
"""The same for the run after so many restarts in the same pod; it precedes the others."""
STOP_AFTER = PREFIX + "stop-after"
"""How long a deleted pod takes to stop; beyond its grace it is killed."""
READY_AFTER = PREFIX + "ready-after"
"""How long it takes to become ready."""
LOG = PREFIX + "log"
"""What it writes when it starts."""

SCHEME = "jobmirror://"
_INDEX = "batch.kubernetes.io/job-completion-index"
_RUN_SECONDS = 0.1
_LONGEST_SECONDS = 10 * 365 * 86_400.0


class SimulatedRun:
    """One run of a container that does not exist."""

    def __init__(self, order: Order, container_id: str, started_at: datetime, log: ContainerLog) -> None:
        self.container_id = container_id
        self.started_at = started_at
        self._log = log
        says = order.pod["metadata"]["annotations"]
        begin = order.now.steady_of(started_at)
        self._exit_code = exit_code_of(says, order.restarts)
        self._stop_seconds = seconds_of(says.get(STOP_AFTER), 0.0)
        # From here on by the steady clock.
        self._ready_at = begin + seconds_of(says.get(READY_AFTER), 0.0)
        self._ends_at: float | None = None
        self._stopped_at: float | None = None
        self._killed_at: float | None = None
        if order.is_init and not order.is_sidecar:
            self._ends_at, self._exit_code = begin, 0
        elif not order.is_sidecar and says.get(RUN_FOR) != "never":
            self._ends_at = begin + seconds_of(says.get(RUN_FOR), _RUN_SECONDS)

    def is_ready(self, now: Instant) -> bool:
        """After a while, if the annotations say so."""
        return now.steady >= self._ready_at

    def ended(self, now: Instant) -> Ended | None:
        """As the annotations say."""
        if self._ends_at is None or now.steady < self._ends_at:
            return None
        self._log.end(now.wall)
        finished = max(now.wall_of(self._ends_at), self.started_at)
        return Ended(self._exit_code, finished, self._ends_at, self.started_at, self.container_id)

    def changes_at(self, now: Instant) -> float | None:
        """When it becomes ready or ends, whatever comes next."""
        moments = (self._ready_at, self._ends_at)
        return min((one for one in moments if one is not None and one > now.steady), default=None)

    def stop(self, now: Instant, grace_seconds: float) -> None:
        """It takes as long as it says, or is killed."""
        if self._stopped_at is None:
            self._stopped_at = now.steady
        killed_at = now.steady + grace_seconds
        self._killed_at = min(killed_at if self._killed_at is None else self._killed_at, killed_at)
        stops_at = self._stopped_at + self._stop_seconds
        is_killed = stops_at > self._killed_at
        self._ends_at, self._exit_code = (self._killed_at, KILLED) if is_killed else (stops_at, TERMINATED)


class Simulated:
    """The runtime of a simulated node."""

    def __init__(self, logs: PodLogs, chance: random.Random) -> None:
        self._logs = logs
        self._chance = chance
        self._waiting_since: dict[str, float] = {}
        """Since when pods have waited for their images, by uid; the steady clock."""

    def remark(self, container: Json) -> str:
        """Nothing: everybody knows."""
        return ""

    async def start(self, order: Order, on_change: Callable[[], None]) -> Run:
        """At once, or when its pod says.

        Raises:
            NotYet: it does not start yet.
        """
        self._wait_for_image(order)
        container_id = f"{SCHEME}{self._chance.getrandbits(256):064x}"
        log = ContainerLog()
        log.write(_first_words(order), order.now.wall)
        self._logs.add(container_id, log)
        return SimulatedRun(order, container_id, order.now.wall, log)

    def _wait_for_image(self, order: Order) -> None:
        after = order.pod["metadata"]["annotations"].get(START_AFTER)
        if after is None or order.restarts:
            return
        uid = order.pod["metadata"]["uid"]
        since = self._waiting_since.setdefault(uid, order.now.steady)
        if after == "never" or order.now.steady - since < seconds_of(after, 0.0):
            raise NotYet("ErrImagePull", f"simulated: image {order.container.get('image', '')} is not there yet")

    def adopt(self, order: Order, container_id: str, started_at: datetime) -> Run | None:
        """Nothing is lost with a kubelet: it runs for as long as it says, from when it began."""
        log = self._logs.find(container_id)
        if log is None:
            log = ContainerLog()
            self._logs.add(container_id, log)
        return SimulatedRun(order, container_id, started_at, log)

    def forget(self, pod: Json, container_ids: list[str]) -> None:
        """Its logs are gone."""
        self._waiting_since.pop(pod["metadata"]["uid"], None)
        for one in container_ids:
            self._logs.remove(one)

    def close(self) -> None:
        """There is nothing to end."""


def exit_code_of(annotations: dict[str, str], restarts: int) -> int:
    """How a run ends, as its pod's annotations say."""
    names = (EXIT_CODE_OF_RESTART + str(restarts), EXIT_CODE_OF_INDEX + annotations.get(_INDEX, "none"), EXIT_CODE)
    text = next((annotations[name] for name in names if name in annotations), "0")
    try:
        return max(-(2**31), min(int(text), 2**31 - 1))
    except ValueError:
        return 0


def seconds_of(text: str | None, default: float) -> float:
    """A duration of an annotation; what is none counts as not said."""
    try:
        return default if text is None else min(parse_duration(text), _LONGEST_SECONDS)
    except BadDuration:
        return default


def _first_words(order: Order) -> bytes:
    said: str | None = order.pod["metadata"]["annotations"].get(LOG)
    if said is not None:
        return (said if said.endswith("\n") else said + "\n").encode(errors="replace")
    body = order.container
    command = shlex.join(map(str, [*(body.get("command") or ()), *(body.get("args") or ())]))
    return f"(simulated: nothing is run) {body.get('image', '')} {command}".rstrip().encode(errors="replace") + b"\n"
