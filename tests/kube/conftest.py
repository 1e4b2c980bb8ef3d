"""Fixtures of this room."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from certificates import Authority
from wire import Clients


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    made = Clients()
    yield made
    await made.close()


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
