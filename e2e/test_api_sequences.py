"""Random sequences of requests: a real API server and the embedded one say the same to each, and tell the same events.

``python -m e2e.api_sequences --seed N --count N --shrink`` looks further. What it finds becomes a contract case.
"""

from __future__ import annotations

import asyncio

import pytest

from e2e.api_sequences.requests import History, history, references
from e2e.api_sequences.run import pair
from e2e.api_sequences.shrink import Shrinking
from e2e.api_sequences.verdicts import compare

SEED = 5
COUNT = 400
PATHS = 1500
_SHOWN = 3


@pytest.mark.usefixtures("binaries")
async def test_a_real_server_and_the_embedded_one_say_the_same() -> None:
    """Codes, reasons, causes, objects with their managers, warnings, and the events of watches."""
    async with pair() as both:
        report = await both.run(seed=SEED, count=COUNT)
        print(report)
        shown = await asyncio.gather(*(Shrinking(both, one).run() for one in report.differences[:_SHOWN]))
    if report.differences:
        pytest.fail("\n\n".join([f"{len(report.differences)} sequences differ", *map(str, shown)]), pytrace=False)
    # Sequences in which everything is refused would prove little.
    assert report.accepted > report.requests / 2


@pytest.mark.usefixtures("binaries")
async def test_odd_paths_let_nobody_through_whom_a_real_server_refuses() -> None:
    """Any path, method, query and identity, for users of few rights; refusals have the same words."""
    async with pair() as both:
        report = await compare(both, seed=SEED, count=PATHS)
        print(report)
    differences = [f"{asked}\n  theirs: {real}\n  ours:   {ours}" for asked, real, ours in report.differences]
    if differences:
        pytest.fail("\n\n".join([f"{len(differences)} requests differ", *differences[:_SHOWN]]), pytrace=False)
    # Requests that are all refused, or all allowed, would prove little.
    assert report.answers["403"] > PATHS / 4
    assert report.answers["200"] > PATHS / 100


def test_a_history_is_that_of_its_seed_and_number() -> None:
    """Or what was found could not be found again."""
    assert [history(1, number) for number in range(50)] == [history(1, number) for number in reversed(range(50))][::-1]
    assert history(1, 2) != history(2, 2)


def test_steps_refer_to_earlier_ones_only() -> None:
    """Of 300 histories."""
    for number in range(300):
        for position, step in enumerate(history(3, number).steps):
            assert all(one < position for one in references(step)), (number, position)


def test_a_step_goes_unless_it_is_needed() -> None:
    """References move with what they refer to."""
    one = History(0, ({"ask": "A"}, {"ask": "B"}, {"ask": "C $(1.x)"}))
    assert one.without(1) is None
    shorter = one.without(0)
    assert shorter is not None
    assert shorter.steps == ({"ask": "B"}, {"ask": "C $(0.x)"})
