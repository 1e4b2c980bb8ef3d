"""The workers, kept so that a question about all of them costs a few operations on integers: bit n is worker n.

Kept up to date by ``controllers.assigning``, change by change; nothing is rebuilt to answer. Of the eligible workers
the one is chosen that costs least by the ``policy``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from msgspec.structs import replace

from mirror.batch.label_selectors import Requirement
from mirror.placement.candidates import OF_KINDS, Candidate, NamespaceRules, Obstacle, PlacementRequest
from mirror.placement.facts import FactsOfJobs
from mirror.placement.obstacles import Obstacles, Troubles, Workers
from mirror.placement.policy import DEFAULT, PlacementPolicy
from mirror.placement.selector import Selector
from mirror.placement.spreading import SpreadCounts

K = TypeVar("K")

MOST_NAMESPACES = 4096
"""For so many namespaces it is remembered which workers accept them, and for so many globs which workers they name."""


@dataclass(slots=True)
class _Entry:
    """A worker: ``candidate.load`` is what is recorded, ``assigned`` comes on top; ``allocatable`` is known apart."""

    candidate: Candidate
    bit: Workers
    assigned: int = 0
    allocatable: float | None = None
    rank: tuple[float, str, Workers] = (0.0, "", 0)

    @property
    def now(self) -> Candidate:
        """The worker with all that counts for its load."""
        if not self.assigned and self.allocatable is None:
            return self.candidate
        return replace(self.candidate, load=self.candidate.load + self.assigned, allocatable=self.allocatable)


class WorkerIndex:
    """All workers that are registered.

    Invariants: ``_ranked`` holds exactly the open workers, which take Jobs at all, the one that is next first, and
    ``open`` their bits; each worker has one bit, given to another only after it has gone; ``version`` has changed
    whenever ``fitting`` may answer differently than before.
    """

    def __init__(self, policy: PlacementPolicy = DEFAULT) -> None:
        self.policy = policy
        self._counts_load_only = policy.counts_load_only
        self.spread = SpreadCounts()
        self.facts = FactsOfJobs()
        self.troubles = Troubles()
        self.version = 0
        self.open: Workers = 0
        self.all: Workers = 0
        self._entries: dict[str, _Entry] = {}
        self._by_bit: dict[Workers, str] = {}
        self._names: list[str] = []  # sorted
        self._ranked: list[tuple[float, str, Workers]] = []  # sorted
        self._unused_bits: list[Workers] = []
        self._by_key: dict[str, Workers] = {}
        self._by_label: dict[str, dict[str, Workers]] = {}  # by key and value; no key has none
        # Workers with the same rules about namespaces (few, however many there are), and where a kind is in the way.
        self._by_rules: dict[NamespaceRules, Workers] = {}
        self._by_kind: dict[tuple[Obstacle, str], Workers] = {}
        self._accepting: dict[str, Workers] = {}
        self._by_glob: dict[str, Workers] = {}
        self._by_obstacle: dict[Obstacle, Workers] = dict.fromkeys(Obstacle, 0)

    def names(self) -> tuple[str, ...]:
        """All workers, sorted."""
        return tuple(self._names)

    # -- changes --------------------------------------------------------------------------------------------------

    def put(self, candidate: Candidate) -> bool:
        """A worker is there, or is another than before; return whether more than its counts is news."""
        entry = self._entries.get(candidate.name)
        if entry is None:
            bit = self._unused_bits.pop() if self._unused_bits else 1 << len(self._entries)
            entry = self._entries[candidate.name] = _Entry(candidate, bit)
            insort(self._names, candidate.name)
            self._by_bit[bit] = candidate.name
            self.all |= bit
            self._learn(candidate, bit)
            is_news = True
        else:
            before, entry.candidate = entry.candidate, candidate
            is_news = replace(before, load=candidate.load, stalled=candidate.stalled) != candidate
            if _matching(before) != _matching(candidate):
                self._forget(before, entry.bit)
                self._learn(candidate, entry.bit)
        self.troubles.note(entry.bit, candidate.trouble)
        self._judge(entry)
        return is_news

    def remove(self, name: str) -> bool:
        """A worker is registered no more; return whether it was."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return False
        self._close(entry)
        self._forget(entry.candidate, entry.bit)
        self.troubles.note(entry.bit, "")
        for reason in self._by_obstacle:
            self._by_obstacle[reason] &= ~entry.bit
        del self._names[bisect_left(self._names, name)]
        del self._by_bit[entry.bit]
        self.all &= ~entry.bit
        self._unused_bits.append(entry.bit)
        self.facts.remove(name)
        return True

    def set_load(self, name: str, taken: int) -> None:
        """So many places of a worker are taken now; one that is not registered is ignored."""
        entry = self._entries.get(name)
        if entry is not None and entry.candidate.load != taken:
            entry.candidate = replace(entry.candidate, load=taken)
            self._judge(entry)

    def set_stalled(self, name: str, stalled: int) -> None:
        """So many of them wait for their pods; a worker that is not registered is ignored."""
        entry = self._entries.get(name)
        if entry is not None and entry.candidate.stalled != stalled:
            entry.candidate = replace(entry.candidate, stalled=stalled)
            self._judge(entry)

    def set_allocatable(self, name: str, share: float | None) -> None:
        """So much of its nodes is free; None: not known. A worker that is not registered is ignored."""
        entry = self._entries.get(name)
        if entry is not None and entry.allocatable != share:
            entry.allocatable = share
            self._judge(entry)

    def set_assigned(self, name: str, assigned: int) -> None:
        """So many sources are assigned to a worker and not recorded yet."""
        entry = self._entries.get(name)
        if entry is not None and entry.assigned != assigned:
            entry.assigned = assigned
            self._judge(entry)

    def _learn(self, candidate: Candidate, bit: Workers) -> None:
        self.version += 1
        self._accepting.clear()
        self._by_glob.clear()
        for key, value in candidate.labels.items():
            self._by_key[key] = self._by_key.get(key, 0) | bit
            of_key = self._by_label.setdefault(key, {})
            of_key[value] = of_key.get(value, 0) | bit
        rules = candidate.namespace_rules
        self._by_rules[rules] = self._by_rules.get(rules, 0) | bit
        for kind in candidate.unsuited_kinds():
            self._by_kind[kind] = self._by_kind.get(kind, 0) | bit

    def _forget(self, candidate: Candidate, bit: Workers) -> None:
        self.version += 1
        self._accepting.clear()
        self._by_glob.clear()
        for key, value in candidate.labels.items():
            _take_out(self._by_key, key, bit)
            _take_out(self._by_label[key], value, bit)
            if not self._by_label[key]:
                del self._by_label[key]
        _take_out(self._by_rules, candidate.namespace_rules, bit)
        for kind in candidate.unsuited_kinds():
            _take_out(self._by_kind, kind, bit)

    def _judge(self, entry: _Entry) -> None:
        """Note what speaks against a worker for everybody, and where it stands among those that are open."""
        # Once or twice per Job: by numbers, without a copy of the worker.
        candidate, bit = entry.candidate, entry.bit
        load = candidate.load + entry.assigned
        is_full = candidate.capacity is not None and load >= candidate.capacity
        for reason, applies in (
            (Obstacle.MISCONFIGURED, candidate.misconfigured),
            (Obstacle.CORDONED, candidate.cordoned),
            (Obstacle.UNREACHABLE, not candidate.reachable),
            (Obstacle.FULL, is_full),
        ):
            workers = self._by_obstacle[reason]
            if bool(workers & bit) != applies:
                self._by_obstacle[reason] = workers ^ bit
        self._close(entry)
        if candidate.reachable and not (candidate.cordoned or candidate.misconfigured or is_full):
            cost = (load + 1) / candidate.weight if self._counts_load_only else self.policy.cost(entry.now)
            entry.rank = (cost, candidate.name, bit)
            insort(self._ranked, entry.rank)
            self.open |= bit

    def _cost(self, now: Candidate) -> float:
        return (now.load + 1) / now.weight if self._counts_load_only else self.policy.cost(now)

    def _close(self, entry: _Entry) -> None:
        if self.open & entry.bit:
            del self._ranked[bisect_left(self._ranked, entry.rank)]
            self.open &= ~entry.bit

    # -- questions ------------------------------------------------------------------------------------------------

    def is_usable(self, name: str) -> bool:
        """Whether an assignment to this worker may still be used; that it is full does not matter then."""
        entry = self._entries.get(name)
        if entry is None:
            return False
        return entry.candidate.reachable and not (entry.candidate.cordoned or entry.candidate.misconfigured)

    def fitting(self, request: PlacementRequest) -> Workers:
        """The workers that suit a source, whether they take Jobs at the moment or not."""
        against = self._bits_of(request.refused_by)
        for obstacle in OF_KINDS:
            against |= self._by_kind.get((obstacle, request.kind), 0)
        return self._selected(request.selector) & self._accepting_of(request.namespace) & ~against

    def best(self, workers: Workers, request: PlacementRequest | None = None) -> str | None:
        """Of these workers the eligible one that costs least; equal ones go by name.

        What ``request`` asks for beyond that comes first: its order, and then how it is spread.
        """
        workers &= self.open
        if not workers:
            return None
        if request is not None and (request.order or request.spread_by):
            workers = self._preferred(workers, request)
        if request is not None and self.facts.concern(request):
            return min((self.cost(name, request), name) for _, name, bit in self._ranked if bit & workers)[1]
        return next(name for _, name, bit in self._ranked if bit & workers)

    def _preferred(self, workers: Workers, request: PlacementRequest) -> Workers:
        """Those of some open workers that a request prefers; of none, none."""
        for name in request.order:
            if named := workers & self.called(name):
                workers = named
                break
        if request.spread_by:
            by_value = self.spread_over(workers, request)
            if by_value:
                fewest = min(count for count, _ in by_value.values())
                workers = sum(having for count, having in by_value.values() if count == fewest)
        return workers

    def spread_over(self, workers: Workers, request: PlacementRequest) -> dict[str, tuple[int, Workers]]:
        """By value of the label that a request is spread by: how many Jobs it has, and which of these workers."""
        label, counts = request.spread_by, self.spread.of((request.namespace, request.spread_by))
        by_value: dict[str, tuple[int, Workers]] = {}
        for name, bit in self.named(workers & self._by_key.get(label, 0)):
            mine = self.labels_of(name)[label]
            by_value[mine] = 0, bit | (by_value[mine][1] if mine in by_value else 0)
        for name, more in counts.items():
            entry = self._entries.get(name)
            value = entry.candidate.labels.get(label) if entry is not None else None
            if value is not None and value in by_value:
                count, having = by_value[value]
                by_value[value] = count + more, having
        return by_value

    def called(self, name: str) -> Workers:
        """The workers that a name or a glob names."""
        found = self.bit(name) or self._by_glob.get(name)
        if found is None:
            if len(self._by_glob) >= MOST_NAMESPACES:
                self._by_glob.clear()
            found = 0
            for one, entry in self._entries.items():
                found |= entry.bit if fnmatchcase(one, name) else 0
            self._by_glob[name] = found
        return found

    def obstacles(self, request: PlacementRequest) -> Obstacles:
        """What speaks against each worker, the lasting reasons first."""
        left, found = self.all, []
        for reason, against in self.against(request):
            workers = left & against
            if workers:
                found.append((reason, workers))
                left &= ~workers
        return Obstacles(tuple(found), left)

    def against(self, request: PlacementRequest) -> Iterator[tuple[Obstacle, Workers]]:
        """Everything that can speak against workers, and against which it does, whatever else does as well."""
        suiting = {
            Obstacle.LABELS_DO_NOT_MATCH: ~self._selected(request.selector),
            Obstacle.NAMESPACE: ~self._accepting_of(request.namespace),
            Obstacle.REFUSED: self._bits_of(request.refused_by),
            **{one: self._by_kind.get((one, request.kind), 0) for one in OF_KINDS},
        }
        for reason in Obstacle:
            yield reason, self.all & (suiting[reason] if reason in suiting else self._by_obstacle[reason])

    def signature(self, request: PlacementRequest) -> int:
        """A hash of what speaks against which worker. Full workers count as free ones: to one who waits they are."""
        found = self.obstacles(request)
        return hash((self.version, found.lasting, self.troubles.hash_of(found.in_trouble)))

    def bit(self, name: str) -> Workers:
        """The bit of a worker; none of it, if it is not registered."""
        entry = self._entries.get(name)
        return entry.bit if entry is not None else 0

    def named(self, workers: Workers) -> Iterator[tuple[str, Workers]]:
        """These workers by name, with their bits."""
        for name in self._names:
            bit = self._entries[name].bit
            if workers & bit:
                yield name, bit
                workers ^= bit
                if not workers:
                    return

    def candidate(self, name: str) -> Candidate:
        """A registered worker with all that counts for its load."""
        return self._entries[name].now

    def cost(self, name: str, request: PlacementRequest) -> float:
        """Of a registered worker for sources with this request."""
        cost, known = self._cost(self._entries[name].now), self.facts.of(name, request)
        return cost * self.policy.factor(known) if known else cost

    def labels_of(self, name: str) -> Mapping[str, str]:
        """The labels of a registered worker."""
        return self._entries[name].candidate.labels

    def has_label(self, key: str) -> bool:
        """Whether any worker has a label of this name."""
        return key in self._by_key

    def label_keys(self) -> Iterator[str]:
        """The names of all labels that workers have."""
        return iter(self._by_key)

    def label_values(self, key: str) -> Collection[str]:
        """The values that workers have of a label."""
        return self._by_label.get(key, {}).keys()

    def _selected(self, selector: Selector) -> Workers:
        workers = self.all
        for requirement in selector.requirements:
            workers &= self._meeting(requirement)
            if not workers:
                break
        return workers

    def _meeting(self, requirement: Requirement) -> Workers:
        match requirement.operator:
            case "Exists":
                return self._by_key.get(requirement.key, 0)
            case "DoesNotExist":
                return ~self._by_key.get(requirement.key, 0)
            case operator:
                workers, of_key = 0, self._by_label.get(requirement.key, {})
                for value in requirement.values:
                    workers |= of_key.get(value, 0)
                return workers if operator == "In" else ~workers

    def _accepting_of(self, namespace: str) -> Workers:
        workers = self._accepting.get(namespace)
        if workers is None:
            if len(self._accepting) >= MOST_NAMESPACES:
                self._accepting.clear()
            workers = 0
            for rules, bits in self._by_rules.items():
                if rules.accepts(namespace):
                    workers |= bits
            self._accepting[namespace] = workers
        return workers

    def _bits_of(self, names: frozenset[str]) -> Workers:
        workers = 0
        for name in names:
            workers |= self.bit(name)
        return workers


def _matching(candidate: Candidate) -> tuple[object, ...]:
    """What decides whether a worker suits a source."""
    return candidate.labels, candidate.namespace_rules, candidate.unserved, candidate.incomplete


def _take_out(sets: dict[K, Workers], key: K, bit: Workers) -> None:
    left = sets[key] & ~bit
    if left:
        sets[key] = left
    else:
        del sets[key]
