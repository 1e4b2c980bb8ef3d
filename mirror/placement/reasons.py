"""What is reported to people about a choice of worker, in a bounded number of bytes however many workers there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mirror.batch import label_selectors
from mirror.batch.label_selectors import Requirement
from mirror.model.reasons import Obstruction, Reason
from mirror.model.text import clean, nearest
from mirror.placement.candidates import Obstacle, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.obstacles import IN_TROUBLE, Obstacles, Workers

LONGEST_BYTES = 512
LONGEST_SELECTOR = 200
LONGEST_LABEL = 80
MOST_VALUES_ASKED, MOST_VALUES_COMPARED, MOST_LETTERS_MORE = 3, 30, 3
"""Of a label whose value no worker has: how many of a selector's values are compared, each with how many of workers',
and how much longer or shorter those are. Each Job that waits costs that."""
LONGEST_PREFERENCE = 60
NAME_LABEL = "name"
"""Every worker has it; its value is the worker's name."""
LONGEST_DETAIL = 200
"""Characters of what a worker answered when it refused, or of what is wrong with it."""


REASONS: Mapping[Obstacle, Reason] = {
    Obstacle.LABELS_DO_NOT_MATCH: Reason.NO_MATCHING_WORKER,
    Obstacle.NAMESPACE: Reason.NAMESPACE_NOT_ACCEPTED,
    Obstacle.KIND: Reason.KIND_NOT_SERVED,
    Obstacle.KIND_INCOMPLETE: Reason.KIND_NOT_SERVED,
    Obstacle.MISCONFIGURED: Reason.WORKERS_MISCONFIGURED,
    Obstacle.REFUSED: Reason.REFUSED_BY_WORKERS,
    Obstacle.CORDONED: Reason.WORKERS_CORDONED,
    Obstacle.UNREACHABLE: Reason.WORKERS_UNREACHABLE,
    Obstacle.FULL: Reason.WORKERS_FULL,
}
"""The reason of a source that waits: that of the worker with the least in the way, which comes last in ``Obstacle``."""


_NO_WORKERS = "no worker is registered"


def why_none(
    obstacles: Obstacles, index: WorkerIndex, request: PlacementRequest, details: Mapping[str, str]
) -> Obstruction:
    """Why no worker takes a source: each with its reason, by name, as far as they fit; the others by number.

    Where some workers have the labels that are asked for, those that have not are only counted: they are not news.
    It changes only when the set of workers and their kinds of reasons does (D21). ``details`` holds, by worker, what a
    refusal was about.
    """
    workers = _united(workers for _, workers in obstacles.by_reason)
    if not workers:
        return Obstruction(Reason.NO_WORKERS, _NO_WORKERS)
    least, _ = obstacles.by_reason[-1]
    if least is not Obstacle.LABELS_DO_NOT_MATCH:
        workers &= ~_united(found for one, found in obstacles.by_reason if one is Obstacle.LABELS_DO_NOT_MATCH)
    hint = _unknown_label(index, request) if least is Obstacle.LABELS_DO_NOT_MATCH else ""
    text = _listed(hint, _parts(obstacles, workers, index, request, details), obstacles)
    return Obstruction(REASONS[least], text, _summary(least, request))


def _summary(nearest: Obstacle, request: PlacementRequest) -> str:
    """What the source asks for, in terms of the workers that come nearest to it."""
    selector = clean(request.selector.text, longest=LONGEST_SELECTOR)
    asked = f" that worker-selector {selector} selects" if selector else ""
    match nearest:
        case Obstacle.LABELS_DO_NOT_MATCH:
            return f"no worker matches worker-selector {selector}"
        case Obstacle.NAMESPACE:
            return f"no worker{asked} accepts namespace {request.namespace}"
        case Obstacle.KIND:
            return f"no worker{asked} serves {request.kind}"
        case Obstacle.KIND_INCOMPLETE:
            return f"no worker{asked} serves {request.kind} with all required fields"
        case Obstacle.MISCONFIGURED:
            return f"every worker{asked} is misconfigured"
        case Obstacle.REFUSED:
            return f"every eligible worker{asked} has refused it"
        case Obstacle.CORDONED:
            return f"every worker{asked} is cordoned"
        case Obstacle.UNREACHABLE:
            return f"no eligible worker{asked} is reachable"
        case Obstacle.FULL:
            return f"every eligible worker{asked} is at capacity"


def _unknown_label(index: WorkerIndex, request: PlacementRequest) -> str:
    """A label that is asked for and that no worker has is most likely misspelt, or its value is."""
    for one in request.selector.requirements:
        if one.operator in ("In", "Exists") and not index.has_label(one.key):
            near = nearest(one.key, index.label_keys())
            hint = f" (did you mean {clean(near, longest=LONGEST_LABEL)}?)" if near else ""
            return f"no worker has a label {clean(one.key, longest=LONGEST_LABEL)}{hint}"
        if one.operator == "In" and (hint := _unknown_value(index, one)):
            return hint
    return ""


def _unknown_value(index: WorkerIndex, one: Requirement) -> str:
    """Empty where a worker has one of the values, or none that is near: each worker's own is named then."""
    known = index.label_values(one.key)
    if not one.values.isdisjoint(known):
        return ""
    for value in sorted(one.values)[:MOST_VALUES_ASKED]:
        alike = [other for other in known if abs(len(other) - len(value)) <= MOST_LETTERS_MORE]
        if len(alike) > MOST_VALUES_COMPARED:  # numbered names, which all are alike: those that end otherwise
            alike = [other for other in alike if other.startswith(value[:-2])]
        if near := nearest(value, sorted(alike)[:MOST_VALUES_COMPARED]):
            meant, asked = (f"{one.key}={clean(text, longest=LONGEST_LABEL)}" for text in (near, value))
            return f"no worker has {asked} (did you mean {meant}?)"
    return ""


def mismatch(request: PlacementRequest, labels: Mapping[str, str]) -> str:
    """The first label of a worker that is not as the source asks; empty for its name, which is shown beside it."""
    for one in request.selector.requirements:
        if not label_selectors.matches((one,), labels):
            key, value = clean(one.key, longest=LONGEST_LABEL), labels.get(one.key)
            if one.key == NAME_LABEL:
                return ""
            return f" ({key} is {clean(value, longest=LONGEST_LABEL)})" if value is not None else f" (no label {key})"
    return ""


def fields_lacking(request: PlacementRequest, index: WorkerIndex, worker: str) -> str:
    """What a worker's definition of the kind lacks."""
    fields = index.candidate(worker).incomplete.get(request.kind, "")
    return f" ({clean(fields, longest=LONGEST_DETAIL)})"


def why_there(obstacles: Obstacles, index: WorkerIndex, request: PlacementRequest, worker: str) -> str:
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
        best = (
            f"{_best_by(index, request)} of the eligible workers (next: {following}){_without_effect(index, request)}"
        )
    workers = _united(workers for _, workers in obstacles.by_reason) & ~index.bit(worker)
    best += _without_effect(index, request)
    return _listed(best, _parts(obstacles, workers, index, None, {}), obstacles, but=index.bit(worker))


def _best_by(index: WorkerIndex, request: PlacementRequest) -> str:
    """What decided between several."""
    asked = []
    if any(map(index.called, request.order)):
        asked.append(f"first by worker-order {clean(','.join(request.order), longest=LONGEST_PREFERENCE)}")
    if request.spread_by and index.has_label(request.spread_by):
        asked.append(f"fewest Jobs by {clean(request.spread_by, longest=LONGEST_PREFERENCE)}")
    return ", ".join((*asked, "lowest load" if index.policy.counts_load_only else "best score"))


def _without_effect(index: WorkerIndex, request: PlacementRequest) -> str:
    """What it asks for beyond its selector and that no worker has: most likely misspelt."""
    texts = []
    if unknown := [one for one in request.order if not index.called(one)]:
        named = clean(",".join(unknown), longest=LONGEST_PREFERENCE)
        near = nearest(unknown[0], index.names())
        texts.append(f"worker-order: no worker is called {named}" + (f", did you mean {near}?" if near else ""))
    if request.spread_by and not index.has_label(request.spread_by):
        near = nearest(request.spread_by, index.label_keys())
        hint = f", did you mean {clean(near, longest=LONGEST_LABEL)}?" if near else ""
        texts.append(f"spread-by: no worker has a label {clean(request.spread_by, longest=LONGEST_PREFERENCE)}{hint}")
    return "".join(f" ({text})" for text in texts)


def of_each(
    obstacles: Obstacles, index: WorkerIndex, request: PlacementRequest, details: Mapping[str, str]
) -> dict[str, str]:
    """Every worker that something speaks against, with its reason; under ``""`` what is no single worker's."""
    workers = _united(workers for _, workers in obstacles.by_reason)
    found = {name: text for name, _, text in _parts(obstacles, workers, index, request, details)}
    if obstacles.eligible:
        return found
    if not workers:
        return {"": _NO_WORKERS}
    least, _ = obstacles.by_reason[-1]
    hint = _unknown_label(index, request) if least is Obstacle.LABELS_DO_NOT_MATCH else ""
    return {"": hint, **found} if hint else found


Part = tuple[str, Workers, str]
"""A worker's name, its bit, and what speaks against it."""


def _parts(
    obstacles: Obstacles,
    workers: Workers,
    index: WorkerIndex,
    request: PlacementRequest | None,
    details: Mapping[str, str],
) -> Iterator[Part]:
    for name, bit in index.named(workers):
        reason = obstacles.of(bit)
        if reason is Obstacle.REFUSED and name in details:
            yield name, bit, clean(details[name], longest=LONGEST_DETAIL)
        elif reason is Obstacle.LABELS_DO_NOT_MATCH and request is not None:
            yield name, bit, f"{reason}{mismatch(request, index.labels_of(name))}"
        elif reason is Obstacle.KIND_INCOMPLETE and request is not None:
            yield name, bit, f"{reason}{fields_lacking(request, index, name)}"
        elif reason in IN_TROUBLE and (trouble := index.troubles.text_of(bit)):
            yield name, bit, f"{reason} ({clean(trouble, longest=LONGEST_DETAIL)})"
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
    left = [(reason, count) for reason, count in counts if count]
    listed = ", ".join(f"{count} {reason}" if len(left) > 1 else reason for reason, count in left)
    return f"…and {sum(count for _, count in left)} more: {listed}" if left else ""


def _united(sets: Iterable[Workers]) -> Workers:
    united = 0
    for workers in sets:
        united |= workers
    return united
