"""Jobs whose pods do not start, and are tried on another worker, in random flows (D31), for hypothesis.

The law: no pod of a source ever starts on two workers. Nodes are closed and opened, images take their time, so that
pods start before a mirror is looked at, while it is, and while it is stopped.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any, ClassVar

from doubles.managers import placed
from flow_invariants import Invariants
from flow_machine import WORKER, Everybody
from flow_machine_base import NAMES, WAITS
from flow_settled import disagreements, mend, wait_until_settled
from flow_world import LOST_AFTER_SECONDS, MANAGER, SIMULATED, FlowWorld, job, path, tolerant
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.kinds import Loss, internal_error
from mirror.embedded.faults.targets import Which
from mirror.kinds.base import MirrorTransform
from mirror.model import names
from mirror.model.retries import Retries, RetryState, parse_retries
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane

RETRY_AFTER_SECONDS = 15.0
PULLS = ("0s", "10s", "14s", "15s", "16s", "20s", "40s")
"""How long images take, around the time after which a Job is tried elsewhere."""
PENDING: dict[str, dict[str, Any]] = {
    "one": {},
    "wide": {"parallelism": 3, "completions": 3},
    "indexed": {"parallelism": 2, "completions": 3, "completionMode": "Indexed"},
    "restarting": {"template_restarts": True},
    "replacing": {"parallelism": 2, "completions": 2, "podReplacementPolicy": "Failed"},
    "unready": {"run_for": "90s"},
}
"""The last one runs for long before it is ready, so that nothing but its pods shows that it runs."""
EVENTS = (
    "",
    "",
    "the manager dies",
    "its nodes are opened",
    "somebody resumes it there",
    "its user suspends it",
    "its user deletes it",
    "its user scales it",
    "the worker goes down",
    "watches break",
    "pods are not told",
    "deletions are not answered",
    "records are not answered",
    "the mirror is deleted there",
    "pods are deleted there",
    "it runs there unseen",
    "it runs there without a manager",
)
MOMENTS = st.sampled_from((0.0, 0.3, 1.0, 2.0, 4.0, 7.0, 9.0, 11.0, 15.0))
"""Seconds after it began to be due."""
NEVER = 1_000_000
PROVED_SECONDS = 15.0
"""So long it takes at most on a quiet day to see that nothing of it ran."""
NODE = "/api/v1/nodes/node-0"


def retries_of(source: Json | None) -> Retries:
    """What a source says of them."""
    listed = ((source or {}).get("status") or {}).get("conditions") or ()
    found = next((one for one in listed if one["type"] == names.RETRYING), None)
    return parse_retries(found["status"], found.get("message")) if found is not None else Retries()


def has_started(pod: Json) -> bool:
    """Whether a container of it runs, or ever did."""
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(kind) or ():
            for state in (one.get("state") or {}, one.get("lastState") or {}):
                if state.get("running") is not None or (state.get("terminated") or {}).get("startedAt"):
                    return True
    return False


class RetryWorld(FlowWorld):
    """The settings say that a Job of which no pod is ready after some seconds is tried elsewhere."""

    def _mirroring_settings(self) -> MirroringSettings:
        self._settings = {
            "policy": Policy(lost_after_seconds=LOST_AFTER_SECONDS, retry_after_seconds=RETRY_AFTER_SECONDS),
            "transform": MirrorTransform(self.origin, management_uid=self.origin, label_pods=True),
        }
        return super()._mirroring_settings()

    async def kill_all_managers(self) -> None:
        """Until one is started nobody sees what happens."""
        await self.kill_manager()

    async def close_nodes(self, worker: str, *, is_closed: bool) -> None:
        """No pod is bound to a node there, or they are again."""
        await tolerant(self.workers[worker].api.merge(NODE, {"spec": {"unschedulable": is_closed or None}}))


class RetryLaws(Invariants):
    """What holds of every retry, beside what holds for all."""

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self.started: defaultdict[str, set[str]] = defaultdict(set)
        """The workers on which a pod of a source has started, by its uid."""
        self.retried = 0
        """How many sources have left a worker."""

    def _look_at_pod(self, plane: ControlPlane, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_pod(plane, uid, old, new, request)
        pod = new or old or {}
        owners = pod["metadata"].get("ownerReferences") or ()
        source = next((self._source_of.get(one["uid"], "") for one in owners if one.get("controller")), "")
        if source and has_started(pod):
            self.started[source].add(plane.name)
            if len(self.started[source]) > 1:
                self._wrong(f"D2, D31: pods of one Job have started on {sorted(self.started[source])}")

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        before, was, now = placed(old), retries_of(old), retries_of(new)
        if old is not None and new is not None and before is not None and placed(new) is None:
            if was.state is RetryState.PROVED:
                self.retried += 1
                self._look_at_retry(uid, before, was, now, new)
                self.created_on[uid].discard(before)  # what it had there is gone
                old = {**old, "status": {**old["status"], "conditions": []}}
            elif self._was_created(uid, before):
                self._wrong(f"D31: the record of {uid} was cleared without a proof, where it has a mirror")
        super()._look_at_source(uid, old, new, request)

    def _look_at_retry(self, uid: str, before: str, was: Retries, now: Retries, new: Json) -> None:
        name = new["metadata"]["name"]
        if any(one == (before, was.uid) for one in self.live[uid]):
            self._wrong(f"D31: {name} has left {before}, where its mirror is")
        if not now.tried or now.tried[-1].worker != before or now.state is not RetryState.OVER:
            self._wrong(f"D31: {name} has left {before}, and does not say so: {now}")
        if names.MIRROR_UID in (new["metadata"].get("annotations") or {}):
            self._wrong(f"D31: {name} names the mirror that it has left")
        if before in self.started[uid]:
            self._wrong(f"D31: {name} has left {before}, where a pod of it has started")

    def _look_at_deletion(self, worker: str, uid: str, source_uid: str, name: str) -> None:
        record = retries_of(self.sources.get(source_uid))
        if record.state is RetryState.PROVED and record.uid == uid:
            if worker in self.started[source_uid]:
                self._wrong(f"D31: the mirror of {name} on {worker} was deleted although a pod of it has started")
            return
        super()._look_at_deletion(worker, uid, source_uid, name)


class Retrying(Everybody):
    """All that ``Everybody`` does, with Jobs that do not start where they are."""

    WORLD: ClassVar[type[FlowWorld]] = RetryWorld

    def _laws(self) -> Invariants:
        return RetryLaws(self.world)

    @property
    def _world(self) -> RetryWorld:
        assert isinstance(self.world, RetryWorld)
        return self.world

    async def _settle(self) -> None:
        await mend(self.world)
        for worker in self.world.workers:
            await self._world.close_nodes(worker, is_closed=False)
        await wait_until_settled(self.world, self.laws, lambda: disagreements(self.world))

    @rule(worker=WORKER, is_closed=st.booleans(), wait=WAITS)
    def nodes_are_closed_or_opened(self, worker: str, is_closed: bool, wait: float) -> None:
        self._do(self._and_wait(self._world.close_nodes(worker, is_closed=is_closed), wait))

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(PENDING)),
        worker=st.sampled_from(("east", "west", "")),
        pull=st.sampled_from(PULLS),
        wait=WAITS,
    )
    def a_user_creates_one_that_takes_its_time(self, name: str, kind: str, worker: str, pull: str, wait: float) -> None:
        self._do(self._and_wait(tolerant(self._create(name, kind, worker, pull)), wait))

    async def _create(self, name: str, kind: str, worker: str, pull: str) -> None:
        spec = dict(PENDING[kind])
        restarts = spec.pop("template_restarts", False)
        annotations = {names.WORKER_ORDER: worker} if worker else {}
        body = job(name, annotations=annotations, **{"run_for": "3s", **spec})
        said = body["spec"]["template"]["metadata"]["annotations"]
        said[f"{SIMULATED}start-after"] = pull
        if kind == "unready":
            said[f"{SIMULATED}ready-after"] = "80s"
        if restarts:
            body["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
        await self.world.management.api.create(path(""), body)

    @rule(
        kind=st.sampled_from(sorted(PENDING)),
        pull=st.sampled_from(PULLS),
        is_closed=st.booleans(),
        event=st.sampled_from(EVENTS),
        moment=MOMENTS,
        seconds=st.sampled_from((3.0, 20.0, 60.0)),
    )
    def one_does_not_start_on_a_quiet_day(
        self, kind: str, pull: str, is_closed: bool, event: str, moment: float, seconds: float
    ) -> None:
        """On east, while nothing else is wrong; then, at some moment of its retry, something is."""
        self._do(self._quiet_day(kind, pull, event, moment, seconds, is_closed=is_closed))

    async def _quiet_day(
        self, kind: str, pull: str, event: str, moment: float, seconds: float, *, is_closed: bool
    ) -> None:
        await mend(self.world)
        await self._world.close_nodes("east", is_closed=is_closed)
        await self._world.close_nodes("west", is_closed=False)
        await self.world.delete("q")
        await asyncio.sleep(40)
        await tolerant(self._create("q", kind, "east", pull))
        if event.startswith("it runs there"):
            # It stays between its proof and its deletion until then.
            self._faults("east").arrange(Loss.LOSE_REQUEST, Which("delete", "jobs", peer=MANAGER), times=NEVER)
            await asyncio.sleep(PROVED_SECONDS)
        await asyncio.sleep(RETRY_AFTER_SECONDS + 1.0 + moment)
        await self._happen(event)
        await asyncio.sleep(seconds)
        if event == "the manager dies":
            self.world.start_manager()
            await asyncio.sleep(seconds)

    async def _run_between(self, *, has_manager: bool) -> None:
        """Once it is proved that nothing ran, somebody lets it run on east: unseen, or while there is no manager.

        In the latter case it is suspended again afterwards, as if nothing had happened.
        """
        world, east = self._world, self._faults("east")
        if has_manager:
            east.mute_watches(MANAGER, plural="jobs")
        else:
            await world.kill_all_managers()
        await world.close_nodes("east", is_closed=False)
        await world.change("q", {"spec": {"suspend": False}}, cluster="east")
        await asyncio.sleep(8)
        if not has_manager:
            await world.change("q", {"spec": {"suspend": True}}, cluster="east")
            await asyncio.sleep(8)
        east.clear()
        world.start_manager()

    async def _happen(self, event: str) -> None:
        world, east = self._world, self._faults("east")
        match event:
            case "the manager dies":
                await world.kill_manager()
            case "its nodes are opened":
                await world.close_nodes("east", is_closed=False)
            case "somebody resumes it there":
                await world.change("q", {"spec": {"suspend": False}}, cluster="east")
                await world.close_nodes("east", is_closed=False)
            case "its user suspends it":
                await world.change("q", {"spec": {"suspend": True}})
            case "its user deletes it":
                await world.delete("q")
            case "its user scales it":
                await world.change("q", {"spec": {"parallelism": 1}})
            case "the worker goes down":
                east.go_down(MANAGER)
            case "watches break":
                east.cut_watches(MANAGER)
            case "pods are not told":
                east.arrange(internal_error(), Which("list", "pods", peer=MANAGER), times=3)
                east.arrange(internal_error(), Which("watch", "pods", peer=MANAGER), times=3)
            case "deletions are not answered":
                east.arrange(Loss.LOSE_ANSWER, Which("delete", "jobs", peer=MANAGER), times=2)
            case "records are not answered":
                which = Which("patch", "jobs", subresource="status", peer=MANAGER)
                self._faults("management").arrange(Loss.LOSE_ANSWER, which, times=2)
            case "the mirror is deleted there":
                await world.delete("q", cluster="east")
            case "it runs there unseen":
                await self._run_between(has_manager=True)
            case "it runs there without a manager":
                await self._run_between(has_manager=False)
            case "pods are deleted there":
                pods = world.workers["east"].api.call("DELETE", "/api/v1/namespaces/default/pods", {})
                await tolerant(pods)
