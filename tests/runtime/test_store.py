"""The store: its indexes, and what it believes of answers to our own writes."""

from __future__ import annotations

import weakref

import pytest
from doubles.examples import examples
from doubles.jobs import as_object
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mirror.kube.objects import Object, Partial, partial_of
from mirror.kube.packing import Packed
from mirror.runtime.rest import Rest
from mirror.runtime.store import EVERYWHERE, Store


def thing(name: str = "a", version: int = 1, *, colours: tuple[str, ...] = (), namespace: str = "n") -> Object:
    labels = dict.fromkeys(colours, "yes")
    metadata = {"name": name, "namespace": namespace, "resourceVersion": str(version), "labels": labels}
    return as_object({"metadata": metadata, "spec": {"version": version}})


def colours_of(found: Object) -> list[str]:
    return list(found.labels)


@pytest.mark.parametrize(
    ("progress", "stored", "answer", "is_news"),
    [
        pytest.param(10, None, 11, True, id="a create, before the watch brings it"),
        pytest.param(10, None, 9, False, id="stale: it was deleted since, and the watch has shown it"),
        pytest.param(10, 8, 12, True, id="a change, before the watch brings it"),
        pytest.param(12, 12, 12, False, id="the watch was faster"),
        pytest.param(15, 15, 12, False, id="somebody has changed it since"),
        pytest.param(15, 8, 12, False, id="the stream is further: it would have shown it"),
    ],
)
def test_an_answer_to_our_own_write_counts_only_if_it_is_news(
    progress: int, stored: int | None, answer: int, is_news: bool
) -> None:
    """What is not newer than the stream tells nothing that the stream has not told, deletions included."""
    store = Store()
    store.advance(EVERYWHERE, progress)
    if stored is not None:
        store.put(thing(version=stored))
    assert store.read_own_write(thing(version=answer)) is is_news
    found = store.get("n", "a")
    assert (found.version if found else None) == (answer if is_news else stored)


def test_each_namespace_has_its_own_progress() -> None:
    """With one watch a namespace, a fast one says nothing about a slow one."""
    store = Store()
    store.advance("slow", 5)
    store.advance("fast", 50)
    assert store.read_own_write(thing(version=20, namespace="slow"))
    assert not store.read_own_write(thing(version=20, namespace="fast"))


def test_progress_goes_back_only_with_a_new_list() -> None:
    """A restored etcd counts from an older version; a late event does not."""
    store = Store()
    store.advance(EVERYWHERE, 50)
    store.advance(EVERYWHERE, 20)
    assert not store.read_own_write(thing(version=30))
    store.restart(EVERYWHERE, 20)
    assert store.read_own_write(thing(version=30))


def test_names_are_listed_by_scope() -> None:
    """One namespace, or everything."""
    store = Store()
    for namespace in ("n", "m"):
        store.put(thing(namespace=namespace))
    assert store.names_in("m") == [("m", "a")]
    assert set(store.names_in(EVERYWHERE)) == {("n", "a"), ("m", "a")}


def test_going_over_the_store_may_change_it() -> None:
    """Iteration is over what there was when it began."""
    store = Store()
    for name in "abc":
        store.put(thing(name))
    for found in store:
        store.remove(("n", found.metadata.name))
    assert len(store) == 0


NAMES, COLOURS = st.sampled_from("abcd"), st.sets(st.sampled_from(["red", "green", "blue"]))


class StoreMachine(RuleBasedStateMachine):
    """The indexes against a plain search, and all but the newest two objects at rest."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: dict[str, int] = {}
        rest = Rest()
        rest.most_unpacked = 2
        self.store = Store({"colour": colours_of}, on_count=self.count, rest=rest)
        self.model: dict[str, frozenset[str]] = {}
        self.versions: dict[str, int] = {}
        self.version = 0

    def count(self, index: str, value: str, by: int) -> None:
        self.counted[value] = self.counted.get(value, 0) + by
        assert self.counted[value] == self.store.count(index, value)

    @rule(name=NAMES, colours=COLOURS)
    def put(self, name: str, colours: set[str]) -> None:
        self.version += 1
        old = self.store.put(thing(name, self.version, colours=tuple(colours)))
        assert told(old) == self.versions.pop(name, None)
        self.model[name], self.versions[name] = frozenset(colours), self.version

    @rule(name=NAMES)
    def put_what_identifies_it(self, name: str) -> None:
        """Which is never packed, and may take the place of what was."""
        self.version += 1
        self.store.put(partial_of(thing(name, self.version), ()))
        self.versions.pop(name, None)
        self.model[name], self.versions[name] = frozenset(), self.version

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        assert told(self.store.remove(("n", name))) == self.versions.pop(name, None)
        self.model.pop(name, None)

    @invariant()
    def all_is_there(self) -> None:
        """Whether it is packed or not, and all that could be and is not is among the newest two."""
        assert {found.metadata.name: told(found) for found in self.store} == self.versions
        assert {one.name for one in self.store.metadata()} == self.versions.keys()
        for name, version in self.versions.items():
            assert told(self.store.get("n", name)) == version
        loose = sorted(self.versions[one.metadata.name] for one in self.store._objects.values() if type(one) is Object)
        packed = [one.metadata.name for one in self.store._objects.values() if isinstance(one, Packed)]
        assert len(loose) <= 2
        assert all(self.versions[name] < loose[0] for name in packed if loose)

    @invariant()
    def counts_were_reported(self) -> None:
        """Whoever follows the reports knows the counts."""
        for colour in ("red", "green", "blue"):
            assert self.counted.get(colour, 0) == sum(colour in colours for colours in self.model.values())

    @invariant()
    def indexes_are_right(self) -> None:
        assert len(self.store) == len(self.model)
        for colour in ("red", "green", "blue"):
            names = {("n", name) for name, colours in self.model.items() if colour in colours}
            assert self.store.names("colour", colour) == names
            assert self.store.count("colour", colour) == len(names)
        assert all(self.store._by_index["colour"].values()), "no empty set is kept"


def told(found: Object | None) -> int | None:
    """Which version an object is of, by all that is left of it."""
    if found is None:
        return None
    if not isinstance(found, Partial):
        assert found.spec_dict() == {"version": found.version}
    return found.version


TestStoreIndexes = StoreMachine.TestCase
TestStoreIndexes.settings = examples(40, stateful_step_count=30)


def test_a_stream_that_begins_anew_before_where_it_was_has_turned_back() -> None:
    """A restored etcd: what was written since then is gone, and must not be waited for."""
    store = Store()
    store.advance(EVERYWHERE, 5)
    store.restart(EVERYWHERE, 5)
    store.restart(EVERYWHERE, 9)
    store.restart("other", 1)
    assert store.turned_back == 0
    store.restart(EVERYWHERE, 3)
    assert (store.turned_back, store.progress(EVERYWHERE)) == (1, 3)


def test_the_newest_of_all_stores_that_share_it_stay_as_they_came() -> None:
    """D29: of a thousand workers each has a few; and a worker that is gone is let go of."""
    rest = Rest()
    rest.most_unpacked = 20
    stores = [Store(rest=rest) for _ in range(30)]
    for number in range(5):
        for store in stores:
            store.put(thing(str(number), number + 1))
    assert [len(loose(store)) for store in stores] == [0] * 10 + [1] * 20
    assert all([told(store.get("n", str(number))) for number in range(5)] == [1, 2, 3, 4, 5] for store in stores)

    gone = weakref.ref(stores.pop(1))
    assert gone() is None
    for number in range(30):
        stores[0].put(thing(str(number), 9))
    assert sum(len(loose(store)) for store in stores) == len(loose(stores[0])) == 20


def loose(store: Store) -> list[Object]:
    """What is kept as it came."""
    return [one for one in store._objects.values() if isinstance(one, Object)]
