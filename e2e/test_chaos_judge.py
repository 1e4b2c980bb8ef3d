"""The judge of fault campaigns: good histories pass, and each invariant has histories that break it and are found.

The histories are in ``chaos/planted``, one room for each family of rules. They are written of Jobs, and each is judged
as one of every kind of the campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.chaos import history
from e2e.chaos.__main__ import main
from e2e.chaos.counting import summary
from e2e.chaos.eras import OUTLASTED, UNMANAGED
from e2e.chaos.history import EraBegun, Fault, Restored
from e2e.chaos.judging import RULES, judge
from e2e.chaos.kinds import DRILL, KINDS, MirroredKind
from e2e.chaos.planted import (
    copies,
    counts,
    deletions,
    ends,
    kinds,
    left,
    losers,
    moves,
    operators,
    pods,
    sizes,
    statuses,
    turns,
)
from e2e.chaos.planted.writing import BASE, Draft, good_life, moved, wrote
from e2e.chaos.story import tell

Plant = Callable[[Draft], None]
ROOMS = (copies, deletions, ends, left, losers, operators, statuses, turns)
GOOD: tuple[Plant, ...] = tuple(plant for room in ROOMS for plant in getattr(room, "GOOD", ()))
ROOMS_OF_JOBS = (counts, deletions, ends, left, moves, operators, pods, sizes)
GOOD_OF_JOBS: tuple[Plant, ...] = tuple(plant for room in ROOMS_OF_JOBS for plant in room.GOOD_OF_JOBS)
PLANTED: dict[Plant, set[str]] = {plant: broken for room in ROOMS for plant, broken in room.PLANTED.items()}
PLANTED_OF_JOBS: dict[Plant, set[str]] = {
    plant: broken
    for room in (counts, ends, left, moves, operators, pods, sizes)
    for plant, broken in room.PLANTED_OF_JOBS.items()
}


def named(plant: Callable[..., None]) -> str:
    """What a history is about."""
    return plant.__name__


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("plant", GOOD, ids=named)
def test_a_good_history_passes(plant: Plant, kind: MirroredKind) -> None:
    """Nothing is wrong with it, whatever its kind is."""
    draft = Draft(kind=kind)
    plant(draft)
    assert judge(draft.whole()) == []


@pytest.mark.parametrize("plant", GOOD_OF_JOBS, ids=named)
def test_a_good_history_of_what_only_jobs_have_passes(plant: Plant) -> None:
    """Deadlines, completions, and what their controller says before an end."""
    draft = Draft()
    plant(draft)
    assert judge(draft.whole()) == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("plant", PLANTED, ids=named)
def test_a_broken_invariant_is_found(plant: Plant, kind: MirroredKind) -> None:
    """Each planted history breaks the rules that are named for it, and no other, whatever its kind is."""
    draft = Draft(kind=kind)
    plant(draft)
    assert draft.broken() == PLANTED[plant]


@pytest.mark.parametrize("plant", PLANTED_OF_JOBS, ids=named)
def test_a_broken_invariant_of_what_only_jobs_have_is_found(plant: Plant) -> None:
    """Deadlines, and progress that goes along."""
    draft = Draft()
    plant(draft)
    assert draft.broken() == PLANTED_OF_JOBS[plant]


def test_only_jobs_leave_a_lost_worker() -> None:
    """D14: other kinds wait for it."""
    draft = Draft(kind=DRILL)
    moves.moved_from_a_lost_worker(draft)
    assert draft.broken() == {"moves"}


@pytest.mark.parametrize("plant", kinds.PLANTED, ids=named)
def test_a_key_whose_kind_is_ignored_is_found(plant: Callable[[Draft, Draft], None]) -> None:
    """D24: what a manager would do for which two objects of one name are one, whichever of them it takes for it."""
    job, drill = Draft(), Draft(kind=DRILL)
    plant(job, drill)
    assert job.beside(drill).broken() == kinds.PLANTED[plant]


def test_kinds_that_share_a_name_have_lives_of_their_own() -> None:
    """D24: the copy of one is none of the other; nothing is wrong with a history of both."""
    drafts = Draft(), Draft(kind=DRILL)
    for draft in drafts:
        good_life(draft)
    whole = drafts[0].beside(drafts[1]).whole()
    assert judge(whole) == []
    assert summary(whole).startswith("seed 7: 1 jobs (1 ended) with 1 copies, 1 drills (1 ended) with 1 copies\n")


def test_each_rule_has_a_history_that_breaks_it() -> None:
    """A rule that nothing breaks would prove nothing."""
    assert set().union(*PLANTED.values(), *PLANTED_OF_JOBS.values()) == set(RULES)


def test_each_rule_has_something_to_judge_where_all_is_well() -> None:
    """One that looks at nothing finds nothing wrong; lines of the log are there only if they are wrong."""
    seen: set[str] = set()
    for plant in (*GOOD, *GOOD_OF_JOBS):
        draft = Draft()
        plant(draft)
        story = tell(draft.whole())
        seen |= {name for name, rule in RULES.items() if any(True for _ in rule(story))}
    assert seen == set(RULES) - {"log"}


def test_a_summary_counts_what_was_broken_and_what_came_of_it() -> None:
    """Kills, freezes, moves by their reason, ends by a lease, and how much each rule had to judge."""
    draft = Draft()
    moved(draft, annotations=copies.RESCHEDULE)
    draft.add(wrote(20.05, "create", "west"), Restored(BASE + 70, "east", BASE + 65))
    draft.add(EraBegun(BASE + 1, "storm"), EraBegun(BASE + 10, "struck loss", "east"))
    for number, name in enumerate(("kill", "kill etcd", "freeze", "full etcd", "cut", "kill kwok")):
        target = "manager-0" if " " not in name else "east"
        since = BASE + 20.5 + number
        draft.add(Fault(since, name, target), Fault(since + 0.5, name, target, True))
    assert summary(draft.whole()).splitlines() == [
        "seed 7: 1 jobs (1 ended) with 2 copies, 0 drills (0 ended) with 0 copies",
        "managers: 3 writes, 2 deletions on workers",
        "eras: storm 1, struck loss 1",
        "broken: 3 kills (1 of managers), 1 freezes (1 of managers), 2 other faults, 1 restored clusters",
        "moves: lost 1; with a manager's kill within 2 s: 1; leases that have ended a copy: 0",
        "operators: none; copies by their seed: none",
        "ends: CompletionsReached 1",
        "judged: one-copy 1, runs-on 1, second-copy 1, recorded-first 2, foreign 3, deleted-rightly 2, left-behind 2, "
        "never-back 4, true-end 1, counted 1, moves-count 1, ended 1",
        "nothing to judge: pods, breach-told, in-turn, named, moves, closed, drained, seed, lease, capacity, log",
    ]


@pytest.mark.parametrize(
    ("plant", "moves", "ends"),
    [
        (good_life, "none", 0),
        (copies.made_anew_after_its_lease, "fenced 1", 1),
        (ends.deadline_in_place_of_a_lease, "none", 0),
        (copies.drained_to_west, "drained 1", 0),
        (copies.late_create_where_it_was_before, "drained 2", 0),
        (deletions.replaced_copy_before_it_starts_over, "started over 1", 0),
        (deletions.left_copy_wins, "lost 1", 0),
        (moves.placed_anew_since_its_lease_has_ended, "expired 1", 1),
    ],
)
def test_a_summary_counts_moves_by_their_reason(plant: Plant, moves: str, ends: int) -> None:
    """D11, D14, D15: a source that counts one more was moved once, by what it says then."""
    draft = Draft()
    plant(draft)
    said = f"moves: {moves}; with a manager's kill within 2 s: 0; leases that have ended a copy: {ends}\n"
    assert said in summary(draft.whole())


def test_a_summary_says_that_no_lease_let_a_job_go() -> None:
    """D14: eras that outlast a lease have shown nothing of it, then; one that has left a lost worker is enough."""
    missing = "missing: nothing has left a lost worker because its lease was over, in 1 eras that outlast one"
    for plant, era, is_missing in (
        (moves.placed_anew_since_its_lease_has_ended, OUTLASTED, True),
        (moves.placed_anew_since_its_lease_has_ended, UNMANAGED, False),
        (left.fence_that_its_worker_could_not_keep, OUTLASTED, False),
    ):
        draft = Draft()
        plant(draft)
        draft.add(EraBegun(BASE + 0.2, era, "east"))
        assert (missing in summary(draft.whole()).splitlines()) is is_missing


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Another run judges it again; the line that a killed writer left unfinished is no reason to refuse it."""
    draft = Draft()
    moved(draft)
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(map(history.encode, draft.whole())) + b'{"type":"phase","at":1')
    assert history.read(path) == draft.whole()
    assert judge(history.read(path)) == judge(draft.whole())


def test_a_stored_history_is_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what is broken, by its exit code, too."""
    for plant, code, said in ((good_life, 0, "0 broken invariants"), (copies.overlap, 1, "one-copy at ")):
        draft = Draft()
        plant(draft)
        path = tmp_path / "history.jsonl"
        path.write_bytes(b"".join(map(history.encode, draft.whole())))
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
