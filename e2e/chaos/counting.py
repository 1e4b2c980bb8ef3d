"""What a history is made of, in numbers: what was broken, what came of it, what each rule had to judge. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from e2e.chaos.eras import OUTLASTING
from e2e.chaos.history import Json, Record
from e2e.chaos.judging import RULES
from e2e.chaos.kinds import KINDS
from e2e.chaos.reading import Moving, annotation, is_ended_by_lease, moves_in
from e2e.chaos.story import Story, tell
from mirror.model import names

KILLED_SECONDS = 2.0
"""A manager that is killed so long after a move has not finished what it moved."""


def summary(records: Iterable[Record]) -> str:
    """Some lines, each with what it is about."""
    story = tell(records)
    judged = {name: sum(1 for _ in rule(story)) for name, rule in RULES.items()}
    missing = _missing(story)
    made = ", ".join(_objects(story, kind) for kind in KINDS)
    deleted = len(story.deletions)
    return "\n".join(
        (
            f"seed {story.opening.seed}: {made}",
            f"managers: {len(story.requests)} writes, {deleted} deletions on workers",
            f"eras: {_listed(Counter(era.name for era in story.eras))}",
            f"broken: {_faults(story)}",
            f"moves: {_listed(_moves(story))}; with a manager's kill within 2 s: {_killed_moves(story)}; "
            f"leases that have ended a copy: {_lease_ends(story)}",
            *([f"missing: {missing}"] if missing else []),
            f"operators: {_listed(_marks(story))}; copies by their seed: {_listed(_seeds(story))}",
            f"ends: {_listed(_ends(story))}",
            f"judged: {_listed({name: count for name, count in judged.items() if count})}",
            f"nothing to judge: {', '.join(name for name, count in judged.items() if not count) or 'none'}",
        )
    )


def _objects(story: Story, kind: str) -> str:
    sources = [source for source in story.sources.values() if source.kind.name == kind]
    ended = sum(source.kind.end(source.last) is not None for source in sources)
    copies = sum(len(mirrors) for (name, _), mirrors in story.mirrors.items() if name == kind)
    return f"{len(sources)} {kind} ({ended} ended) with {copies} copies"


def _faults(story: Story) -> str:
    """Kills and freezes, whose they are, and all else that was broken."""
    begun = [one for one in story.faults if not one.is_over]
    kills = [one for one in begun if one.name.partition(" ")[0] == "kill"]
    freezes = [one for one in begun if one.name.partition(" ")[0] == "freeze"]
    of_managers = [sum(one.target.startswith("manager-") for one in some) for some in (kills, freezes)]
    others = len(begun) - len(kills) - len(freezes)
    return (
        f"{len(kills)} kills ({of_managers[0]} of managers), {len(freezes)} freezes ({of_managers[1]} of managers), "
        f"{others} other faults, {len(story.restored)} restored clusters"
    )


def _moves(story: Story) -> Mapping[str, int]:
    """How many there were for each reason.

    ``fenced``: those that left a lost worker, ``expired``: those whose lease was seen to have ended them; ``started
    over``: on the same worker, as ``Recreate`` wants it.
    """
    return Counter(move.why for move in _all_moves(story))


def _missing(story: Story) -> str:
    """What eras were played for, and did not come; empty: nothing."""
    outlasting = sum(era.name in OUTLASTING for era in story.eras)
    if not outlasting or _moves(story).get("fenced"):
        return ""
    return f"nothing has left a lost worker because its lease was over, in {outlasting} eras that outlast one"


def _killed_moves(story: Story) -> int:
    """Those after which a manager was killed before long."""
    kills = [one.at for one in story.faults if one.name == "kill" and one.target.startswith("manager-")]
    return sum(any(0 <= kill - move.at <= KILLED_SECONDS for kill in kills) for move in _all_moves(story))


def _all_moves(story: Story) -> Iterator[Moving]:
    return (move for source in story.sources.values() for move in moves_in(source.bodies))


def _lease_ends(story: Story) -> int:
    return sum(
        any(is_ended_by_lease(body, copy.kind, source.last) for _, body in copy.bodies)
        for source in story.sources.values()
        for copy in story.mirrors.get(source.owner, ())
    )


def _marks(story: Story) -> Mapping[str, int]:
    """What was written on workers' Secrets by operators, and how often."""
    found: Counter[str] = Counter()
    for (resource, _), versions in story.others.items():
        before: Json = {}
        for body in (one.body or {} for one in versions if resource == "secrets"):
            for name in (names.CORDONED, names.DRAIN, names.GONE):
                if (value := annotation(body, name)) not in ("", annotation(before, name)):
                    found[f"{name.removeprefix(names.PREFIX)}={value}"] += 1
            before = body
    return found


def _seeds(story: Story) -> Mapping[str, int]:
    copies = (copy for mirrors in story.mirrors.values() for copy in mirrors)
    return Counter(state for copy in copies if (state := annotation(copy.last, names.SEED)))


def _ends(story: Story) -> Mapping[str, int]:
    """Of sources, by their reason."""
    verdicts = (source.kind.end(source.last) for source in story.sources.values())
    return Counter(str(one.get("reason") or one["type"]) for one in verdicts if one is not None)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
