"""All workers by name, by what is on them, and by how they are: found without a look at each of them.

Filled by ``registry``, and by each worker's stores (``mirrors``), which know under which prefix its mirrors live (D19).
The controllers read it: what is done for one Job must not cost by the number of workers. What an object is that has a
mirror's name, is not known here (D1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.runtime.store import Name
from mirror.runtime.turns import slicing
from mirror.workers.inventory import Entry

if TYPE_CHECKING:
    from mirror.workers.worker import Worker

CHECK_WEIGHT = 10
"""Of a worker that is looked at anew, beside an object that is gone over (``turns``): its lists and its probe begin."""


class Holders:
    """Which workers have an object of one kind where they would have the mirror of a source.

    Invariant: a worker is found by a source exactly if its store has an object of the source's name in the namespace of
    its mirrors (``Worker.namespace_of``). Almost always that is one worker, which takes no tuple.
    """

    def __init__(self) -> None:
        self._by_source: dict[Name, str | tuple[str, ...]] = {}

    def __len__(self) -> int:
        """Of how many sources, or would-be sources, there is something."""
        return len(self._by_source)

    def of(self, source: Name) -> tuple[str, ...]:
        """Their names, in order."""
        found = self._by_source.get(source, ())
        return (found,) if isinstance(found, str) else found

    def add(self, source: Name, worker: str) -> None:
        before = self.of(source)
        self._by_source[source] = tuple(sorted({*before, worker})) if before else worker

    def discard(self, source: Name, worker: str) -> None:
        left = tuple(one for one in self.of(source) if one != worker)
        if left:
            self._by_source[source] = left if len(left) > 1 else left[0]
        else:
            self._by_source.pop(source, None)


class Workers(dict[str, "Worker"]):
    """The workers by name; only ``add`` and ``remove`` change which there are.

    Invariants, as of each worker's last transition (``note``): ``unreachable`` has the names of those that are not
    reachable, ``lost`` those of them that are not declared dead, and ``unsettled`` those that something declares and
    that have not had their first chance yet; ``_run_here`` has what is known of those that know of such kinds.
    """

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        super().__init__()
        self.holders = {kind.name: Holders() for kind in kinds}
        """By name of the kind."""
        self.unreachable: set[str] = set()
        self.lost: set[str] = set()
        self.unsettled: set[str] = set()
        self._run_here: dict[str, Mapping[str, str]] = {}

    def add(self, worker: Worker) -> None:
        """It is registered."""
        self[worker.name] = worker
        self.note(worker)

    def remove(self, name: str) -> None:
        """It is registered no more: nothing finds it from now on, whatever its stores still take."""
        worker = self.pop(name)
        worker.watches.leave_holders()
        for some in (self.unreachable, self.lost, self.unsettled):
            some.discard(name)
        self._run_here.pop(name, None)

    def note(self, worker: Worker) -> None:
        """How it is may be another than before."""
        is_unreachable = not worker.is_reachable
        _set(self.unreachable, worker.name, is_unreachable)
        _set(self.lost, worker.name, is_unreachable and not worker.is_gone)
        _set(self.unsettled, worker.name, worker.spec is not None and not worker.has_settled)
        if worker.kinds_run_here:
            self._run_here[worker.name] = worker.kinds_run_here
        else:
            self._run_here.pop(worker.name, None)

    def run_here_until(self, kind: str) -> str:
        """Until when a controller on the management cluster counts as running a kind, by any worker's entry (RFC 3339);
        empty: none was seen to."""
        return max((of_worker.get(kind, "") for of_worker in self._run_here.values()), default="")

    async def check_again(self, entry_of: Callable[[str], Entry], prefix_in_use: Callable[[Worker], str]) -> None:
        """Find out anew how all are, some at a time; until then each is what its entry says (``Worker.begin_anew``)."""
        present = list(self.values())
        for worker in present:
            worker.begin_anew(entry_of(worker.name))
            self.note(worker)
        taker = slicing()
        for worker in present:
            if self.get(worker.name) is worker:
                worker.use_prefix(prefix_in_use(worker))
                worker.check_again()
            if not taker.take(CHECK_WEIGHT):
                await taker.wait()

    @property
    def living(self) -> int:
        """How many are not declared dead, or answer all the same."""
        return len(self) - len(self.unreachable) + len(self.lost)

    def holders_of(self, kind: Kind, source: Object) -> Iterator[Worker]:
        """Those that have an object where they would have the mirror of this source, whatever it is."""
        metadata = source.metadata
        for name in self.holders[kind.name].of((metadata.namespace, metadata.name)):
            yield self[name]


def _set(names: set[str], name: str, is_in: bool) -> None:
    if is_in:
        names.add(name)
    else:
        names.discard(name)
