"""CronJobs: when they create Jobs, what they say, and what they clean up, beside an API server in memory."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from embedded_world import JOBS, Json, World, in_virtual_time, world

from mirror.embedded import schedules
from mirror.embedded.apiserver.apimachinery import errors
from mirror.embedded.controllers.cronjobs import timing
from mirror.embedded.controllers.cronjobs.timing import Missed, Timing

CRONJOBS = "/apis/batch/v1/namespaces/default/cronjobs"
MINUTE = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) // 60
"""The minute in which tests begin; its number is in the names of Jobs."""


def cronjob(schedule: str = "* * * * *", **spec: Any) -> Json:
    container = {"name": "c", "image": "i"}
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    template["metadata"] = {"labels": {"app": "x"}, "annotations": {"note": "y"}}
    return {"metadata": {"name": "c"}, "spec": {"schedule": schedule, "jobTemplate": template, **spec}}


async def jobs(here: World) -> list[int]:
    """The minutes of the Jobs that are there, counted from the beginning of the test."""
    return sorted(int(name.removeprefix("c-")) - MINUTE for name in await here.names(JOBS))


async def finish(here: World, minute: int, verdict: str = "Complete") -> None:
    """End a Job as a Job controller would."""
    path = f"{JOBS}/c-{MINUTE + minute}/status"
    now = here.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    start: Json = {"startTime": now, "conditions": None}
    await here.api.merge(path, {"status": start})
    interim = "SuccessCriteriaMet" if verdict == "Complete" else "FailureTarget"
    conditions = [{"type": one, "status": "True", "lastTransitionTime": now} for one in (interim, verdict)]
    done: Json = {"conditions": conditions} | ({"completionTime": now} if verdict == "Complete" else {})
    await here.api.merge(path, {"status": done})


async def status(here: World) -> Json:
    found: Json = (await here.api.get(f"{CRONJOBS}/c"))["status"]
    return found


async def reasons(here: World) -> list[str]:
    return [reason for reason, _ in await here.told("c")]


@in_virtual_time
async def test_a_job_is_created_each_minute() -> None:
    """Named by its minute, with labels and annotations of the template, owned, and listed as active."""
    async with world("cronjob") as here:
        made = await here.api.create(CRONJOBS, cronjob())
        await asyncio.sleep(60)
        assert await jobs(here) == []
        await asyncio.sleep(1)
        (job,) = await here.api.list(JOBS)
        meta = job["metadata"]
        assert meta["name"] == f"c-{MINUTE + 1}"
        assert meta["labels"]["app"] == "x"
        assert meta["annotations"] == {
            "note": "y",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-01T12:01:00Z",
        }
        assert meta["ownerReferences"] == [
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "name": "c",
                "uid": made["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        now = await status(here)
        assert now["lastScheduleTime"] == "2026-03-01T12:01:00Z"
        assert [one["name"] for one in now["active"]] == [meta["name"]]
        assert now["active"][0]["apiVersion"] == "batch/v1"
        assert await here.told("c") == [("SuccessfulCreate", f"Created job c-{MINUTE + 1}")]
        await asyncio.sleep(120)
        assert await jobs(here) == [1, 2, 3]


@in_virtual_time
async def test_the_end_of_a_job_is_noted() -> None:
    """It is no longer active; when one last went well is known."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob("*/5 * * * *"))
        await asyncio.sleep(301)
        await finish(here, 5)
        await asyncio.sleep(1)
        now = await status(here)
        assert "active" not in now
        assert now["lastSuccessfulTime"] == "2026-03-01T12:05:01Z"
        assert ("SawCompletedJob", f"Saw completed job: c-{MINUTE + 5}, condition: Complete") in await here.told("c")
        await asyncio.sleep(300)
        await finish(here, 10, "Failed")
        await asyncio.sleep(1)
        assert (await status(here))["lastSuccessfulTime"] == "2026-03-01T12:05:01Z"
        assert ("SawCompletedJob", f"Saw completed job: c-{MINUTE + 10}, condition: Failed") in await here.told("c")


@in_virtual_time
async def test_only_so_many_jobs_that_ended_are_kept() -> None:
    """The oldest go, of each kind of end by itself."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1))
        for minute in range(1, 9):
            await asyncio.sleep(60 if minute > 1 else 61)
            await finish(here, minute, "Complete" if minute % 2 else "Failed")
        await asyncio.sleep(1)
        assert await jobs(here) == [5, 7, 8]
        assert ("SuccessfulDelete", f"Deleted job c-{MINUTE + 1}") in await here.told("c")


@in_virtual_time
async def test_forbid_waits_for_the_one_that_runs() -> None:
    """It says so; when that has ended, the start that was missed is made up for at the next look."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob(concurrencyPolicy="Forbid"))
        await asyncio.sleep(190)
        assert await jobs(here) == [1]
        assert "JobAlreadyActive" in await reasons(here)
        await finish(here, 1)
        await asyncio.sleep(1)
        assert await jobs(here) == [1, 3]


@in_virtual_time
async def test_replace_ends_the_one_that_runs() -> None:
    """Only the newest is left."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob(concurrencyPolicy="Replace"))
        await asyncio.sleep(121)
        assert await jobs(here) == [2]
        assert await reasons(here) == ["SuccessfulCreate", "SuccessfulDelete", "SuccessfulCreate"]
        assert len((await status(here))["active"]) == 1


@in_virtual_time
async def test_a_suspended_cronjob_rests_and_makes_up_for_one_start() -> None:
    """What was missed meanwhile is one Job, not many, unless it is too late for it."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob(suspend=True))
        await asyncio.sleep(600)
        assert await jobs(here) == []
        await here.api.merge(f"{CRONJOBS}/c", {"spec": {"suspend": False}})
        await asyncio.sleep(1)
        assert await jobs(here) == [10]


@in_virtual_time
async def test_what_was_missed_by_more_than_the_deadline_is_not_made_up_for() -> None:
    """Nor is it said again and again: only times within the deadline count."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob("0 * * * *", suspend=True, startingDeadlineSeconds=100))
        await asyncio.sleep(3600 + 150)
        await here.api.merge(f"{CRONJOBS}/c", {"spec": {"suspend": False}})
        await asyncio.sleep(10)
        assert await jobs(here) == []
        await asyncio.sleep(3600)
        assert await jobs(here) == [120]


@in_virtual_time
async def test_more_than_a_hundred_missed_starts_are_reported() -> None:
    """The last one is made up for all the same."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob(suspend=True))
        await asyncio.sleep(150 * 60 + 30)
        await here.api.merge(f"{CRONJOBS}/c", {"spec": {"suspend": False}})
        await asyncio.sleep(1)
        assert await jobs(here) == [150]
        text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        assert ("TooManyMissedTimes", text) in await here.told("c")


@in_virtual_time
async def test_a_schedule_has_a_time_zone() -> None:
    """12:00 UTC is 21:00 in Tokyo; the annotation says it in that zone's time."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob("30 21 * * *", timeZone="Asia/Tokyo"))
        await asyncio.sleep(1801)
        (job,) = await here.api.list(JOBS)
        at = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        assert at == "2026-03-01T21:30:00+09:00"


@in_virtual_time
async def test_another_schedule_counts_from_the_last_start() -> None:
    """It is not started at once."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob("0 0 1 1 *"))
        await asyncio.sleep(10)
        await here.api.merge(f"{CRONJOBS}/c", {"spec": {"schedule": "*/2 * * * *"}})
        await asyncio.sleep(60)
        assert await jobs(here) == []
        await asyncio.sleep(60)
        assert await jobs(here) == [2]


@in_virtual_time
async def test_a_schedule_that_never_comes_is_reported() -> None:
    """The 31st of February reads well."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob("59 23 31 2 *"))
        await asyncio.sleep(100)
        text = "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second"
        assert await here.told("c") == [("InvalidSchedule", text)]


@in_virtual_time
async def test_a_job_that_vanished_is_no_longer_active() -> None:
    """It went missing."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob("0 * * * *"))
        await asyncio.sleep(3601)
        await here.api.delete(f"{JOBS}/c-{MINUTE + 60}")
        await asyncio.sleep(1)
        assert "active" not in await status(here)
        assert ("MissingJob", f"Active job went missing: c-{MINUTE + 60}") in await here.told("c")


@in_virtual_time
async def test_a_job_that_somebody_else_made_in_our_name_is_wondered_at() -> None:
    """It is not taken for ours."""
    async with world("cronjob") as here:
        made = await here.api.create(CRONJOBS, cronjob("0 0 1 1 *"))
        owner = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "c",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        spec = cronjob()["spec"]["jobTemplate"]["spec"]
        await here.api.create(JOBS, {"metadata": {"name": "j", "ownerReferences": [owner]}, "spec": spec})
        await asyncio.sleep(1)
        text = "Saw a job that the controller did not create or forgot: j"
        assert await here.told("c") == [("UnexpectedJob", text)]


@in_virtual_time
async def test_a_job_of_this_minute_that_is_there_already_is_taken_up() -> None:
    """A controller that died between the Job and the status creates no second one."""
    async with world("cronjob") as here:
        made = await here.api.create(CRONJOBS, cronjob(suspend=True))
        owner = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": "c",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        spec = cronjob()["spec"]["jobTemplate"]["spec"]
        await asyncio.sleep(61)
        body = {"metadata": {"name": f"c-{MINUTE + 1}", "ownerReferences": [owner]}, "spec": spec}
        await here.api.create(JOBS, body)
        await here.api.merge(f"{CRONJOBS}/c", {"spec": {"suspend": False}})
        await asyncio.sleep(1)
        now = await status(here)
        assert (await jobs(here), len(now["active"])) == ([1], 1)
        assert now["lastScheduleTime"] == "2026-03-01T12:01:00Z"


@in_virtual_time
async def test_a_name_that_is_taken_by_a_stranger_is_let_be() -> None:
    """Somebody else looks after it; the next time is ours again."""
    async with world("cronjob") as here:
        spec = cronjob()["spec"]["jobTemplate"]["spec"]
        await here.api.create(JOBS, {"metadata": {"name": f"c-{MINUTE + 1}"}, "spec": spec})
        await here.api.create(CRONJOBS, cronjob())
        await asyncio.sleep(61)
        assert (await status(here)).get("active") is None
        await asyncio.sleep(60)
        assert [one["name"] for one in (await status(here))["active"]] == [f"c-{MINUTE + 2}"]


@in_virtual_time
async def test_a_refused_job_is_reported_and_tried_again() -> None:
    """In the server's words."""
    async with world("cronjob") as here:
        body = cronjob("1 12 * * *")
        await here.api.create(CRONJOBS, body)

        async def refuse(request: Any) -> None:
            if request.method == "POST" and request.path.endswith("/jobs"):
                raise errors.bad_request("no more of these")

        before, here.faults.before = here.faults.before, refuse
        await asyncio.sleep(70)
        assert ("FailedCreate", "Error creating job: no more of these") in await here.told("c")
        here.faults.before = before
        await asyncio.sleep(70)
        assert await jobs(here) == [1]


@in_virtual_time
async def test_a_controller_that_was_away_makes_up_for_the_last_start() -> None:
    """As after a suspension."""
    async with world("cronjob") as here:
        await here.api.create(CRONJOBS, cronjob())
        await asyncio.sleep(61)
        here.tasks["cronjob"].cancel()
        await asyncio.sleep(300)
        assert await jobs(here) == [1]
        here.start("cronjob")
        await asyncio.sleep(5)
        assert await jobs(here) == [1, 6]


# -- timing ------------------------------------------------------------------------------------------------------------

TEN = datetime(2016, 5, 19, 10, 0, tzinfo=UTC)
HOURLY = schedules.parse("0 * * * *")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2016-05-{text}+00:00")


@pytest.mark.parametrize(
    ("created", "last", "now", "deadline", "schedule", "due", "missed"),
    [
        pytest.param("19T09:30:00", None, "19T09:45:00", None, "0 * * * *", None, Missed.NONE, id="not yet"),
        pytest.param("19T09:30:00", None, "19T10:00:00", None, "0 * * * *", "19T10:00:00", Missed.NONE, id="just now"),
        pytest.param(
            "19T09:00:00", "19T10:00:00", "19T10:30:00", None, "0 * * * *", None, Missed.NONE, id="done already"
        ),
        pytest.param(
            "19T09:00:00", "19T09:00:00", "19T12:30:00", None, "0 * * * *", "19T12:00:00", Missed.FEW, id="some missed"
        ),
        pytest.param(
            "01T09:00:00", None, "19T12:30:00", None, "0 * * * *", "19T12:00:00", Missed.MANY, id="many missed"
        ),
        pytest.param(
            "01T09:00:00", None, "19T12:30:00", 3600, "0 * * * *", "19T12:00:00", Missed.NONE, id="a deadline cuts them"
        ),
        pytest.param("01T09:00:00", None, "19T12:30:00", 60, "0 * * * *", None, Missed.NONE, id="too long ago"),
        pytest.param(
            "19T09:00:00", None, "19T09:10:00", None, "@every 3m", "19T09:09:00", Missed.FEW, id="from the creation on"
        ),
        pytest.param(
            "13T06:00:00", None, "16T09:00:00", None, "30 6-16/4 * * 1-5", "16T06:30:00", Missed.FEW, id="irregular"
        ),
    ],
)
def test_the_last_start_that_is_due(
    created: str, last: str | None, now: str, deadline: int | None, schedule: str, due: str | None, missed: Missed
) -> None:
    """As upstream reckons it."""
    when = Timing(at(created), at(last) if last else None, deadline)
    found = timing.recent(when, at(now), schedules.parse(schedule), heeds_deadline=True)
    assert (found.due, found.missed) == (at(due) if due else None, missed)


def test_the_next_look_is_a_little_after_the_minute() -> None:
    """A tenth of a second, as clocks differ."""
    when = Timing(TEN - timedelta(minutes=20), None, None)
    assert timing.seconds_to_next(when, TEN - timedelta(minutes=10), HOURLY) == 600.1
    assert timing.seconds_to_next(Timing(TEN, TEN, None), TEN, HOURLY) == 3600.1


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        pytest.param({"schedule": "* * * * *"}, "* * * * *", id="none"),
        pytest.param({"schedule": "* * * * *", "timeZone": "Asia/Tokyo"}, "TZ=Asia/Tokyo * * * * *", id="one"),
        pytest.param({"schedule": "TZ=UTC * * * * *", "timeZone": "Asia/Tokyo"}, "TZ=UTC * * * * *", id="two"),
        pytest.param({"schedule": "* * * * *", "timeZone": "No/Where"}, "* * * * *", id="no such zone"),
    ],
)
def test_the_time_zone_stands_before_the_schedule(spec: Json, text: str) -> None:
    """One that the schedule has itself goes before that of the field."""
    assert timing.text_of(spec) == text


def test_a_deadline_longer_than_time_itself() -> None:
    """A number that the API accepts is none that can be subtracted."""
    found = timing.recent(Timing(TEN, None, 2**62), TEN + timedelta(hours=1), HOURLY, heeds_deadline=True)
    assert found.due == TEN + timedelta(hours=1)
    assert not timing.is_too_late(TEN, 2**62, TEN + timedelta(days=1000))
