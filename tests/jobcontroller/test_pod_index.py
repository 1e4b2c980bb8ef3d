"""Which pods a sync looks at: open ones, not what is over and done with."""

from __future__ import annotations

import pytest
from cached import GENERATED, cached_job, cached_pod, owned_by

from mirror.batch.label_selectors import MISSING, LabelSelector, selector_of
from mirror.jobcontroller.pods import PodIndex
from mirror.jobcontroller.podview import CachedPod

JOB = cached_job()
OWNER = owned_by(JOB)
MINE = LabelSelector(((GENERATED, "job-1"),))
EVERY = selector_of({})
MY_LABELS = {GENERATED: "job-1"}


def names(pods: list[CachedPod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def index_of(*pods: CachedPod) -> PodIndex:
    index = PodIndex()
    for pod in pods:
        index.change(None, pod)
    return index


def test_a_pod_is_open_until_a_sync_has_seen_it_finished_and_stripped() -> None:
    """Both are needed; who merely finished still counts."""
    runs = cached_pod("runs", owner=OWNER)
    over = cached_pod("over", owner=OWNER, phase="Succeeded")
    done = cached_pod("done", owner=OWNER, phase="Succeeded", tracked=False)
    index = index_of(runs, over, done)
    assert names(index.open_of(JOB)) == ["runs", "over", "done"]
    index.settle(JOB, index.open_of(JOB))
    assert names(index.open_of(JOB)) == ["runs", "over"]


def test_only_failed_pods_are_kept_apart() -> None:
    """Y13-3: failure policies look at them."""
    pods = [cached_pod(phase, owner=OWNER, phase=phase, tracked=False) for phase in ("Succeeded", "Failed")]
    index = index_of(*pods)
    assert index.failed_of(JOB) == []
    index.settle(JOB, pods)
    assert names(index.failed_of(JOB)) == ["Failed"]
    assert index.open_of(JOB) == []


def test_a_settled_pod_stays_settled_while_nothing_of_interest_changes() -> None:
    """Nodes go on writing about pods that have ended."""
    old = cached_pod(owner=OWNER, phase="Failed", tracked=False)
    new = cached_pod(owner=OWNER, phase="Failed", tracked=False, version=2)
    index = index_of(old)
    index.settle(JOB, [old])
    index.change(old, new)
    assert index.open_of(JOB) == []
    assert index.failed_of(JOB) == [new]
    index.change(new, None)
    assert index.failed_of(JOB) == []


def test_a_settled_pod_that_is_relabelled_is_looked_at_again() -> None:
    """O2: it may have to be released."""
    old = cached_pod(owner=OWNER, phase="Failed", tracked=False)
    new = cached_pod(owner=OWNER, phase="Failed", tracked=False, version=2, labels={"app": "free"})
    index = index_of(old)
    index.settle(JOB, [old])
    index.change(old, new)
    assert index.open_of(JOB) == [new]


def test_what_a_sync_saw_is_not_settled_when_it_changed_meanwhile() -> None:
    """Only the very object that was seen."""
    old = cached_pod(owner=OWNER, phase="Failed", tracked=False)
    index = index_of(old)
    index.change(old, cached_pod(owner=OWNER, phase="Failed", tracked=False, version=2, labels={"app": "free"}))
    index.settle(JOB, [old])
    assert len(index.open_of(JOB)) == 1


@pytest.mark.parametrize(
    ("namespace", "changes"),
    [
        pytest.param("elsewhere", {}, id="another namespace"),
        pytest.param("default", {"name": "other"}, id="another name"),
        pytest.param("default", {"kind": "Other"}, id="another kind"),
        pytest.param("default", {"uid": "job-2"}, id="another uid"),
    ],
)
@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_a_pod_is_the_jobs_only_if_everything_of_its_owner_fits(
    namespace: str, changes: dict[str, str], phase: str
) -> None:
    """O1: who may write pods in some namespace could otherwise complete, fail or block any Job whose uid is known."""
    owner = owned_by(JOB, **changes)
    foreign = cached_pod(owner=owner, phase=phase, tracked=phase == "Running", namespace=namespace, labels=MY_LABELS)
    index = index_of(foreign)
    assert index.open_of(JOB) == []
    index.settle(JOB, [foreign])
    assert index.failed_of(JOB) == []


def test_orphans_are_found_by_a_selector_in_their_namespace() -> None:
    """By one of its labels first, or by a look at all when it names none."""
    bare = cached_pod("bare", labels={GENERATED: "job-1", "app": "x"})
    other = cached_pod("other", labels={GENERATED: "job-2"})
    owned = cached_pod("owned", owner=OWNER)
    index = index_of(bare, other, owned)
    assert names(index.orphans("default", MINE)) == ["bare"]
    assert names(index.orphans("default", EVERY)) == ["bare", "other"]
    assert names(index.orphans("elsewhere", EVERY)) == []
    assert names(index.orphans("default", MISSING)) == []
    both = selector_of(
        {"matchLabels": {GENERATED: "job-1"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
    )
    assert names(index.orphans("default", both)) == ["bare"]
    index.change(bare, cached_pod("bare", owner=OWNER, version=2))
    assert names(index.orphans("default", MINE)) == []
    assert names(index.open_of(JOB)) == ["owned", "bare"]


def test_tracked_pods_are_found_whoever_owns_them() -> None:
    """Q24: a scan by selector costs nothing for pods that are done."""
    foreign = cached_pod("foreign", owner=owned_by(JOB, kind="Other"), labels={GENERATED: "job-1"})
    done = cached_pod("done", owner=OWNER, phase="Succeeded", tracked=False)
    index = index_of(cached_pod("mine", owner=OWNER), foreign, done)
    assert names(index.tracked("default", MINE)) == ["mine", "foreign"]
    assert names(index.open_of(JOB)) == ["mine", "done"]


def test_nothing_is_left_when_all_pods_are_gone() -> None:
    """Empty dictionaries would pile up with each Job that ever was."""
    pods = [
        cached_pod("a", owner=OWNER),
        cached_pod("b"),
        cached_pod("c", owner=OWNER, phase="Failed", tracked=False),
        cached_pod("d", owner=OWNER, phase="Succeeded", tracked=False),
    ]
    index = index_of(*pods)
    index.settle(JOB, pods)
    for pod in pods:
        index.change(pod, None)
    left = [vars(value) if hasattr(value, "__dict__") else value for value in vars(index).values()]
    assert all(not any(one.values()) if isinstance(one, dict) else not one for one in left)
