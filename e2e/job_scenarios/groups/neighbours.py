"""Jobs beside their neighbours: TTL after finished, CronJobs (J1, J3). The neighbours are upstream's on both sides."""

from __future__ import annotations

from e2e.job_scenarios.bodies import job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, has


@scenario("chain 13; J1; e2e: TTLAfterFinished")
async def a_time_to_live(stage: Stage) -> None:
    """Job and pod are gone some seconds after the end."""
    await stage.create(job(ttlSecondsAfterFinished=4))
    await stage.succeed(*await stage.pods(1))
    await stage.until_gone()


@scenario("J1; TestTimeLeft: failed now, 0s TTL", is_for_kills=False)
async def no_time_to_live(stage: Stage) -> None:
    """A failed Job with ttl 0 goes at once."""
    await stage.create(job(ttlSecondsAfterFinished=0, backoffLimit=0))
    await stage.fail(*await stage.pods(1))
    await stage.until_gone()


@scenario("J1: ttl is set on a finished Job (U1)")
async def a_time_to_live_is_set_later(stage: Stage) -> None:
    """It counts from the end."""
    await stage.create(job())
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))
    await stage.change(ttlSecondsAfterFinished=0)
    await stage.until_gone()


@scenario("J3; issue 4, part 4; e2e: CronJob", is_for_kills=False)
async def a_cron_job(stage: Stage) -> None:
    """Its Job is run and its success is noted."""
    path = f"/apis/batch/v1/namespaces/{stage.namespace}/cronjobs"
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job()["spec"]}}
    async with stage.stimulus("create a CronJob and wait for its Job"):
        await stage.client.create(path, {"metadata": {"name": "cron"}, "spec": spec})
        await stage.until_place(lambda place: place.jobs)
        await stage.client.merge(f"{path}/cron", {"spec": {"suspend": True}})
    (name,) = stage.place.jobs
    await stage.succeed(*await stage.pods(1, name))
    await stage.until(has("Complete"), name)
    cron = await stage.client.wait_until(
        f"{path}/cron", lambda found: found and "lastSuccessfulTime" in found.get("status", {})
    )
    assert not cron["status"].get("active")
