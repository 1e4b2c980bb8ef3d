"""What must hold before a source is moved from a worker that is lost: the guards of D14. Pure.

Each move is judged by what was broken, what policies were, and who led, as the history has it. Not here: what becomes
of its copies (``rules_mirrors``), drains and progress (``rules_operators``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.history import Version
from e2e.chaos.kinds import condition
from e2e.chaos.lives import Life
from e2e.chaos.own_machine import machine_of
from e2e.chaos.reading import Moving, is_ended_by_lease, lease_end, moves_in, moves_of, placed_on
from e2e.chaos.story import LATE_SECONDS, MANAGEMENT, ORDER_SECONDS, Story

_BACK_SECONDS = 5.0
"""After a worker is whole again, until a manager has seen that; one that is broken again until then is away on."""
_KEEP_AWAY = (
    *("refuse", "stall", "stall requests", "stall answers", "lose answers", "credentials"),
    *("kill kube-apiserver", "freeze kube-apiserver", "kill etcd", "freeze etcd", "full etcd", "etcd loses data"),
)
"""Faults that keep managers from a worker, or may; of others they see little, and what is slow or cut is there."""
_AFTER_TAKING_OVER_SECONDS = 60.0
_MARGIN_SECONDS = 120.0
"""Of a lease that nobody sees end."""
_LASTS_SECONDS = 420.0
"""A lease and its margin: whoever led since it was renewed may have counted it."""
_POLICIES = {"lost": "Reschedule", "fenced": "Fence"}
_LOST_AT_ONCE = "refuse"
"""The fault that each request meets, from the first one on; an API server that is killed serves before it is whole."""


def moves_are_guarded(story: Story) -> Verdicts:
    """D14: only from a worker that was lost for ``lostAfter``, by policy, within limits, and not by who was cut off.

    Where a lease has ended it on a worker that is there, nothing of that is needed, but that it has.
    """
    if not story.opening.lost_after_seconds:
        return  # a history without settings
    turns = _Turns(story)
    for source in story.sources.values():
        for move in moves_in(source.bodies):
            if not _is_by_loss(move):
                continue
            is_expired = move.why == "expired"
            problems = _of_expired(story, source, move) if is_expired else _of_lost(story, source, move, turns)
            text = next(filter(None, (*_of_any(source, move), *problems)), "")
            said = f"{source} (uid {source.uid}) was moved from {move.said.origin} to {move.said.to}"
            yield Breach("moves", move.at, f"{said} {text}") if text else None


def moves_stay_counted(story: Story) -> Verdicts:
    """D14: who is where it was has been moved as often as before, so that ``moveLimit`` is one."""
    for source in story.sources.values():
        told = [(at, placed_on(body), moves_of(body).count) for at, body in source.bodies]
        for (_, where, count), (at, place, now) in pairwise(told):
            if count and where == place:
                text = f"{source} (uid {source.uid}) has been moved {count} times and says {now}"
                yield Breach("moves-count", at, text) if now < count else None


@dataclass(frozen=True, slots=True)
class _Turn:
    """A process begins to lead."""

    since: float
    manager: str


class _Turns:
    """When sources were moved by loss, and who led when."""

    def __init__(self, story: Story) -> None:
        moves = (move for source in story.sources.values() for move in moves_in(source.bodies))
        self.moved = sorted(move.at for move in moves if _is_by_loss(move))
        self.leading = list(_turns_of_leaders(story))

    def managers(self, since: float, until: float) -> set[str]:
        """Those that led at some time in between."""
        before = [one.manager for one in self.leading if one.since <= since]
        return {*before[-1:], *(one.manager for one in self.leading if since < one.since <= until)}


def _is_by_loss(move: Moving) -> bool:
    """Not where its worker is drained, or it starts over there (D11, D15)."""
    return move.why not in ("drained", "started over")


def _of_any(source: Life, move: Moving) -> Iterator[str]:
    kind = source.kind
    yield "" if kind.can_move else "though none of its kind is"
    is_suspended = kind.is_suspended(move.before) and kind.is_suspended(move.body)
    yield "while its user has suspended it" if is_suspended else ""
    verdicts = filter(None, (*kind.ends, *kind.ends.values()))
    yield "though it was stored how it ends" if any(condition(move.before, one) for one in verdicts) else ""


def _of_expired(story: Story, source: Life, move: Moving) -> Iterator[str]:
    origin = move.said.origin
    by = story.known_by(origin, move.at)
    copies = (copy for copy in story.mirrors.get(source.owner, ()) if move.said.may_have_left(origin, copy.uid))
    has_ended = any(
        is_ended_by_lease(body, copy.kind, move.body) for copy in copies for at, body in copy.bodies if at <= by
    )
    yield "" if has_ended else "as if its lease had ended it"


def _of_lost(story: Story, source: Life, move: Moving, turns: _Turns) -> Iterator[str]:
    opening, said, at = story.opening, move.said, move.at
    is_dead = said.why != "fenced" and story.is_declared_dead(said.origin, at)
    after = 0.0 if is_dead else opening.lost_after_seconds
    yield "" if _was_lost(story, turns, said.origin, at, after) else f"which had not been lost for {after:.0f} s"
    close = sum(at - 1.0 <= other <= at for other in turns.moved)
    is_fast = opening.move_rate and close > opening.move_rate * (1.0 + ORDER_SECONDS) + 1
    is_fast = is_fast and not _is_held_up(story, at - 1.0, at)
    yield f"as the {close}th in one second" if is_fast else ""
    if is_dead:
        return  # a person's word is enough
    policies, wanted = story.policies_of(source, move.body, at), _POLICIES.get(said.why)
    yield "" if wanted in policies else f"as {said.why}, with the policy {' or '.join(sorted(policies))}"
    times = said.count - said.drains
    yield f"for the {times}th time" if opening.move_limit and times > opening.move_limit else ""
    yield _lease_problem(story, source, move, turns) if said.why == "fenced" else ""
    away = {worker for worker in opening.workers if _is_away(story, worker, at)}
    living = {one for one in opening.workers if one not in away or not story.is_declared_dead(one, at)}
    lost = len(away & living)
    yield f"while {lost} of {len(living)} were lost" if lost >= 2 and 2 * lost > len(living) else ""
    led_for = at - max((one.since for one in turns.leading if one.since <= at), default=float("-inf"))
    yield f"by who leads for {led_for:.1f} s" if led_for < _AFTER_TAKING_OVER_SECONDS - LATE_SECONDS else ""


def _was_lost(story: Story, turns: _Turns, worker: str, at: float, seconds: float) -> bool:
    """Whether something kept managers from it: for so long, and until shortly before."""
    return any(
        began <= at - max(0.0, seconds - LATE_SECONDS - _gained(story, turns, began, at))
        and ended >= at - _BACK_SECONDS
        for began, ended in _absences(story, worker, at)
    )


def _lease_problem(story: Story, source: Life, move: Moving, turns: _Turns) -> str:
    """Why a lease that nobody saw end may not have ended what was left, as its worker has it; empty: it had."""
    said, at = move.said, move.at
    left = [
        body
        for copy in story.mirrors.get(source.owner, ())
        if copy.cluster == said.origin and said.may_have_left(copy.cluster, copy.uid)
        for when, body in copy.bodies
        if when <= at
    ]
    if left and source.kind.is_suspended(left[-1]):
        return ""  # it is held, and gets its lease when it goes on
    ends = [end for one in left if (end := lease_end(one)) is not None]
    if not ends:
        return "as fenced, and was never seen to start with a lease"
    early = max(ends) + _MARGIN_SECONDS - LATE_SECONDS - _gained(story, turns, at - _LASTS_SECONDS, at) - at
    return f"{early:.0f} s before its lease was over for sure" if early > 0 else ""


def _is_held_up(story: Story, since: float, until: float) -> bool:
    """Whether what managers wrote one after the other may have been stored at once: something had kept it to itself."""
    return any(
        began <= until and ended + LATE_SECONDS >= since
        for target in (MANAGEMENT, *story.clocks)
        for _, began, ended in story.broken(target)
    )


def _absences(story: Story, worker: str, by: float) -> list[tuple[float, float]]:
    """From when until when managers were kept from a worker, by faults that began by then, one after the other."""
    found: list[tuple[float, float]] = []
    faults = (one for target in (f"way to {worker}", worker) for one in story.broken(target))
    for began, ended in sorted((began, ended) for name, began, ended in faults if name in _KEEP_AWAY and began <= by):
        if found and began <= found[-1][1] + _BACK_SECONDS:
            found[-1] = found[-1][0], max(found[-1][1], ended)
        else:
            found.append((began, ended))
    return found


def _gained(story: Story, turns: _Turns, since: float, until: float) -> float:
    """By how much more than it was a time in between may have been by the clocks of those who led.

    That is a limit which docs/losing-a-worker.md admits: when a worker was lost is written down, and a clock may be set
    since, or the next leader have another one.
    """
    since -= LATE_SECONDS
    ahead = [one for manager in turns.managers(since, until) for one in story.ahead_between(manager, since, until)]
    return max(ahead, default=0.0) - min(ahead, default=0.0)


def _is_away(story: Story, worker: str, at: float) -> bool:
    """Whether each request to it must have failed for some seconds then."""
    return any(
        name == _LOST_AT_ONCE and began + LATE_SECONDS <= at <= ended - LATE_SECONDS
        for name, began, ended in story.broken(f"way to {worker}")
    )


def _turns_of_leaders(story: Story) -> Iterator[_Turn]:
    """Whenever another process than before held the Lease of the managers, by the management cluster's order."""
    holder = ""
    for version in story.management:
        if version.resource == "leases" and (now := _holder(version)) not in ("", holder):
            holder = now
            yield _Turn(story.stored_since(MANAGEMENT, version.at), machine_of(now.rpartition("_")[0]))


def _holder(version: Version) -> str:
    return str((version.body or {}).get("spec", {}).get("holderIdentity") or "")
