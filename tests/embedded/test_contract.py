"""The contract of ``tests/contract`` on the embedded server without HTTP; ``e2e`` plays it on a real one too.

One test per group, in virtual time. Webhooks need connections, and are played there only.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from mirror.embedded.apiserver import build as apiserver
from mirror.embedded.apiserver.messages import AUTHENTICATED_GROUP, User
from mirror.embedded.clocks import LoopClock
from tests.contract.case import Group
from tests.contract.in_process import InProcess
from tests.contract.run import play
from tests.contract.server import Server
from tests.contract.suite import all_groups

pytestmark = pytest.mark.looptime
_OVER_HTTP_ONLY = ("webhooks", "webhook failures")


@pytest.mark.parametrize(
    "group", [one for one in all_groups() if one.name not in _OVER_HTTP_ONLY], ids=lambda group: group.name
)
async def test_the_embedded_server_does_what_a_real_one_does(group: Group) -> None:
    """Same requests, same answers."""
    server = apiserver.build(clock=LoopClock(datetime.now(UTC)), random=Random(5), authorization="RBAC")

    async def compact() -> None:
        server.storage.compact(server.storage.version)

    async def certified(user: str, groups: tuple[str, ...]) -> InProcess:
        return InProcess(server, User(user, (*groups, AUTHENTICATED_GROUP)))

    outcomes = await play(Server("in process", InProcess(server), compact, certified), group.cases)
    failed = sorted(str(one) for one in outcomes if one.problem)
    if failed:
        pytest.fail("\n".join([f"{len(failed)} of {len(outcomes)} are not as they should be", *failed]), pytrace=False)
