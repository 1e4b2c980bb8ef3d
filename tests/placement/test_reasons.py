"""What is reported about a choice of worker, and how long it may be."""

from __future__ import annotations

import pytest

from mirror.placement import reasons
from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.selector import parse_selector

WISH = PlacementRequest("team-a")


def index_of(*candidates: Candidate) -> WorkerIndex:
    index = WorkerIndex()
    for one in candidates:
        index.put(one)
    return index


def why(index: WorkerIndex, request: PlacementRequest = WISH, **details: str) -> str:
    return reasons.why_none(index.obstacles(request), index, request, details).text


def test_the_reason_to_wait_names_each_worker_once_in_order() -> None:
    """D21: it is the same text as long as the set of (worker, reason) is."""
    full, cordoned = Candidate("b", capacity=0), Candidate("a", cordoned=True)
    assert why(index_of(full, cordoned)) == why(index_of(cordoned, full)) == "a: cordoned; b: at capacity"
    assert why(index_of()) == "no worker is registered"


@pytest.mark.parametrize(
    ("workers", "selector", "reason", "message"),
    [
        pytest.param((), "", "NoWorkers", "no worker is registered", id="nothing is registered"),
        pytest.param(
            (Candidate("east", labels={"region": "us"}), Candidate("west")),
            "region=eu",
            "NoMatchingWorker",
            "no worker matches worker-selector region=eu: east: labels do not match worker-selector (region is us); "
            "west: labels do not match worker-selector (no label region)",
            id="what was asked for, and what each worker lacks",
        ),
        pytest.param(
            (Candidate("east", labels={"region": "eu"}),),
            "regoin=eu",
            "NoMatchingWorker",
            "no worker matches worker-selector regoin=eu: no worker has a label regoin (did you mean region?); "
            "east: labels do not match worker-selector (no label regoin)",
            id="a misspelt label",
        ),
        pytest.param(
            (Candidate("east", labels={"region": "eu"}), Candidate("west", labels={"region": "us"})),
            "region=ue",
            "NoMatchingWorker",
            "no worker matches worker-selector region=ue: no worker has region=ue (did you mean region=eu?); "
            "east: labels do not match worker-selector (region is eu); "
            "west: labels do not match worker-selector (region is us)",
            id="a misspelt value",
        ),
        pytest.param(
            (Candidate("east", labels={"name": "east"}), Candidate("berlin", labels={"name": "berlin"})),
            "name in (berlinn, mars)",
            "NoMatchingWorker",
            "no worker matches worker-selector name in (berlinn, mars): no worker has name=berlinn "
            "(did you mean name=berlin?); berlin: labels do not match worker-selector; "
            "east: labels do not match worker-selector",
            id="a misspelt name of a worker",
        ),
        pytest.param(
            (Candidate("east", labels={"region": "eu", "gpu": "a100"}),),
            "region in (eu, ue),gpu=a10",
            "NoMatchingWorker",
            "no worker matches worker-selector region in (eu, ue),gpu=a10: no worker has gpu=a10 "
            "(did you mean gpu=a100?); east: labels do not match worker-selector (gpu is a100)",
            id="a value that a worker has is none",
        ),
        pytest.param(
            (Candidate("east", labels={"name": "east"}, cordoned=True), Candidate("west", labels={"name": "west"})),
            "name=east",
            "WorkersCordoned",
            "every worker that worker-selector name=east selects is cordoned: "
            "east: cordoned; …and 1 more: labels do not match worker-selector",
            id="the worker that comes nearest decides",
        ),
        pytest.param(
            (Candidate("a", reachable=False), Candidate("b", capacity=0)),
            "",
            "WorkersFull",
            "every eligible worker is at capacity: a: unreachable; b: at capacity",
            id="the least that is in the way",
        ),
        pytest.param(
            (Candidate("east", unserved=frozenset({"JobSet"})), Candidate("west", unserved=frozenset({"JobSet"}))),
            "",
            "KindNotServed",
            "no worker serves JobSet: east: does not serve the kind; west: does not serve the kind",
            id="a kind that nobody serves",
        ),
        pytest.param(
            (
                Candidate("east", incomplete={"JobSet": "spec.suspend", "MPIJob": "status.conditions"}),
                Candidate("west", unserved=frozenset({"JobSet"})),
            ),
            "",
            "KindNotServed",
            "no worker serves JobSet with all required fields: "
            "east: its definition lacks required fields (spec.suspend); west: does not serve the kind",
            id="a kind of which a worker's definition lacks something",
        ),
    ],
)
def test_the_reason_and_its_message(workers: tuple[Candidate, ...], selector: str, reason: str, message: str) -> None:
    """D22: a reason of the fixed set, with what was asked for."""
    index, request = index_of(*workers), PlacementRequest("team-a", parse_selector(selector), kind="JobSet")
    why_none = reasons.why_none(index.obstacles(request), index, request, {})
    assert (why_none.reason, why_none.message) == (reason, message)


def test_values_of_workers_that_are_gone_are_not_proposed() -> None:
    """Nothing is kept of a label that no worker has any more (D29)."""
    index = index_of(Candidate("east", labels={"region": "eu"}), Candidate("west", labels={"region": "us"}))
    request = PlacementRequest("team-a", parse_selector("region=ue"))
    assert "did you mean region=eu?" in reasons.why_none(index.obstacles(request), index, request, {}).message
    index.remove("east")
    assert "did you mean" not in reasons.why_none(index.obstacles(request), index, request, {}).message
    index.remove("west")
    assert (index.has_label("region"), list(index.label_values("region"))) == (False, [])


def test_of_thousands_of_values_few_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of Jobs may wait for what no worker has: what each costs does not grow with the workers."""
    compared: list[int] = []

    def count(word: str, known: list[str]) -> None:
        compared.append(len(known))

    monkeypatch.setattr(reasons, "nearest", count)
    index = index_of(*(Candidate(f"w{n:04}", labels={"name": f"w{n:04}"}) for n in range(1000)))
    asked = ",".join(f"w0{n}xx" for n in range(9))
    request = PlacementRequest("team-a", parse_selector(f"name in ({asked})"))
    reasons.why_none(index.obstacles(request), index, request, {})
    assert compared == [30, 30, 30]


def test_of_numbered_names_the_one_that_begins_alike_is_meant() -> None:
    index = index_of(*(Candidate(f"w{n:04}", labels={"name": f"w{n:04}"}) for n in range(1000)))
    request = PlacementRequest("team-a", parse_selector("name=w0917x"))
    message = reasons.why_none(index.obstacles(request), index, request, {}).message
    assert "(did you mean name=w0917?)" in message


def test_a_thousand_workers_are_counted_by_reason() -> None:
    """The first by name are named as far as 512 bytes go; the others are numbers of workers, never loads."""
    full = [Candidate(f"worker-{n:04}", capacity=0) for n in range(950)]
    away = [Candidate(f"worker-{n:04}", reachable=False) for n in range(950, 1000)]
    text = why(index_of(*full, *away))
    assert text.startswith("worker-0000: at capacity; worker-0001: at capacity; ")
    assert text.endswith("…and 983 more: 50 unreachable, 933 at capacity")
    assert 450 < len(text.encode()) <= 512


@pytest.mark.parametrize("count", [1, 2, 17, 18, 19, 20, 300])
@pytest.mark.parametrize("name", ["w", "worker-of-some-length", "x" * 250])
def test_no_text_is_longer_than_512_bytes(count: int, name: str) -> None:
    """However long names and answers are; and all workers are in it, by name or by number."""
    workers = [Candidate(f"{name}{n}", labels={"n": str(n % 5)}, cordoned=n % 3 == 0, capacity=0) for n in range(count)]
    index = index_of(*workers)
    details = {one.name: "ü\x1b[2J\n" * 1000 for one in workers}
    request = PlacementRequest("team-a", parse_selector("n!=4"), frozenset(one.name for one in workers[::2]))
    text = reasons.why_none(index.obstacles(request), index, request, details).text
    assert len(text.encode()) <= 512
    assert text.isprintable()
    named = sum(f"{one.name}: " in text for one in workers)
    rest = text.rpartition("…and ")[2].partition(" more: ")
    assert named + (int(rest[0]) if rest[1] else 0) == count
    assert len(reasons.why_there(index.obstacles(WISH), index, WISH, workers[-1].name).encode()) <= 512


def test_the_choice_is_explained_in_as_few_bytes() -> None:
    """The next best are named, those that could not take it follow with their reasons."""
    index = index_of(*(Candidate(name) for name in ("east", "west", "south")), Candidate("north", cordoned=True))
    assert reasons.why_there(index.obstacles(WISH), index, WISH, "east") == (
        "lowest load of the eligible workers (next: south, west); north: cordoned"
    )
    index = index_of(Candidate("east"), Candidate("north", cordoned=True))
    assert reasons.why_there(index.obstacles(WISH), index, WISH, "east") == "the only eligible worker; north: cordoned"
    index = index_of(*(Candidate(f"worker-{n:04}") for n in range(1000)))
    text = reasons.why_there(index.obstacles(WISH), index, WISH, "worker-0000")
    assert text.startswith("lowest load of the eligible workers (next: worker-0001, worker-0002, ")
    assert text.endswith(" more)")
    assert len(text.encode()) <= 512


def test_a_refusal_is_given_in_the_words_of_the_worker() -> None:
    """On one line, without control characters (D18)."""
    index = index_of(Candidate("east"))
    request = PlacementRequest("team-a", refused_by=frozenset({"east"}))
    assert why(index, request, east="quota\nexceeded") == "east: quota\\nexceeded"
    assert why(index, request) == "east: refused"
    assert reasons.of_each(index.obstacles(request), index, request, {"east": "quota"}) == {"east": "quota"}


def test_what_is_no_single_workers_is_told_beside_them() -> None:
    """``diff`` shows it before the Job is made: no worker at all, or a selector that is most likely misspelt."""
    none = index_of()
    assert reasons.of_each(none.obstacles(WISH), none, WISH, {}) == {"": "no worker is registered"}
    index, request = (
        index_of(Candidate("east", labels={"region": "eu"})),
        PlacementRequest("team-a", parse_selector("region=ue")),
    )
    assert reasons.of_each(index.obstacles(request), index, request, {}) == {
        "": "no worker has region=ue (did you mean region=eu?)",
        "east": "labels do not match worker-selector (region is eu)",
    }
