"""One pod on a node: which containers to start, stop and start again, and the status that follows.

The kubelet calls ``advance`` whenever something may have changed: the pod, a container, the time. All waiting is the
kubelet's; nothing here knows the API server.
"""

from __future__ import annotations

from collections.abc import Callable

from mirror.batch import times
from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet import podspec
from mirror.embedded.controllers.kubelet.runtime import KILLED, CannotStart, Ended, Instant, NotYet, Order, Runtime
from mirror.embedded.controllers.kubelet.slots import INITIALIZING, Slot, ended_of
from mirror.embedded.controllers.kubelet.status import Place, Verdict, status_of
from mirror.runtime.events import NORMAL, WARNING

DEADLINE = Verdict("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
LOST = "The container could not be located when the pod was terminated"
AGAIN_SECONDS = 2.0
LEAST_SECONDS = 0.001
"""A timer may go off a clock's resolution before its moment: who waits for no more than that waits without end."""

Tell = Callable[[Json, str, str, str, str], None]
"""Tells an event: pod, container's path in the spec (or nothing), type, reason, message."""


class Machine:
    """One pod.

    Invariant: once ``is_over``, no container runs and none will be started any more.
    """

    def __init__(self, pod: Json, place: Place, runtime: Runtime, *, wake: Callable[[], None], tell: Tell) -> None:
        self.pod = pod
        """The newest that is known of it; the kubelet replaces it."""
        self.place = place
        self._runtime = runtime
        self._wake = wake
        self._tell = tell
        self._slots = [
            Slot(one["name"], is_init, is_init and podspec.is_sidecar(one))
            for one, is_init in podspec.containers(pod["spec"])
        ]
        self._bodies = [one for one, _ in podspec.containers(pod["spec"])]
        self._verdict: Verdict | None = None
        self._is_ending = False
        self.is_over = False
        if any(one.is_init for one in self._slots):
            for slot in self._slots:
                slot.waiting = INITIALIZING

    # -- what the kubelet asks -----------------------------------------------------------------------------------------

    async def advance(self, now: Instant) -> float | None:
        """Do what is to be done now; gives seconds after which to look again, if nothing else happens."""
        self._take_ends(now)
        self._end_if_due(now)
        if not self._is_ending:
            await self._run(now)
        if self._is_ending:
            self._stop_all(now)
        self._take_ends(now)
        if self._is_ending and not self.is_running and not self.is_over:
            self._bury(now)
        return self._next_look(now)

    def status(self, now: Instant) -> Json:
        """The status to write."""
        return status_of(self.pod, self._slots, self.place, now, is_over=self.is_over, verdict=self._verdict)

    @property
    def is_running(self) -> bool:
        return any(slot.run for slot in self._slots)

    @property
    def is_being_deleted(self) -> bool:
        return self.pod["metadata"].get("deletionTimestamp") is not None

    def vanish(self, now: Instant) -> None:
        """The pod is gone from the API server: whatever runs is killed."""
        self._is_ending = True
        for slot in self._slots:
            if slot.run is not None:
                slot.run.stop(now, 0.0)

    @property
    def container_ids(self) -> list[str]:
        """Of all runs that logs are kept of."""
        return [one for slot in self._slots for one in slot.ids]

    def adopt(self, now: Instant) -> None:
        """Take up a pod that an earlier kubelet has begun, from its stored status."""
        stored = self.pod["status"]
        found = {
            one.get("name"): one
            for name in ("initContainerStatuses", "containerStatuses")
            for one in stored.get(name) or ()
        }
        for slot, body in zip(self._slots, self._bodies, strict=True):
            status = found.get(slot.name)
            if status is not None:
                self._adopt(slot, body, status, now)
        if stored.get("phase") in podspec.FINAL:
            self._is_ending = self.is_over = True

    # -- containers ----------------------------------------------------------------------------------------------------

    def _adopt(self, slot: Slot, body: Json, status: Json, now: Instant) -> None:
        state = status.get("state") or {}
        slot.restarts = int(status.get("restartCount") or 0)
        slot.last = ended_of(status.get("lastState") or {}, now)
        slot.ended = ended_of(state, now)
        container_id = str(status.get("containerID") or "")
        if container_id:
            slot.ids = (container_id,)
        if slot.restarts:
            slot.backoff_seconds = podspec.next_backoff(0.0)
        running = state.get("running")
        if running is None:
            return
        since = podspec.moment(running.get("startedAt")) or now.wall
        run = self._runtime.adopt(self._order(slot, body, now), container_id, since)
        if run is not None:
            slot.began(run)
        else:
            slot.ended = Ended(KILLED, now.wall, now.steady, since, container_id, "ContainerStatusUnknown", LOST)

    def _take_ends(self, now: Instant) -> None:
        for slot in self._slots:
            slot.take_end(now)

    def _end_if_due(self, now: Instant) -> None:
        """Deleted, over its deadline, or ended by somebody else."""
        deadline = self._deadline()
        if self.is_being_deleted or self.pod["status"].get("phase") in podspec.FINAL:
            self._is_ending = True
        elif deadline is not None and now.steady >= deadline and not self._is_ending:
            self._verdict, self._is_ending = DEADLINE, True
            self._tell(self.pod, "", NORMAL, "DeadlineExceeded", DEADLINE.message)

    def _deadline(self) -> float | None:
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return None
        return self.place.since + float(seconds)

    def _bury(self, now: Instant) -> None:
        """Nothing runs any more; what was never seen to end is said to be lost."""
        self.is_over = True
        for slot in self._slots:
            if slot.ended is None and (not slot.is_init or slot.has_begun()):
                slot.ended = Ended(KILLED, now.wall, now.steady, None, "", "ContainerStatusUnknown", LOST)

    async def _run(self, now: Instant) -> None:
        """Init containers one after the other, then all others; what has ended is started again if it should."""
        for slot, body in zip(self._slots, self._bodies, strict=True):
            if slot.is_init and not await self._run_init(slot, body, now):
                return
        for slot, body in zip(self._slots, self._bodies, strict=True):
            if not slot.is_init:
                await self._keep_running(slot, body, now)
        main = [slot for slot in self._slots if not slot.is_init]
        if all(slot.ended is not None for slot in main):
            self._is_ending = True

    async def _run_init(self, slot: Slot, body: Json, now: Instant) -> bool:
        """Whether the next container may start."""
        while True:
            await self._keep_running(slot, body, now)
            ended = slot.take_end(now) or slot.ended
            if slot.is_sidecar:
                return slot.run is not None or slot.has_begun()
            if ended is None:
                return False
            if ended.exit_code == 0:
                return True
            if not self._restarts(slot, body, ended):
                self._is_ending = True
                return False

    async def _keep_running(self, slot: Slot, body: Json, now: Instant) -> None:
        if slot.run is not None:
            return
        if slot.ended is not None:
            if not self._restarts(slot, body, slot.ended):
                return
            slot.plan_restart(self.pod, now)
            if slot.retry_at is not None and slot.retry_at > now.steady:
                where = f"container {slot.name} in pod {podspec.described(self.pod)}"
                self._say(slot, WARNING, "BackOff", f"Back-off restarting failed {where}")
        if slot.retry_at is None or slot.retry_at <= now.steady:
            await self._start(slot, body, now)

    def _restarts(self, slot: Slot, body: Json, ended: Ended) -> bool:
        return podspec.restarts(self.pod["spec"], body, ended.exit_code, is_init=slot.is_init)

    async def _start(self, slot: Slot, body: Json, now: Instant) -> None:
        try:
            run = await self._runtime.start(self._order(slot, body, now), self._wake)
        except NotYet as error:
            slot.waiting, slot.retry_at = (error.reason, str(error)), now.steady + AGAIN_SECONDS
            self._say(slot, WARNING, "Failed", f"Error: {error}")
            return
        except CannotStart as error:
            slot.ended = Ended(error.exit_code, now.wall, now.steady, None, "", error.reason, str(error))
            self._say(slot, WARNING, "Failed", f"Error: {error}")
            return
        slot.began(run)
        if not slot.restarts and (remark := self._runtime.remark(body)):
            self._say(slot, NORMAL, "ImageIgnored", remark)
        self._say(slot, NORMAL, "Created", "Container created")
        self._say(slot, NORMAL, "Started", "Container started")

    def _order(self, slot: Slot, body: Json, now: Instant) -> Order:
        return Order(self.pod, body, slot.restarts, now, slot.is_init, slot.is_sidecar)

    def _stop_all(self, now: Instant) -> None:
        """Ask every container to end: sidecars only after the others."""
        grace = podspec.grace_seconds(self.pod)
        main_run = any(slot.run for slot in self._slots if not slot.is_sidecar)
        for slot in self._slots:
            if slot.run is None or (slot.is_sidecar and main_run and grace > 0):
                continue
            if slot.run.ended(now) is None:
                slot.run.stop(now, grace)
                if not slot.is_told_to_stop:
                    slot.is_told_to_stop = True
                    self._say(slot, NORMAL, "Killing", f"Stopping container {slot.name}")

    def _next_look(self, now: Instant) -> float | None:
        if self.is_over:
            return None
        times_ = [slot.run.changes_at(now) for slot in self._slots if slot.run is not None]
        times_ += [slot.retry_at for slot in self._slots if slot.run is None and slot.ended is None]
        if not self._is_ending:
            times_.append(self._deadline())
        due = min((one for one in times_ if one is not None), default=None)
        return None if due is None else max(LEAST_SECONDS, due - now.steady)

    def _say(self, slot: Slot, type_name: str, reason: str, message: str) -> None:
        part = "initContainers" if slot.is_init else "containers"
        self._tell(self.pod, f"{part}{{{slot.name}}}", type_name, reason, message)


def place_of(pod: Json, host_ip: str, pod_ip: str, now: Instant) -> Place:
    """Where a pod is: what its status says already, else what is new."""
    stored = pod["status"]
    if pod["spec"].get("hostNetwork"):
        pod_ip = host_ip
    started = podspec.moment(stored.get("startTime"))
    since = now.steady if started is None else now.steady_of(started)
    return Place(host_ip, stored.get("podIP") or pod_ip, times.of(started or now.wall), since)
