"""For all tests: what a test needs may be missing on a machine, and then it says what, or fails where it must run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

TOOLS = "MIRROR_REQUIRE_TOOLS"


@pytest.fixture(scope="session")
def do_without() -> Callable[..., NoReturn]:
    """Skips a test that lacks something, or fails it where ``MIRROR_REQUIRE_…=1`` says that it must run.

    The only place that may skip for a lack (``tests/documents/test_skips.py``).
    """

    def skip(reason: object, required_by: str = TOOLS) -> NoReturn:
        if os.environ.get(required_by) == "1":
            pytest.fail(f"{required_by}=1, but {reason}", pytrace=False)
        pytest.skip(str(reason))

    return skip


@pytest.fixture(scope="session")
def required_program(do_without: Callable[..., NoReturn]) -> Callable[..., Path]:
    """Finds a program of the system; those that not every Debian has are listed in ``.ci/packages``."""

    def find(name: str, search: Callable[[str], str | Path | None] = shutil.which) -> Path:
        found = search(name)
        if found is None:
            do_without(f"{name} is not installed: make programs names its package")
        return Path(found)

    return find
