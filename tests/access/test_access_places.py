"""Places for reading logs: a share for each person and each namespace, so that no team takes all of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import cast

import pytest

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.access.logs import Logs
from mirror.access.mirrors import Mirrors
from mirror.access.reviews import Person


def person(name: str) -> Person:
    return Person(name=name)


def test_many_accounts_of_one_team_leave_places_for_others() -> None:
    """Whoever may create ServiceAccounts has as many as they like."""
    logs = Logs(cast(Mirrors, None), Bounds(streams=10, streams_of_one=2, streams_of_namespace=4))
    with ExitStack() as reading:
        for number in range(4):
            reading.enter_context(logs.counted(person(f"robot-{number}"), "team-a"))
        with pytest.raises(StatusError, match="4 logs of namespace team-a are read already") as refused:
            reading.enter_context(logs.counted(person("robot-9"), "team-a"))
        assert refused.value.code == 429
        reading.enter_context(logs.counted(person("ann"), "team-b"))
    with logs.counted(person("robot-9"), "team-a"):
        pass  # what has ended leaves its place
