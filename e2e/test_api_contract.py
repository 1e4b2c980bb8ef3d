"""The contract of the API: what a real kube-apiserver does in the cases of ``tests/contract``, ours does as well.

``python -m e2e.api_contract --server real|embedded [words]`` plays some of them by hand.
"""

from __future__ import annotations

from collections import Counter

import pytest

from e2e.api_contract import servers
from tests.contract.run import play
from tests.contract.suite import all_groups, chosen

FEWEST = 400


@pytest.mark.usefixtures("binaries")
async def test_a_real_server_does_what_the_contract_says() -> None:
    """Or the contract would be a story of ours."""
    await _played_well(servers.REAL)


async def test_the_embedded_server_does_what_the_contract_says() -> None:
    """It is trusted only as far as it is proved."""
    await _played_well(servers.EMBEDDED)


def test_the_contract_is_whole() -> None:
    """Every case has a name of its own, and there are as many as were asked for."""
    groups = all_groups()
    cases = [case for group in groups for case in group.cases]
    assert len(cases) >= FEWEST
    assert max(Counter(map(str, cases)).values()) == 1


async def _played_well(name: str) -> None:
    async with servers.start(name) as server:
        outcomes = await play(server, chosen())
    failed = sorted(str(one) for one in outcomes if one.problem)
    if failed:
        pytest.fail(
            "\n".join([f"{len(failed)} of {len(outcomes)} cases are not as they should be", *failed]), pytrace=False
        )
