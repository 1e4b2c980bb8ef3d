"""Whether pods that have failed keep a mirror from its work (D22)."""

from __future__ import annotations

import pytest

from mirror.controllers.observing_pods import failures_before, is_stalled
from mirror.kinds.base import Progress
from mirror.model.reasons import Reason


@pytest.mark.parametrize(
    ("succeeded", "failed", "known", "shown", "found"),
    [
        pytest.param(0, 7, None, "", None, id="nothing has succeeded"),
        pytest.param(7, 0, None, "", None, id="nothing has failed"),
        pytest.param(1, 1, None, "", (1, 0), id="the first failure is news"),
        pytest.param(1, 2, (1, 0), "", (1, 0), id="another one"),
        pytest.param(2, 2, (1, 0), "", (2, 2), id="a success"),
        pytest.param(2, 3, (1, 0), "", (2, 3), id="a success, and a failure nobody knows when"),
        pytest.param(9, 40, None, "", (9, 39), id="seen for the first time after a restart"),
        pytest.param(9, 40, None, Reason.OOM_KILLED, (9, 38), id="and told of before"),
        pytest.param(9, 40, None, Reason.WORKER_LOST, (9, 39), id="and something else was told"),
        pytest.param(1, 1, None, Reason.OOM_KILLED, (1, 0), id="never below nothing"),
        pytest.param(1, 1, (1, 5), "", (1, 1), id="it counts anew elsewhere"),
    ],
)
def test_how_many_had_failed_at_the_last_success(
    succeeded: int, failed: int, known: tuple[int, int] | None, shown: str, found: tuple[int, int] | None
) -> None:
    assert failures_before(Progress(succeeded=succeeded, failed=failed), known, shown) == found


@pytest.mark.parametrize(
    ("succeeded", "failed", "before", "has_unready", "expected"),
    [
        pytest.param(0, 1, None, False, False, id="one may fail"),
        pytest.param(0, 1, None, True, True, id="and the next one is not ready"),
        pytest.param(0, 2, None, False, True, id="two have"),
        pytest.param(3, 0, None, True, False, id="nothing has failed"),
        pytest.param(3, 5, (3, 4), True, False, id="one since the last success"),
        pytest.param(3, 6, (3, 4), False, True, id="two since then"),
    ],
)
def test_two_failures_without_a_success_are_a_trouble(
    succeeded: int, failed: int, before: tuple[int, int] | None, has_unready: bool, expected: bool
) -> None:
    assert is_stalled(Progress(succeeded=succeeded, failed=failed), before, has_unready=has_unready) == expected
