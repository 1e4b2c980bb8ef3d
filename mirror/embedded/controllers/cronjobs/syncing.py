"""One look at a CronJob: history, what runs, and whether it is due. In the steps and words of upstream's controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mirror.batch import times
from mirror.batch.quoting import quoted
from mirror.embedded import schedules
from mirror.embedded.controllers.client import CRONJOBS, Api, Json
from mirror.embedded.controllers.cronjobs import timing
from mirror.embedded.controllers.cronjobs.jobs import body_of_run, name_of_run, reference_to, surplus, verdict_of
from mirror.embedded.controllers.cronjobs.timing import Missed, Timing
from mirror.embedded.controllers.kubelet.podspec import moment
from mirror.embedded.controllers.recording import regarding
from mirror.embedded.schedules import Schedule
from mirror.kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.events import NORMAL, WARNING

_TERMINATING = "NamespaceTerminating"
_FORBIDDEN = "Not starting job because prior execution is running and concurrency policy is Forbid"
_UNSUPPORTED = (
    "CRON_TZ or TZ used in schedule {} is not officially supported, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


@dataclass(slots=True)
class Look:
    """A CronJob while it is looked at; its status is changed here and written once at the end."""

    body: Json
    is_changed: bool = False

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"]["namespace"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def active(self) -> list[Json]:
        found: list[Json] = self.body["status"].get("active") or []
        return found

    def has_active(self, uid: str) -> bool:
        return any(one.get("uid") == uid for one in self.active)

    def drop(self, uid: str) -> None:
        """It does not run any more."""
        self.body["status"]["active"] = [one for one in self.active if one.get("uid") != uid]


class Syncer:
    """Looks at CronJobs; all raise ``KubeError``: to be tried again."""

    def __init__(self, api: Api, recorder: EventRecorder) -> None:
        self._api = api
        self._recorder = recorder

    async def sync(self, body: Json, jobs: Sequence[Object], now: datetime) -> float | None:
        """Do what is due; gives seconds after which to look again."""
        look = Look(body)
        known = [(job, job.status_dict()) for job in jobs]
        await self._clean_up(look, known)
        failure: KubeError | None = None
        again: float | None = None
        try:
            again = await self._follow(look, known, now)
        except KubeError as error:
            failure = error
        if look.is_changed:
            await self._write(look)
        if failure is not None:
            raise failure
        return again

    def tell_unsupported(self, body: Json) -> None:
        """Warn of a time zone inside the schedule."""
        text = str(body["spec"].get("schedule") or "")
        if "TZ" in text:
            self._tell(body, WARNING, "UnsupportedSchedule", _UNSUPPORTED.format(quoted(text)))

    # -- what is there -------------------------------------------------------------------------------------------------

    async def _clean_up(self, look: Look, known: Sequence[tuple[Object, Mapping[str, Any]]]) -> None:
        for job, _ in surplus(look.body, known):
            await self._delete(look, job.metadata.name, job.metadata.uid)

    async def _follow(
        self, look: Look, known: Sequence[tuple[Object, Mapping[str, Any]]], now: datetime
    ) -> float | None:
        for job, status in known:
            await self._account(look, job, status)
        await self._find_missing(look, {job.metadata.uid for job, _ in known})
        if look.body["metadata"].get("deletionTimestamp") is not None:
            return None
        schedule = self._schedule(look)
        return None if schedule is None else await self._start_if_due(look, schedule, now)

    async def _account(self, look: Look, job: Object, status: Mapping[str, Any]) -> None:
        """Note what has become of a Job."""
        uid, name, verdict = job.metadata.uid, job.metadata.name, verdict_of(status)
        is_active = look.has_active(uid)
        if not verdict:
            if not is_active:
                await self._wonder(look, uid, name)
            return
        if is_active:
            look.drop(uid)
            self._tell(look.body, NORMAL, "SawCompletedJob", f"Saw completed job: {name}, condition: {verdict}")
            look.is_changed = True
        completed = status.get("completionTime")
        if verdict != "Complete" or completed is None:
            return
        before, after = moment(look.body["status"].get("lastSuccessfulTime")), moment(completed)
        if before is None or (after is not None and after > before):
            look.body["status"]["lastSuccessfulTime"] = completed
            look.is_changed = True

    async def _wonder(self, look: Look, uid: str, name: str) -> None:
        """A Job of ours that our status does not know: either we are behind, or somebody made it."""
        live = await self._api.get(CRONJOBS, look.name, namespace=look.namespace)
        if any(one.get("uid") == uid for one in (live.get("status") or {}).get("active") or ()):
            look.body = live | {"status": live.get("status") or {}}
            return
        message = f"Saw a job that the controller did not create or forgot: {name}"
        self._tell(look.body, WARNING, "UnexpectedJob", message)

    async def _find_missing(self, look: Look, uids: set[str]) -> None:
        for one in look.active:
            if one.get("uid") in uids:
                continue
            try:
                await self._api.get(JOBS, one["name"], namespace=one.get("namespace") or look.namespace)
            except NotFound:
                self._tell(look.body, NORMAL, "MissingJob", f"Active job went missing: {one['name']}")
                look.drop(one.get("uid", ""))
                look.is_changed = True

    # -- whether it is due ---------------------------------------------------------------------------------------------

    def _schedule(self, look: Look) -> Schedule | None:
        """The schedule; None if there is nothing to do by it."""
        spec = look.body["spec"]
        zone = spec.get("timeZone")
        if zone is not None:
            try:
                schedules.zone(zone)
            except schedules.BadZone as error:
                message = f"invalid timeZone: {quoted(zone)}: {error}"
                self._tell(look.body, WARNING, "UnknownTimeZone", message)
                return None
        if spec.get("suspend"):
            return None
        self.tell_unsupported(look.body)
        try:
            return schedules.parse(timing.text_of(spec))
        except schedules.BadSchedule as error:
            text = quoted(str(spec.get("schedule") or ""))
            self._tell(look.body, WARNING, "UnparseableSchedule", f"unparseable schedule: {text} : {error}")
            return None

    async def _start_if_due(self, look: Look, schedule: Schedule, now: datetime) -> float | None:
        body = look.body
        spec, when = body["spec"], Timing.of(body)
        try:
            found = timing.recent(when, now, schedule, heeds_deadline=True)
        except timing.Unreasonable as error:
            message = f"invalid schedule: {spec.get('schedule', '')} : {error}"
            self._tell(body, WARNING, "InvalidSchedule", message)
            return None
        due = found.due
        if due is None:
            return timing.seconds_to_next(when, now, schedule)
        if found.missed is Missed.MANY:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._tell(body, WARNING, "TooManyMissedTimes", message)
        if timing.is_too_late(due, when.deadline_seconds, now):
            told = due.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._tell(body, WARNING, "MissSchedule", f"Missed scheduled time to start a job: {told}")
        elif any(one.get("name") == name_of_run(body, due) for one in look.active) or when.last == due:
            pass  # this time has been seen to
        elif spec.get("concurrencyPolicy") == "Forbid" and look.active:
            self._tell(body, NORMAL, "JobAlreadyActive", _FORBIDDEN)
        else:
            if spec.get("concurrencyPolicy") == "Replace":
                await self._replace(look)
            await self._start(look, due)
            when = Timing.of(look.body)
        return timing.seconds_to_next(when, now, schedule)

    async def _replace(self, look: Look) -> None:
        """End what still runs."""
        for one in look.active:
            namespace = one.get("namespace") or look.namespace
            try:
                job = await self._api.get(JOBS, one["name"], namespace=namespace)
            except KubeError as error:
                self._tell(look.body, WARNING, "FailedGet", f"Get job: {_described(error)}")
                raise
            await self._delete(look, job["metadata"]["name"], job["metadata"]["uid"], is_needed=True)

    async def _start(self, look: Look, due: datetime) -> None:
        """Create the Job of a time. One that is there is taken up if it is ours, and else this time is over.

        Upstream means to do the same, but asks for that Job in no namespace, and so fails again and again until the
        next time has come.
        """
        wanted = body_of_run(look.body, due)
        name = wanted["metadata"]["name"]
        try:
            job = await self._api.create(JOBS, wanted, namespace=look.namespace)
        except AlreadyExists:
            job = await self._api.get(JOBS, name, namespace=look.namespace)
            if not _is_controlled(job, look.body) or look.has_active(job["metadata"]["uid"]):
                return
        except KubeError as error:
            if not _is_terminating(error):
                self._tell(look.body, WARNING, "FailedCreate", f"Error creating job: {_described(error)}")
            raise
        else:
            self._tell(look.body, NORMAL, "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        status = look.body["status"]
        status["active"] = [*look.active, reference_to(job)]
        status["lastScheduleTime"] = times.of(due)
        look.is_changed = True

    # -- what is written -----------------------------------------------------------------------------------------------

    async def _delete(self, look: Look, name: str, uid: str, *, is_needed: bool = False) -> None:
        try:
            await self._api.delete(JOBS, name, namespace=look.namespace, propagation="Background")
        except KubeError as error:
            self._tell(look.body, WARNING, "FailedDelete", f"Deleted job: {_described(error)}")
            if is_needed:
                raise
            return
        look.drop(uid)
        look.is_changed = True
        self._tell(look.body, NORMAL, "SuccessfulDelete", f"Deleted job {name}")

    async def _write(self, look: Look) -> None:
        status = look.body["status"]
        patch = {
            "metadata": {"resourceVersion": look.body["metadata"]["resourceVersion"]},
            "status": {
                "active": status.get("active") or None,
                "lastScheduleTime": status.get("lastScheduleTime"),
                "lastSuccessfulTime": status.get("lastSuccessfulTime"),
            },
        }
        await self._api.merge(CRONJOBS, look.name, patch, namespace=look.namespace, subresource="status")

    def _tell(self, body: Json, type_name: str, reason: str, message: str) -> None:
        self._recorder.event(regarding(CRONJOBS, body), type_name, reason, message)


def _is_controlled(job: Json, cronjob: Json) -> bool:
    owners = job["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("uid") == cronjob["metadata"]["uid"] for one in owners)


def _is_terminating(error: KubeError) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == _TERMINATING for cause in error.causes)


def _described(error: KubeError) -> str:
    """An error as Go's client would print it."""
    return error.message if isinstance(error, ApiError) else str(error)
