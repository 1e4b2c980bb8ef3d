"""What runs on that must not: for how long where nothing is broken, and whether managers say so. Pure.

Whether two run beside each other meanwhile is the matter of ``rules_mirrors`` and ``rules_pods``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json
from e2e.chaos.lives import Life
from e2e.chaos.reading import is_going, moves_of, placed_on, recorded_uid
from e2e.chaos.story import MANAGEMENT, STALE_SECONDS, Story
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


def breaches_are_told(story: Story) -> Verdicts:
    """D14: a copy that still runs when a manager ends it, though it was promised that it does not, is reported."""
    if not story.opening.tells_breaches:
        return
    for owner, source in story.sources.items():
        for copy in story.mirrors.get(owner, ()):
            ends = [at for at in _ended_by_managers(copy) if _was_promised(story, source, copy, at)]
            for at in ends:
                text = f"{copy} (uid {copy.uid}) ran on {copy.cluster} against a promise, which no manager has reported"
                is_told = (copy.cluster, copy.uid) in story.breaches_told
                yield None if is_told else Breach("breach-told", at, text)


def _ended_by_managers(copy: Life) -> Iterator[float]:
    """When it had started, had not ended and was deleted by a manager, or suspended."""
    for since, until in copy.runs():
        bodies = [body for at, body in copy.bodies if since <= at < until]
        after = copy.content_at(until)
        is_deleted = copy.went_at == until and copy.is_deleted_by_manager
        is_ended = is_deleted or (copy.went_at != until and copy.kind.is_suspended(after))
        if is_ended and copy.kind.end(after) is None and (bodies[-1].get("status") or {}).get("startTime"):
            yield until


def _was_promised(story: Story, source: Life, copy: Life, at: float) -> bool:
    """Whether its source, which goes on elsewhere, has said for a while and says still that the copy does not run."""
    by = story.known_by(MANAGEMENT, at)
    if source.gone_at is not None and source.gone_at <= by:
        return False
    told = list(source.contents_between(at - STALE_SECONDS, by))
    left = [moves_of(body).left_copy(copy.cluster, copy.uid) for body in told]
    is_over = any(source.kind.end(body) or is_going(body) or placed_on(body) == copy.cluster for body in told)
    return not is_over and all(one is not None and one.promise for one in left)


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
