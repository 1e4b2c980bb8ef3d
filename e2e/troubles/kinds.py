"""What concerns other kinds than Jobs alone. The stage's management cluster serves JobSets, and no worker does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from e2e.jobs import placed_on
from e2e.jobsets import JOBSETS, define, job_set
from e2e.troubles.stage import EU, JOB, Play, Sight, Story, over, progresses, says
from mirror.kube.resources import Resource
from mirror.model import names


async def definition_missing(play: Play) -> AsyncGenerator[Sight, None]:
    """No Job controller of the kind runs there either: what is served is placed."""
    body = job_set(JOB, names.DEFAULT_MANAGED_BY)
    body["metadata"]["annotations"] |= {names.PREFIX + key: value for key, value in EU.items()}
    await play.scene.create(body)
    yield Sight("The worker does not serve the kind", says("KindNotServed", "does not serve the kind"))
    await define(play.on())
    yield over(lambda found: placed_on(found) == "east" and progresses(found))


STORIES = (definition_missing,)
RESOURCES: Mapping[Story, Resource] = {definition_missing: JOBSETS}
"""Of what kind the object is that a story is about."""
