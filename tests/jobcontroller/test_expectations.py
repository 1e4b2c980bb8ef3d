"""What was asked for and not seen yet (K4, Q1–Q3, Q20, Q21), and whether the caches are as new as our writes (Y1)."""

from __future__ import annotations

import pytest

from mirror.jobcontroller.consistency import CacheWaiters, Written
from mirror.jobcontroller.memory import Expectations, Memories
from mirror.kube.resources import JOBS, PODS
from mirror.runtime.store import EVERYWHERE, Store


def test_what_nobody_asked_for_is_met() -> None:
    """Seeing it changes nothing."""
    expected = Expectations()
    expected.creation_seen()
    expected.deletion_seen()
    assert expected.are_met(0.0)
    assert (expected.creations, expected.deletions) == (0, 0)


@pytest.mark.parametrize("kind", ["creation", "deletion"])
def test_met_once_all_was_seen(kind: str) -> None:
    """And not before."""
    expected = Expectations()
    getattr(expected, f"expect_{kind}s")(2, 10.0)
    seen = getattr(expected, f"{kind}_seen")
    seen()
    assert not expected.are_met(11.0)
    seen()
    assert expected.are_met(11.0)


def test_more_than_was_asked_for_is_met_and_forgotten_with_the_next_request() -> None:
    """Q21: below zero; asking anew does not start there."""
    expected = Expectations()
    expected.expect_deletions(1, 0.0)
    for _ in range(3):
        expected.deletion_seen()
    assert expected.are_met(1.0)
    expected.expect_deletions(1, 2.0)
    assert not expected.are_met(3.0)


def test_after_five_minutes_nobody_waits_any_more() -> None:
    """K4."""
    expected = Expectations()
    expected.expect_creations(1, 10.0)
    assert not expected.are_met(310.0)
    assert expected.are_met(310.1)
    assert (expected.seconds_left(110.0), expected.seconds_left(310.1)) == (200.0, None)


def test_written_versions_are_waited_for_until_both_watches_have_shown_them() -> None:
    """Y1: Jobs first; then they are forgotten, so that a watch that begins anew at an older version is no obstacle."""
    jobs, pods, written = Store(), Store(), Written()
    written.wrote_job(5)
    written.wrote_pod(7)
    written.wrote_pod(6)
    assert written.behind("default", jobs, pods) is JOBS
    jobs.advance(EVERYWHERE, 5)
    assert written.behind("default", jobs, pods) is PODS
    pods.advance("default", 7)
    assert written.behind("default", jobs, pods) is None
    pods.restart("default", 3)
    assert written.behind("default", jobs, pods) is None


def test_another_namespaces_watch_proves_nothing() -> None:
    """Each watch of several shows its own namespace only."""
    jobs, pods, written = Store(), Store(), Written()
    written.wrote_job(5)
    jobs.advance("other", 9)
    assert written.behind("default", jobs, pods) is JOBS


def test_latecomers_are_wanted_when_their_watch_is_far_enough() -> None:
    """Of the other kind nothing is learned."""
    wanted: list[str] = []
    late = CacheWaiters(wanted.append)
    late.wait("a", PODS, 5)
    late.wait("b", PODS, 6)
    late.on_seen(JOBS, 9)
    assert wanted == []
    late.on_seen(PODS, 5)
    late.on_seen(PODS, 5)
    assert wanted == ["a"]


def test_who_waits_anew_waits_for_the_newer_version() -> None:
    """It has written again meanwhile."""
    wanted: list[str] = []
    late = CacheWaiters(wanted.append)
    for version in (5, 7, 7):
        late.wait("a", PODS, version)
    late.wait("b", PODS, 6)
    late.on_seen(PODS, 6)
    assert wanted == ["b"]
    late.on_seen(PODS, 9)
    late.on_seen(PODS, 10)
    assert wanted == ["b", "a"]


def test_a_forgotten_memory_goes_on_for_who_holds_it_and_comes_back_empty() -> None:
    """A sync under way must not bring the memory of a gone Job back."""
    memories = Memories()
    held = memories.of("u")
    held.removing.add("pod")
    memories.forget("u")
    held.is_finished = True
    assert memories.find("u") is None
    assert memories.of("u").removing == set()
