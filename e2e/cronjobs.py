"""CronJobs that run when a test wants it: they catch up with a time of day that was missed, and with another one.

Their schedules are of one time a day, so that no run comes by itself.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from e2e.controlplane.client import Client, Json


def daily(when: datetime) -> str:
    """The schedule of this minute of each day."""
    return f"{when.minute} {when.hour} * * *"


def cronjob(name: str, runs: Json, when: datetime, **fields: object) -> Json:
    """A CronJob of this minute of each day, whose Jobs are like this one.

    Args:
        name: its name.
        runs: a Job, whose annotations and spec are taken.
        when: in UTC.
        fields: of its spec, in Kubernetes' spelling.
    """
    template = {"metadata": {"annotations": runs["metadata"]["annotations"]}, "spec": runs["spec"]}
    spec = {"schedule": daily(when), "timeZone": "Etc/UTC", "jobTemplate": template, **fields}
    return {"metadata": {"name": name}, "spec": spec}


async def create_with_missed_run(client: Client, collection: str, body: Json, missed: datetime) -> None:
    """Create a CronJob that ran last a day before this time, which is over: it runs at once."""
    earlier = {"status": {"lastScheduleTime": f"{missed - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"}}
    await client.create(collection, body)
    await client.merge(f"{collection}/{body['metadata']['name']}/status", earlier)


async def run_again(client: Client, collection: str, name: str, missed: datetime) -> None:
    """Let a CronJob catch up with another time, which is over."""
    await client.merge(f"{collection}/{name}", {"spec": {"schedule": daily(missed)}})
    # After a change of the schedule the controller waits for its next time; after any other it looks at once.
    await client.merge(f"{collection}/{name}", {"metadata": {"labels": {"changed": "yes"}}})


def owner(found: Json) -> str:
    """The CronJob that controls a Job, or nothing."""
    owners = found["metadata"].get("ownerReferences", ())
    return str(next((one["name"] for one in owners if one.get("controller") and one["kind"] == "CronJob"), ""))
