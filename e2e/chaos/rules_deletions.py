"""What managers may delete on workers: each deletion must have one of the few reasons that let a copy go. Pure.

The reasons are read off what the source says at the time of the request, in ``_lets_go``. Strangers are the matter of
``rules_mirrors.nothing_foreign``.
"""

from __future__ import annotations

from datetime import datetime

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Json, Request
from e2e.chaos.lives import Life
from e2e.chaos.reading import (
    annotation,
    has_proved_unstarted,
    has_stopped,
    is_completed_for,
    is_going,
    is_leaving,
    moves_of,
    placed_on,
    recorded_uid,
)
from e2e.chaos.story import LATE_SECONDS, MANAGEMENT, ORDER_SECONDS, Story
from mirror.model import names


def deleted_rightly(story: Story) -> Verdicts:
    """D8, D10, D14: managers delete a copy only where its source is gone, over with it, or has given it up."""
    for deletion in story.deletions:
        asked, copies = deletion.asked, [one for one in deletion.met if one.source is not None]
        if not copies:
            continue
        if any(_may_go(story, copy, asked) for copy in copies):
            yield None
        else:
            uids = " or ".join(copy.uid for copy in copies)
            text = f"a manager deleted {copies[0]} (uid {uids}) on {asked.cluster}, which nothing had given up"
            yield Breach("deleted-rightly", asked.at, text)


def _may_go(story: Story, copy: Life, asked: Request) -> bool:
    """Whether its source, as it may have been when the request came, lets this copy go."""
    source = story.sources.get(copy.source) if copy.source is not None else None
    by = story.known_by(MANAGEMENT, asked.received, within=ORDER_SECONDS)
    if source is None or (source.gone_at is not None and source.gone_at <= by):
        return True
    return any(
        _lets_go(story, copy, body, asked.at) for body in source.contents_between(asked.received - LATE_SECONDS, by)
    )


def _lets_go(story: Story, copy: Life, source: Json, at: float) -> bool:
    """Whether a source that says this has no use for this copy any more.

    It is being deleted, or is somebody else's by now (D1, D10); it is recorded elsewhere, or has left this copy behind,
    which has not won by being Complete (D14), unless settings keep such copies where nobody needs their name; it has
    ended, and this copy is not the one that ran, or its retention is over (D8); another copy is recorded, and its user
    wants it to start over (D11); it has stopped on a worker that is drained (D15); nothing of it ever ran there (D31).
    """
    kind, placed, recorded = copy.kind, placed_on(source), recorded_uid(source)
    if is_going(source) or kind.managed_by(source) != story.opening.managed_by:
        return True
    moves, is_over = moves_of(source), kind.end(source) is not None
    is_elsewhere = placed not in ("", copy.cluster)
    if moves.has_left(copy.cluster, copy.uid):
        if story.opening.suspends_losers and is_elsewhere:
            return False
        return is_over or not is_completed_for(source, copy.last_untouched, kind)
    if is_elsewhere and recorded != copy.uid:
        return True
    is_another = recorded not in ("", copy.uid)
    if is_over:
        return is_another or _is_kept_long_enough(story, copy, source, at)
    if is_another:
        return annotation(source, names.ON_MIRROR_LOSS) == "Recreate"
    may_leave = is_leaving(source, copy.uid) or has_proved_unstarted(source, copy.uid)
    return not is_elsewhere and may_leave and has_stopped(copy.last_untouched, kind)


def _is_kept_long_enough(story: Story, copy: Life, source: Json, at: float) -> bool:
    """Whether a copy has been kept as long as settings say, from the end of its source on."""
    retention = story.opening.retention_seconds
    ended = (copy.kind.end(source) or {}).get("lastTransitionTime")
    return retention is not None and ended is not None and at >= datetime.fromisoformat(ended).timestamp() + retention
