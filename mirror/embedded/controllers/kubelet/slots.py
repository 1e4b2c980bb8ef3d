"""The containers of one pod while it is on a node: what each is doing now, and did before."""

from __future__ import annotations

from dataclasses import dataclass

from mirror.batch import times
from mirror.embedded.controllers.client import Json
from mirror.embedded.controllers.kubelet.podspec import LONG_RUN_SECONDS, described, go_seconds, moment, next_backoff
from mirror.embedded.controllers.kubelet.runtime import Ended, Instant, Run

CREATING = ("ContainerCreating", "")
INITIALIZING = ("PodInitializing", "")
CRASHING = "CrashLoopBackOff"


@dataclass(eq=False, slots=True)
class Slot:
    """One container.

    Invariant: at most one of ``run`` and ``ended`` is set; with neither, it waits because of ``waiting``.
    """

    name: str
    is_init: bool
    is_sidecar: bool
    run: Run | None = None
    ended: Ended | None = None
    last: Ended | None = None
    """How the run before this one ended."""
    restarts: int = 0
    waiting: tuple[str, str] = CREATING
    """Reason and message."""
    backoff_seconds: float = 0.0
    retry_at: float | None = None
    """When it is started again, by the steady clock."""
    is_told_to_stop: bool = False
    ids: tuple[str, ...] = ()
    """Of all runs that logs are kept of."""

    def began(self, run: Run) -> None:
        """It runs."""
        self.run, self.retry_at = run, None
        self.ids = (*self.ids, run.container_id)[-2:]

    def has_begun(self) -> bool:
        """Whether it has ever run."""
        return self.run is not None or self.ended is not None or self.last is not None

    def take_end(self, now: Instant) -> Ended | None:
        """How it has just ended; None if nothing is new."""
        ended = self.run.ended(now) if self.run is not None else None
        if ended is not None:
            self.run, self.ended = None, ended
        return ended

    def plan_restart(self, pod: Json, now: Instant) -> None:
        """It will be started again: the first time at once, then after pauses that grow."""
        assert self.ended is not None
        ended = self.ended
        ran = (ended.finished_at - ended.started_at).total_seconds() if ended.started_at else 0.0
        if ran > LONG_RUN_SECONDS:
            self.backoff_seconds = 0.0
        due = ended.at + self.backoff_seconds
        if due > now.steady:
            text = go_seconds(self.backoff_seconds)
            message = f"back-off {text} restarting failed container={self.name} pod={described(pod)}"
            self.waiting, self.retry_at = (CRASHING, message), due
        else:
            self.retry_at = now.steady
        self.backoff_seconds = next_backoff(self.backoff_seconds)
        self.last, self.ended = ended, None
        self.restarts += 1

    def status(self, container: Json, now: Instant) -> Json:
        """Its ContainerStatus."""
        state: Json
        container_id, is_ready, is_started = "", False, False
        if self.run is not None:
            state = {"running": {"startedAt": times.of(self.run.started_at)}}
            container_id, is_ready, is_started = self.run.container_id, self.run.is_ready(now), True
        elif self.ended is not None:
            state = {"terminated": terminated(self.ended)}
            container_id = self.ended.container_id
            is_ready = self.is_init and not self.is_sidecar and self.ended.exit_code == 0
        else:
            reason, message = self.waiting
            state = {"waiting": {"reason": reason} | ({"message": message} if message else {})}
            container_id = self.last.container_id if self.last else ""
        found = {
            "name": self.name,
            "state": state,
            "lastState": {"terminated": terminated(self.last)} if self.last is not None else {},
            "ready": is_ready,
            "restartCount": self.restarts,
            "image": container.get("image", ""),
            "imageID": "",
            "started": is_started,
        }
        return found | ({"containerID": container_id} if container_id else {})


def terminated(ended: Ended) -> Json:
    """A terminated state."""
    found: Json = {"exitCode": ended.exit_code, "reason": ended.reason or _reason(ended.exit_code)}
    if ended.message:
        found["message"] = ended.message
    # What never ran began and ended at the beginning of time, as kubelets have it.
    found["startedAt"] = times.of(ended.started_at) if ended.started_at else None
    found["finishedAt"] = times.of(ended.finished_at)
    if ended.container_id:
        found["containerID"] = ended.container_id
    return found


def ended_of(state: Json, now: Instant) -> Ended | None:
    """What a terminated state says."""
    found = state.get("terminated")
    if not found:
        return None
    finished = moment(found.get("finishedAt")) or moment(found.get("startedAt")) or now.wall
    return Ended(
        int(found.get("exitCode") or 0),
        finished,
        now.steady_of(finished),
        moment(found.get("startedAt")),
        str(found.get("containerID") or ""),
        str(found.get("reason") or ""),
        str(found.get("message") or ""),
    )


def _reason(exit_code: int) -> str:
    return "Completed" if exit_code == 0 else "Error"
