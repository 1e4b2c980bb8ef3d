"""What is reported to people about a choice of worker, in a bounded number of bytes however many workers there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mirror.model.text import clean
from mirror.placement.candidates import Obstacle
from mirror.placement.index import Obstacles, WorkerIndex, Workers

LONGEST_BYTES = 512
LONGEST_DETAIL = 160
"""Characters of what a worker answered when it refused."""


def why_none(obstacles: Obstacles, index: WorkerIndex, details: Mapping[str, str]) -> str:
    """Why no worker takes a source: each with its reason, by name, as far as they fit; the others by number.

    It changes only when the set of workers and their kinds of reasons does (D21). ``details`` holds, by worker, what a
    refusal was about.
    """
    workers = _united(workers for _, workers in obstacles.by_reason)
    return _listed("", _parts(obstacles, workers, index, details), obstacles) or "no worker is registered"


def why_there(obstacles: Obstacles, index: WorkerIndex, worker: str) -> str:
    """Why this worker and no other; without loads, so that many share one text."""
    others = obstacles.eligible & ~index.bit(worker)
    best = "the only eligible worker"
    if others:
        names, room = [], LONGEST_BYTES // 2
        for name, _ in index.named(others):
            room -= len(name) + 2
            if room < 0:
                break
            names.append(name)
        more = others.bit_count() - len(names)
        following = ", ".join(names) + (f" and {more} more" if more else "")
        best = f"lowest load of the eligible workers (next: {following})"
    workers = _united(workers for _, workers in obstacles.by_reason) & ~index.bit(worker)
    return _listed(best, _parts(obstacles, workers, index, {}), obstacles, but=index.bit(worker))


def of_each(obstacles: Obstacles, index: WorkerIndex, details: Mapping[str, str]) -> dict[str, str]:
    """Every worker that something speaks against, with its reason."""
    workers = _united(workers for _, workers in obstacles.by_reason)
    return {name: text for name, _, text in _parts(obstacles, workers, index, details)}


Part = tuple[str, Workers, str]
"""A worker's name, its bit, and what speaks against it."""


def _parts(obstacles: Obstacles, workers: Workers, index: WorkerIndex, details: Mapping[str, str]) -> Iterator[Part]:
    for name, bit in index.named(workers):
        reason = obstacles.of(bit)
        if reason is Obstacle.REFUSED and name in details:
            yield name, bit, clean(details[name], longest=LONGEST_DETAIL)
        elif reason is not None:
            yield name, bit, str(reason)


def _listed(first: str, parts: Iterator[Part], obstacles: Obstacles, *, but: Workers = 0) -> str:
    """The texts of as many workers as there is room for, and the numbers of the others by reason."""
    texts = [first] if first else []
    size, shown = len(first.encode()), but
    taken: list[tuple[int, Workers]] = []  # for each worker in ``texts``: the size and what was shown before it
    for name, bit, text in parts:
        part = f"{name}: {text}"
        taken.append((size, shown))
        texts.append(part)
        size, shown = size + len(part.encode()) + 2, shown | bit
        if size > LONGEST_BYTES + 2:
            break
    rest = _rest(obstacles, shown)
    while taken and size + len(rest.encode()) > LONGEST_BYTES:
        size, shown = taken.pop()
        texts.pop()
        rest = _rest(obstacles, shown)
    return "; ".join((*texts, rest) if rest else texts)


def _rest(obstacles: Obstacles, shown: Workers) -> str:
    counts = [(str(reason), (workers & ~shown).bit_count()) for reason, workers in obstacles.by_reason]
    left = [f"{count} {reason}" for reason, count in counts if count]
    return f"…and {sum(count for _, count in counts)} more: {', '.join(left)}" if left else ""


def _united(sets: Iterable[Workers]) -> Workers:
    united = 0
    for workers in sets:
        united |= workers
    return united
