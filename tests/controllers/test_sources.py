"""How many sources are on each worker: counted as they change, against going through all kinds."""

from __future__ import annotations

from typing import Any

from doubles.counting import Count, as_the_managers
from doubles.drills import KINDS
from doubles.examples import examples
from doubles.jobs import as_object
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mirror.controllers.sources import SPREAD, Sources
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.registry import Kinds
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.reasons import Reason
from mirror.settings.kinds import KindEntry

AT = "2026-01-01T00:00:00Z"
WORKERS = ("east", "west")
ENDS = {"Job": "Complete", "Drill": "Succeeded"}


def condition(type_name: str, status: str = "True", *, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": type_name, "status": status, "reason": reason, "message": message, "lastTransitionTime": AT}


class SourcesMachine(RuleBasedStateMachine):
    """Sources of two kinds come, are placed, stalled, end and go."""

    def __init__(self) -> None:
        super().__init__()
        self.sources = Sources(KINDS, has_copy=self.has_copy, stalled=True)
        self.sources.report_to(self)
        self.loads: dict[str, int] = {}
        self.stalled: dict[str, int] = {}
        self.spread: dict[str, int] = {}
        self.version = 0
        self.copies: set[tuple[str, str, str]] = set()
        """Objects on workers: kind, name, worker."""
        self.left: dict[tuple[str, str], str] = {}
        """The worker that a source, by kind and name, has left something on."""

    def has_copy(self, kind: Kind, source: Object, worker: str) -> bool:
        return (kind.name, source.metadata.name, worker) in self.copies

    def set_load(self, worker: str, taken: int) -> None:
        self.loads[worker] = taken

    def set_stalled(self, worker: str, stalled: int) -> None:
        self.stalled[worker] = stalled

    def set_spread(self, worker: str, namespace: str, label: str, count: int) -> None:
        self.spread[f"{worker} {namespace} {label}"] = count

    @rule(
        kind=st.sampled_from(sorted(ENDS)),
        name=st.sampled_from("abc"),
        worker=st.sampled_from(("", *WORKERS)),
        is_over=st.booleans(),
        is_stalled=st.booleans(),
        is_spread=st.booleans(),
        left=st.sampled_from(("", *WORKERS)),
    )
    def put(
        self, kind: str, name: str, worker: str, *, is_over: bool, is_stalled: bool, is_spread: bool, left: str
    ) -> None:
        self.version += 1
        listed = [condition(names.PLACED, message=worker)] if worker else []
        listed += [condition(names.PROGRESSING, "False", reason=Reason.PODS_NOT_READY)] if is_stalled else []
        listed += [condition(ENDS[kind])] if is_over else []
        listed += [condition(names.MOVED, message=f"move 1, from {left} to x; left behind: {left} (uid u)")] * bool(
            left
        )
        self.left[kind, name] = left if KINDS[kind].can_move else ""
        metadata = {"name": name, "namespace": "n", "uid": f"{kind}-{name}", "resourceVersion": str(self.version)}
        metadata["annotations"] = {names.SPREAD_BY: "team"} if is_spread else {}
        found = as_object({"kind": kind, "metadata": metadata, "spec": {}, "status": {"conditions": listed}})
        self.sources.of(KINDS[kind]).put(found)

    @rule(kind=st.sampled_from(sorted(ENDS)), name=st.sampled_from("abc"))
    def remove(self, kind: str, name: str) -> None:
        self.sources.of(KINDS[kind]).remove(("n", name))
        self.left.pop((kind, name), None)

    @rule(kind=st.sampled_from(sorted(ENDS)), name=st.sampled_from("abc"), worker=st.sampled_from(WORKERS))
    def a_copy_comes_or_goes(self, kind: str, name: str, worker: str) -> None:
        self.copies ^= {(kind, name, worker)}
        self.sources.look_at_copies(KINDS[kind], ("n", name))

    @rule(worker=st.sampled_from(WORKERS))
    def a_worker_is_none_any_more(self, worker: str) -> None:
        self.copies = {one for one in self.copies if one[2] != worker}
        self.sources.look_at_copies_on(worker)

    @invariant()
    def loads_are_right(self) -> None:
        for worker in WORKERS:
            load = len(list(self.sources.keys_on(worker)))
            assert self.sources.load_of(worker) == load
            left = sum((*source, worker) in self.copies for source, where in self.left.items() if where == worker)
            assert self.sources.taken_on(worker) == load + left == self.loads.get(worker, 0)
            assert load == sum(self.sources.load_by_kind(worker, kind) for kind in KINDS)

    @invariant()
    def others_are_right(self) -> None:
        stores = [self.sources.of(kind) for kind in KINDS]
        for worker in WORKERS:
            stalled = sum(store.count("stalled", worker) for store in stores)
            assert self.sources.stalled_of(worker) == stalled == self.stalled.get(worker, 0)
            value = f"{worker} n team"
            assert self.spread.get(value, 0) == sum(store.count(SPREAD, value) for store in stores)

    @invariant()
    def nothing_is_left_of_who_has_none(self) -> None:
        """A worker, or a label, that was in use once takes no memory for ever."""
        assert all(self.sources._totals.values())


TestSources = SourcesMachine.TestCase
TestSources.settings = examples(40, stateful_step_count=30)


def cost_of_asking(kinds: Kinds) -> int:
    """In bytecodes."""
    sources, counted = Sources(kinds), Count()
    with as_the_managers():
        counted.start()
        assert sources.load_of("east") == 0
        counted.stop()
    return counted.bytecodes.total()


def test_asking_costs_the_same_however_many_kinds_there_are() -> None:
    """It is asked of each worker for each Job that is placed."""
    every = kinds_of([KindEntry(kind=name) for name in built_in()])
    assert cost_of_asking(kinds_of([])) == cost_of_asking(every)
