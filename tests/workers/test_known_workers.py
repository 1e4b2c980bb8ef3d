"""Workers are found by what they have, as if each were looked at (D1, D19)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from doubles.clock import LoopClock
from doubles.examples import examples
from doubles.jobs import as_object, job
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mirror.kinds.registry import JOB
from mirror.kube.objects import Object
from mirror.model import names
from mirror.runtime.rest import Rest
from mirror.workers.known_workers import Holders
from mirror.workers.mirrors import MirrorHooks, MirrorStore

WORKERS = ("east", "north", "west")
PREFIXES = ("", "a-", "a-b-", "c-")
NAMESPACES = ("n", "m", "b-n")
WORKER, NAME = st.sampled_from(WORKERS), st.sampled_from(("one", "two"))
IN = st.builds("{}{}".format, st.sampled_from(PREFIXES), st.sampled_from(NAMESPACES))


def mirror(namespace: str, name: str, *, uid: str = "u", source_uid: str = "s") -> Object:
    metadata = {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": "1"}
    metadata["labels"] = cast(Any, {names.ORIGIN: "o", names.SOURCE_UID: source_uid})
    return as_object(job(name) | {"metadata": metadata})


def store_of(worker: str, holders: Holders) -> MirrorStore:
    """One that takes everything as a mirror that has a source."""
    host = SimpleNamespace(clock=LoopClock(), origin="o", rests={JOB.name: Rest()}, holders={JOB.name: holders})
    hooks = MirrorHooks(
        on_change=lambda *_: None,
        is_source=lambda _: False,
        source_of=lambda _: None,
        has_source=lambda _: True,
        on_unknown_dropped=lambda: None,
        on_too_large=lambda: None,
    )
    return MirrorStore(JOB, cast(Any, host), worker=worker, hooks=hooks)


class Held(RuleBasedStateMachine):
    """Mirrors come and go on three workers, each under a prefix of its own, which changes."""

    def __init__(self) -> None:
        super().__init__()
        self.holders = Holders()
        self.stores = {name: store_of(name, self.holders) for name in WORKERS}
        self.prefixes = dict.fromkeys(WORKERS, "")

    @rule(worker=WORKER, namespace=IN, name=NAME)
    def comes(self, worker: str, namespace: str, name: str) -> None:
        self.stores[worker].put(mirror(namespace, name))

    @rule(worker=WORKER, namespace=IN, name=NAME)
    def goes(self, worker: str, namespace: str, name: str) -> None:
        self.stores[worker].remove((namespace, name))

    @rule(worker=WORKER, prefix=st.sampled_from(PREFIXES))
    def has_another_prefix(self, worker: str, prefix: str) -> None:
        self.stores[worker].use_prefix(prefix)
        self.prefixes[worker] = prefix

    @rule(worker=WORKER)
    def is_registered_anew(self, worker: str) -> None:
        """What the store of before still takes counts for nothing."""
        before = self.stores[worker]
        before.leave_holders()
        before.put(mirror("late", "late"))
        self.stores[worker], self.prefixes[worker] = store_of(worker, self.holders), ""

    @invariant()
    def each_is_found_by_what_it_has(self) -> None:
        seen: dict[tuple[str, str], list[str]] = {}
        for worker, store in self.stores.items():
            prefix = self.prefixes[worker]
            for one in store.metadata():
                if one.namespace.startswith(prefix):
                    seen.setdefault((one.namespace.removeprefix(prefix), one.name), []).append(worker)
        assert {source: list(self.holders.of(source)) for source in seen} == seen
        assert len(self.holders) == len(seen)
        assert self.holders.of(("nowhere", "one")) == ()


TestHeld = Held.TestCase
TestHeld.settings = examples(100)


def test_a_mirror_is_found_in_whatever_namespace_of_its_worker() -> None:
    """It was made under another prefix: it is there, elsewhere (D19). One of another source, or object, is not it."""
    store, source = store_of("east", Holders()), mirror("n", "train", uid="s")
    store.put(mirror("p-n", "train", uid="m"))
    store.put(mirror("n", "other", uid="o"))
    assert store.has_elsewhere(source, "")
    assert store.has_elsewhere(source, "m")
    assert not store.has_elsewhere(source, "o")
    assert not store.has_elsewhere(mirror("n", "train", uid="another"), "")
    store.remove(("p-n", "train"))
    assert not store.has_elsewhere(source, "")
