"""The judge of fault campaigns: a good history passes, and each invariant has a history that breaks it and is found.

Histories are written of Jobs, and each is judged as one of every kind of the campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from e2e.chaos import history
from e2e.chaos.__main__ import main
from e2e.chaos.history import Complaint, Fault, Json, Opening, Phase, Record, Request, Restored, Version
from e2e.chaos.judging import RULES, judge, summary
from e2e.chaos.kinds import DRILL, JOB, KINDS, MirroredKind
from mirror.model import names

MINE, ORIGIN, USER = "e2e.jobmirror.io/x", "e2e-x", "system:serviceaccount:jobmirror-x:jobmirror"
KEY = "team-a/train"
BASE = 1_000_000.0


class Book:
    """A history that is written by hand, at times counted from its beginning."""

    def __init__(self, *, on_loss: str = "Wait", kind: MirroredKind = JOB) -> None:
        self._on_loss = on_loss
        self._kind = kind
        self.records: list[Record] = []

    def put(self, at: float, cluster: str, body: Json | None, *, key: str = KEY, resource: str = "jobs") -> None:
        """An object is stored, or deleted."""
        self.records.append(Version(BASE + at, cluster, resource, int(1000 * at), key, body))

    def add(self, *records: Record) -> None:
        """Records of other kinds."""
        self.records += records

    def whole(self) -> list[Record]:
        """With its opening and, unless the history has its own, the end of a campaign; Jobs are of the book's kind."""
        opening = Opening(BASE, 7, ORIGIN, MINE, ["east", "west"], [USER], self._on_loss)
        has_phases = any(isinstance(one, Phase) for one in self.records)
        phases = () if has_phases else (phase(90, "settled"), phase(99, "emptied"))
        return [opening, *(of_kind(self._kind, one) for one in sorted(self.records, key=lambda one: one.at)), *phases]

    def beside(self, other: Book) -> Book:
        """The history of both together."""
        both = Book()
        both.add(*(one for book in (self, other) for one in book.whole()[1:] if not isinstance(one, Phase)))
        return both


def of_kind(kind: MirroredKind, record: Record) -> Record:
    """A record of Jobs as one of this kind."""
    match record:
        case Request(resource="jobs"):
            return msgspec.structs.replace(record, resource=kind.name)
        case Version(resource="jobs", body=None):
            return msgspec.structs.replace(record, resource=kind.name)
        case Version(resource="jobs", body=body) if body is not None and kind is not JOB:
            ends = dict(zip(JOB.ends, kind.ends, strict=True))
            said = [{**one, "type": ends.get(one["type"], one["type"])} for one in body["status"].get("conditions", ())]
            spec = policy = kind.suspension(bool(body["spec"].get("suspend")))["spec"]
            for name in kind.policy:
                policy = policy[name]
            policy |= {"managedBy": body["spec"]["managedBy"]} if "managedBy" in body["spec"] else {}
            now = {**body, "spec": spec, "status": {**body["status"], "conditions": said}}
            return msgspec.structs.replace(record, resource=kind.name, body=now)
    return record


def phase(at: float, name: str) -> Phase:
    """A step of the campaign."""
    return Phase(BASE + at, name)


def true(kind: str, reason: str = "", message: str = "") -> Json:
    """A condition."""
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def source(*conditions: Json, uid: str = "s", annotations: Json | None = None, **status: object) -> Json:
    """A source with these conditions."""
    return {
        "metadata": {"name": "train", "namespace": "team-a", "uid": uid, "annotations": annotations or {}},
        "spec": {"managedBy": MINE},
        "status": {**status, "conditions": list(conditions)},
    }


def mirror(*conditions: Json, uid: str, of: str = "s", suspend: bool = False) -> Json:
    """A copy with these conditions."""
    labels = {names.ORIGIN: ORIGIN, names.SOURCE_UID: of}
    metadata = {"name": "train", "namespace": "team-a", "uid": uid, "labels": labels}
    return {"metadata": metadata, "spec": {"suspend": suspend}, "status": {"conditions": list(conditions)}}


def stranger(uid: str = "f") -> Json:
    """Somebody else's Job."""
    return {"metadata": {"name": "train", "namespace": "team-a", "uid": uid}, "spec": {}, "status": {}}


def on(worker: str) -> Json:
    """It is recorded there."""
    return true(names.PLACED, "Placed", worker)


COMPLETE = true("Complete", "CompletionsReached")
FAILED = true("Failed", "BackoffLimitExceeded")


def wrote(at: float, verb: str, cluster: str, *, key: str = KEY, code: int = 200) -> Request:
    """A manager's request."""
    return Request(BASE + at + 0.1, BASE + at, cluster, USER, verb, "", key, code)


def good_life(book: Book, *, until: float = 40) -> None:
    """It is created, placed on east, runs there and ends, and is deleted after the campaign."""
    book.put(1, "management", source())
    book.put(2, "management", source(on("east")))
    book.put(2.1, "east", mirror(uid="m"))
    book.put(3, "management", source(on("east"), active=1))
    book.put(until, "east", mirror(COMPLETE, uid="m"))
    book.put(until + 0.1, "management", source(on("east"), COMPLETE, succeeded=1, completionTime="t"))
    book.put(95, "management", None)
    book.put(96, "east", None)


def good_end(book: Book) -> None:
    """It ends well on east, and is deleted after the campaign."""
    book.put(40, "east", mirror(COMPLETE, uid="m"))
    book.put(40.1, "management", source(on("east"), COMPLETE))
    book.put(95, "management", None)
    book.put(96, "east", None)


def moved_source() -> Json:
    """The source of ``moved`` at its end, when its user has taken its policy away."""
    move = true(names.MOVED, "WorkerLost", "move 1, from east to west; left behind: east (uid m)")
    return source(on("west"), move, COMPLETE)


def moved(book: Book, *, counted: bool = True, annotations: Json | None = None, promise: str = "") -> None:
    """It is moved from east to west, while its copy on east runs on; that is deleted later."""
    said = annotations or {}
    left = f"; left behind: east (uid m{promise})" if counted else ""
    move = true(names.MOVED, "WorkerLost", f"move 1, from east to west{left}")
    book.put(1, "management", source(annotations=said))
    book.put(2, "management", source(on("east"), annotations=said))
    book.put(2.1, "east", mirror(uid="m"))
    book.put(20, "management", source(on("west"), move, annotations=said))
    book.put(20.1, "west", mirror(uid="n"))
    book.put(40, "east", None)
    book.put(50, "west", mirror(COMPLETE, uid="n"))
    book.put(50.1, "management", source(on("west"), move, COMPLETE, annotations=said))
    book.put(95, "management", None)
    book.put(96, "west", None)


def broken(book: Book) -> set[str]:
    """The rules that the judge finds broken."""
    return {breach.rule for breach in judge(book.whole())}


def test_a_good_history_passes() -> None:
    """Nothing is wrong with a Job that runs once and ends."""
    book = Book()
    good_life(book)
    assert judge(book.whole()) == []
    assert summary(book.whole()) == (
        "seed 7: 1 jobs (1 ended) with 1 copies, 0 drills (0 ended) with 0 copies, "
        "0 writes by managers, 0 faults, 0 restored clusters"
    )


def test_kinds_that_share_a_name_have_lives_of_their_own() -> None:
    """D24: the copy of one is none of the other; nothing is wrong with a history of both."""
    books = Book(), Book(kind=DRILL)
    for book in books:
        good_life(book)
    whole = books[0].beside(books[1]).whole()
    assert judge(whole) == []
    assert summary(whole).startswith("seed 7: 1 jobs (1 ended) with 1 copies, 1 drills (1 ended) with 1 copies, ")


@pytest.mark.parametrize("policy", ["annotation", "setting"])
def test_an_overlap_is_allowed_under_reschedule_if_it_is_counted(policy: str) -> None:
    """D14: the user, or the operator, has asked for it; the source names the copy that may still run."""
    book = Book(on_loss="Reschedule" if policy == "setting" else "Wait")
    moved(book, annotations={names.ON_WORKER_LOSS: "Reschedule"} if policy == "annotation" else None)
    assert broken(book) == set()


def test_an_overlap_under_fence_is_allowed_only_where_the_worker_was_hindered() -> None:
    """D14: a lease needs the worker's controller manager; without it, that is where a fence ends."""
    annotations = {names.ON_WORKER_LOSS: "Fence"}
    book = Book()
    moved(book, annotations=annotations, promise=", fenced")
    assert broken(book) == {"one-copy"}
    for target in ("east", "west"):
        book = Book()
        book.add(
            Fault(BASE + 5, "freeze kube-controller-manager", target),
            Fault(BASE + 35, "freeze kube-controller-manager", target, True),
        )
        moved(book, annotations=annotations, promise=", fenced")
        assert broken(book) == (set() if target == "east" else {"one-copy"})


def test_what_a_restored_worker_brings_back_is_no_breach() -> None:
    """A copy that is back from the dead goes as an orphan; until then it runs."""
    book = Book()
    good_life(book, until=10)
    book.add(Restored(BASE + 50, "east", BASE + 5))
    assert broken(book) == set()
    book = Book()
    moved(book, counted=False)
    book.add(Restored(BASE + 19, "east", BASE + 5))
    assert broken(book) == set()


def test_what_a_frozen_etcd_tells_late_is_no_breach() -> None:
    """Its record was stored, and its answer sent, before it froze; without that, the copy was there first."""
    for is_frozen in (True, False):
        book = Book()
        book.put(1, "management", source())
        book.put(2.1, "east", mirror(uid="m"))
        book.put(12.1, "management", source(on("east")))
        good_end(book)
        if is_frozen:
            book.add(Fault(BASE + 2, "freeze etcd", "management"), Fault(BASE + 12, "freeze etcd", "management", True))
        assert broken(book) == (set() if is_frozen else {"recorded-first"})


def test_the_policy_that_counts_is_the_one_at_the_move() -> None:
    """D14: it is read at the decision; what its user says later changes nothing about that."""
    book = Book()
    moved(book, annotations={names.ON_WORKER_LOSS: "Reschedule"})
    for number, one in enumerate(book.records):
        if isinstance(one, Version) and one.at >= BASE + 50 and one.body and one.cluster == "management":
            book.records[number] = Version(one.at, one.cluster, one.resource, one.revision, one.key, moved_source())
    assert broken(book) == set()


def test_who_asked_for_another_copy_may_have_one() -> None:
    """D11, D14: ``Recreate`` after the copy was deleted; a fenced copy that its lease has ended is made anew."""
    for said, marked in ((names.ON_MIRROR_LOSS, ""), (names.ON_WORKER_LOSS, names.FENCE)):
        book, annotations = Book(), {said: "Recreate" if not marked else "Fence"}
        ended = mirror(true("Failed", "DeadlineExceeded"), uid="m") if marked else mirror(uid="m")
        ended["metadata"]["annotations"] = {marked: ""} if marked else {}
        book.put(1, "management", source(on("east"), annotations=annotations))
        book.put(2, "east", mirror(uid="m"))
        book.put(3, "east", ended)
        book.put(5, "east", None)
        book.put(6, "east", mirror(uid="n"))
        book.put(9, "east", mirror(COMPLETE, uid="n"))
        book.put(9.1, "management", source(on("east"), COMPLETE, annotations=annotations))
        book.put(95, "management", None)
        book.put(96, "east", None)
        assert broken(book) == set()


def overlap(book: Book) -> None:
    moved(book)


def uncounted_overlap(book: Book) -> None:
    moved(book, counted=False, annotations={names.ON_WORKER_LOSS: "Reschedule"})


def another_copy_for_no_reason(book: Book) -> None:
    good_life(book)
    book.put(42, "east", None)
    book.put(43, "east", mirror(COMPLETE, uid="n"))
    book.put(97, "east", None)


def copy_before_its_record(book: Book) -> None:
    book.put(1, "management", source())
    book.put(2, "east", mirror(uid="m"))
    book.put(5, "management", source(on("east")))
    book.put(9, "east", mirror(COMPLETE, uid="m"))
    book.put(9.1, "management", source(on("east"), COMPLETE))
    book.put(96, "management", None)
    book.put(97, "east", None)


def stranger_deleted(book: Book) -> None:
    book.put(1, "east", stranger())
    book.add(wrote(5, "delete", "east"))
    book.put(5.1, "east", None)


def unmanaged_written(book: Book) -> None:
    book.put(1, "management", stranger())
    book.add(wrote(5, "update", "management"))


def source_deleted(book: Book) -> None:
    good_life(book)
    book.add(wrote(94.9, "delete", "management"))


def loser_is_left(book: Book) -> None:
    good_life(book)
    book.put(50, "west", mirror(uid="n", suspend=True))
    book.put(94, "west", None)


def mirror_outlives_its_source(book: Book) -> None:
    good_life(book)
    book.records.pop()


def orphan_is_left(book: Book) -> None:
    good_life(book)
    book.put(70, "management", None)


def copy_is_recorded_elsewhere(book: Book) -> None:
    good_life(book)
    book.put(70, "management", source(on("west"), COMPLETE, succeeded=1, completionTime="t"))


def end_is_taken_back(book: Book) -> None:
    good_life(book)
    book.put(60, "management", source(on("east"), succeeded=1, completionTime="t"))
    book.put(70, "management", source(on("east"), COMPLETE, succeeded=1, completionTime="t"))


def counter_goes_back(book: Book) -> None:
    good_life(book)
    book.put(60, "management", source(on("east"), COMPLETE, completionTime="t"))


def index_is_lost(book: Book) -> None:
    book.put(0.1, "management", source(completedIndexes="0-2,5"))
    book.put(0.2, "management", source(completedIndexes="0-1,5"))
    good_life(book)


def end_that_no_copy_had(book: Book) -> None:
    good_life(book)
    book.records = [
        one for one in book.records if not (isinstance(one, Version) and one.body == mirror(COMPLETE, uid="m"))
    ]


def lost_though_it_is_there(book: Book) -> None:
    book.put(1, "management", source(on("east")))
    book.put(2, "east", mirror(uid="m"))
    book.put(3, "management", source(on("east"), true("Failed", "MirrorLost")))
    book.put(95, "management", None)
    book.put(96, "east", None)


def lease_as_verdict(book: Book) -> None:
    late = true("Failed", "DeadlineExceeded")
    book.put(1, "management", source(on("east")))
    book.put(2, "east", mirror(uid="m"))
    book.put(3, "east", mirror(late, uid="m"))
    book.put(3.1, "management", source(on("east"), late))
    book.put(95, "management", None)
    book.put(96, "east", None)


def too_many(book: Book) -> None:
    secret = {"metadata": {"uid": "k", "annotations": {names.CAPACITY: "1"}}}
    book.put(0.5, "management", secret, key="jobmirror-x/east", resource="secrets")
    good_life(book)
    book.put(10, "management", source(on("east"), uid="t"), key="team-a/second")
    book.put(11, "management", None, key="team-a/second")


def traceback(book: Book) -> None:
    good_life(book)
    book.add(Complaint(BASE + 9, "manager-0", "Traceback (most recent call last):"))


def never_ends(book: Book) -> None:
    book.put(1, "management", source(on("east")))
    book.put(2, "east", mirror(uid="m"))
    book.put(95, "management", None)
    book.put(96, "east", None)


def broken_off(book: Book) -> None:
    book.put(1, "management", source(on("east")))
    book.put(2, "east", mirror(uid="m"))
    book.add(phase(80, "healed"))


PLANTED: dict[Callable[[Book], None], set[str]] = {
    overlap: {"one-copy"},
    uncounted_overlap: {"one-copy"},
    another_copy_for_no_reason: {"second-copy"},
    copy_before_its_record: {"recorded-first"},
    stranger_deleted: {"foreign"},
    unmanaged_written: {"foreign"},
    source_deleted: {"foreign"},
    loser_is_left: {"second-copy", "recorded-first", "left-behind"},
    mirror_outlives_its_source: {"left-behind"},
    orphan_is_left: {"left-behind"},
    copy_is_recorded_elsewhere: {"left-behind"},
    end_is_taken_back: {"never-back"},
    counter_goes_back: {"never-back"},
    index_is_lost: {"never-back"},
    end_that_no_copy_had: {"true-end"},
    lost_though_it_is_there: {"true-end"},
    lease_as_verdict: {"lease"},
    too_many: {"capacity"},
    traceback: {"log"},
    never_ends: {"ended"},
    broken_off: {"ended"},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_broken_invariant_is_found(plant: Callable[[Book], None], kind: MirroredKind) -> None:
    """Each planted history breaks the rules that are named for it, and no other, whatever its kind is."""
    book = Book(kind=kind)
    plant(book)
    assert broken(book) == PLANTED[plant]


def end_of_the_other_kind(job: Book, drill: Book) -> None:
    """Both kinds' mirrors are in one store: the Drill ends as the Job of its name."""
    good_life(job)
    drill.put(1, "management", source(uid="d"))
    drill.put(2, "management", source(on("east"), uid="d"))
    drill.put(2.1, "east", mirror(uid="n", of="d"))
    drill.put(40.1, "management", source(on("east"), COMPLETE, uid="d"))
    drill.put(95, "management", None)
    drill.put(96, "east", None)


def copy_of_the_other_kind(job: Book, drill: Book) -> None:
    """Both kinds' sources are in one store: what is made for the Drill is a Job, which runs and is seen to end."""
    drill.put(1, "management", source(uid="d"))
    drill.put(2, "management", source(on("east"), uid="d"))
    job.put(2.1, "east", mirror(uid="m", of="d"))
    job.put(40, "east", mirror(COMPLETE, uid="m", of="d"))
    drill.put(40.1, "management", source(on("east"), COMPLETE, uid="d"))
    drill.put(95, "management", None)
    job.put(96, "east", None)


def stranger_of_the_other_kind(job: Book, drill: Book) -> None:
    """The Drill is deleted, and with its copy there the Job of its name, which is somebody else's."""
    good_life(drill)
    job.put(3, "east", stranger())
    job.add(wrote(95.5, "delete", "east"))
    drill.add(wrote(95.5, "delete", "east"))
    job.put(95.6, "east", None)


def record_of_the_other_kind(job: Book, drill: Book) -> None:
    """Where the Job is counts for the Drill."""
    good_life(job)
    drill.put(1, "management", source(uid="d"))
    drill.put(2.1, "west", mirror(uid="n", of="d"))
    drill.put(3, "management", source(on("east"), uid="d"))
    drill.put(5, "west", None)
    drill.put(95, "management", None)


def place_of_the_other_kind(job: Book, drill: Book) -> None:
    """The Drill takes the place that the Job of its name has: they are counted as one."""
    job.put(
        0.5,
        "management",
        {"metadata": {"uid": "k", "annotations": {names.CAPACITY: "1"}}},
        key="x/east",
        resource="secrets",
    )
    good_life(job)
    drill.put(10, "management", source(on("east"), uid="d"))
    drill.put(11, "management", None)


OF_KINDS: dict[Callable[[Book, Book], None], set[str]] = {
    end_of_the_other_kind: {"true-end"},
    copy_of_the_other_kind: {"recorded-first", "true-end", "left-behind"},
    stranger_of_the_other_kind: {"foreign"},
    record_of_the_other_kind: {"recorded-first", "ended"},
    place_of_the_other_kind: {"capacity"},
}


@pytest.mark.parametrize("plant", OF_KINDS, ids=lambda plant: plant.__name__)
def test_a_key_whose_kind_is_ignored_is_found(plant: Callable[[Book, Book], None]) -> None:
    """D24: what a manager would do for which two objects of one name are one, whichever of them it takes for it."""
    job, drill = Book(), Book(kind=DRILL)
    plant(job, drill)
    assert broken(job.beside(drill)) == OF_KINDS[plant]


def test_each_rule_has_a_history_that_breaks_it() -> None:
    """A rule that nothing breaks would prove nothing."""
    assert set().union(*PLANTED.values()) == set(RULES)


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Another run judges it again; the line that a killed writer left unfinished is no reason to refuse it."""
    book = Book()
    moved(book)
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(map(history.encode, book.whole())) + b'{"type":"phase","at":1')
    assert history.read(path) == book.whole()
    assert judge(history.read(path)) == judge(book.whole())


def test_a_stored_history_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what is broken, by its exit code, too."""
    for plant, code, said in ((good_life, 0, "0 broken invariants"), (overlap, 1, "one-copy at ")):
        book = Book()
        plant(book)
        path = tmp_path / "history.jsonl"
        path.write_bytes(b"".join(map(history.encode, book.whole())))
        assert main(["judge", str(path)]) == code
        assert said in capsys.readouterr().out
    assert main(["judge", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "the first line is not the opening"),
        (b'{"type":"phase","at":1,"name":"settled"}\n', "the first line is not the opening"),
        (b"no json\n", "line 1"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, text: bytes, said: str) -> None:
    """The error names the line."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(text)
    with pytest.raises(history.BadHistory, match=said):
        history.read(path)
