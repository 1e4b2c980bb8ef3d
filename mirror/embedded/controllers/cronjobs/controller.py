"""The CronJob controller, put together: caches → queue → ``syncing``."""

from __future__ import annotations

import functools

import msgspec

from mirror.embedded import schedules
from mirror.embedded.controllers.client import CRONJOBS, Api, Json
from mirror.embedded.controllers.cronjobs import timing
from mirror.embedded.controllers.cronjobs.jobs import owner_name
from mirror.embedded.controllers.cronjobs.syncing import Syncer
from mirror.embedded.controllers.cronjobs.timing import Timing
from mirror.embedded.controllers.recording import event_recorder, regarding
from mirror.embedded.controllers.working import AT_ONCE, RETRY, Key, identity, informer, watch_all, work_on
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.runtime.clock import Clock
from mirror.runtime.events import WARNING
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store, name_of
from mirror.telemetry.logs import Log

COMPONENT = "cronjob-controller"
_BY_OWNER = "owner"


class CronJobController:
    """All CronJobs, and the Jobs that have one as their controller."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        api = Api(client, "kube-controller-manager")
        self._recorder = event_recorder(api, COMPONENT, clock=clock)
        self._syncer = Syncer(api, self._recorder)
        self._cronjobs = Store()
        self._jobs = Store({_BY_OWNER: _owner_keys})
        self._queue: WorkQueue[Key] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """Work until cancelled."""
        cronjobs = informer(self._client, CRONJOBS, self._cronjobs, self._on_cronjob)
        jobs = informer(
            self._client, JOBS, self._jobs, self._on_job, accept=lambda one: owner_name(one) is not None, keep=_kept
        )
        work = functools.partial(work_on, self._queue, self._sync, log=log)
        await watch_all((cronjobs, jobs), log=log, then=(self._recorder.run, work))

    def _on_job(self, old: Object | None, new: Object | None, change: Change) -> None:
        for job in (old, new):
            name = owner_name(job) if job is not None else None
            if job is None or name is None:
                continue
            owner = self._cronjobs.get(job.metadata.namespace, name)
            if owner is not None and any(ref.uid == owner.metadata.uid for ref in job.metadata.owner_references or ()):
                self._queue.add(name_of(owner))

    def _on_cronjob(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        if found is None:
            return
        if old is not None and new is not None and _times(old) != _times(new):
            self._plan(new)
        else:
            self._queue.add(name_of(found))

    def _plan(self, changed: Object) -> None:
        """It has another schedule: when to look at it next."""
        body = _body(changed)
        try:
            schedule = schedules.parse(timing.text_of(body["spec"]))
        except schedules.BadSchedule:
            message = f"unparseable schedule: {body['spec'].get('schedule', '')}"
            self._recorder.event(regarding(CRONJOBS, body), WARNING, "UnParseableCronJobSchedule", message)
            return
        seconds = timing.seconds_to_next(Timing.of(body), self._clock.now(), schedule)
        if seconds is not None:
            self._queue.add_after(name_of(changed), seconds)

    async def _sync(self, key: Key) -> float | None:
        found = self._cronjobs.get(*key)
        if found is None:
            return None
        names = sorted(self._jobs.names(_BY_OWNER, "/".join(key)))
        jobs = [job for name in names if (job := self._jobs.get(*name)) is not None]
        return await self._syncer.sync(_body(found), jobs, self._clock.now())


def _body(found: Object) -> Json:
    """A CronJob as a dict of its own."""
    body: Json = {"spec": found.spec_dict(), "status": found.status_dict()}
    meta: Json = msgspec.to_builtins(found.metadata)
    return body | {"metadata": meta}


def _times(found: Object) -> tuple[object, object]:
    spec = found.spec_dict()
    return spec.get("schedule"), spec.get("timeZone")


def _owner_keys(job: Object) -> list[str]:
    name = owner_name(job)
    return [] if name is None else [f"{job.metadata.namespace}/{name}"]


def _kept(job: Object) -> Object:
    """What of a Job matters here."""
    return Object(identity(job.metadata), status=job.status)


async def run(client: Client, *, clock: Clock, log: Log) -> None:
    """Run CronJobs until cancelled."""
    await CronJobController(client, clock=clock).run(log)
