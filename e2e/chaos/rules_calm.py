"""What must not run on for long where nothing is broken: managers, and controllers, have the time to end it. Pure.

Whether two run beside each other meanwhile is the matter of ``rules_mirrors`` and ``rules_pods``.
"""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json
from e2e.chaos.lives import Life
from e2e.chaos.reading import moves_of, placed_on, recorded_uid
from e2e.chaos.story import Story
from mirror.model import names

CALM_SECONDS = 30.0
"""For so long in all it may run on while its worker, the way there, managers and their own cluster are whole."""
Asked = Callable[[Life, Life, Json], bool]
"""Whether a source that says this has no use any more for what runs of a copy of it."""


def nothing_runs_on(story: Story) -> Verdicts:
    """D3, D10, D14: what was left behind is ended, a suspended source's copy stops, and pods of what is deleted."""
    for owner, source in story.sources.items():
        for copy in story.mirrors.get(owner, ()):
            yield from _of_copy(story, source, copy, _is_left, "after it was left there")
            yield from _of_copy(story, source, copy, _is_suspended, "after its source was suspended")
    for copy in (copy for mirrors in story.mirrors.values() for copy in mirrors):
        if copy.gone_at is not None and copy.is_deleted_by_manager:
            yield from _of_pods(story, copy, copy.gone_at)


def _of_copy(story: Story, source: Life, copy: Life, is_over: Asked, why: str) -> Verdicts:
    over = list(source.runs_while(lambda body: is_over(source, copy, body)))
    for since, until in copy.runs():
        for began, ended in over:
            if max(since, began) < min(until, ended):
                text = f"{copy} (uid {copy.uid}) runs on"
                yield _judged(story, copy.cluster, max(since, began), min(until, ended), f"{text} {why}")


def _of_pods(story: Story, copy: Life, gone_at: float) -> Verdicts:
    for pod in story.pods[copy.cluster, copy.uid]:
        for since, until in pod.runs():
            if until > gone_at:
                text = f"pod {pod.key} of {copy} (uid {copy.uid}) runs on after that was deleted"
                yield _judged(story, pod.cluster, max(since, gone_at), until, text)


def _judged(story: Story, worker: str, since: float, until: float, text: str) -> Breach | None:
    until = min(until, story.phases.get("settled", story.ends_at))
    if "true" in story.said_by("secrets", worker, names.GONE, since, until):
        return None  # nobody is to care for what is there
    calm = story.calm_seconds(worker, since, until)
    return Breach("runs-on", since, f"{text}, for {calm:.0f} s of calm") if calm > CALM_SECONDS else None


def _is_left(source: Life, copy: Life, body: Json) -> bool:
    is_recorded = (placed_on(body), recorded_uid(body)) == (copy.cluster, copy.uid)
    return not is_recorded and moves_of(body).may_have_left(copy.cluster, copy.uid)


def _is_suspended(source: Life, copy: Life, body: Json) -> bool:
    is_recorded = placed_on(body) == copy.cluster and recorded_uid(body) in ("", copy.uid)
    return is_recorded and source.kind.is_suspended(body) and source.kind.end(body) is None
