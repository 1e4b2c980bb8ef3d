"""For all tests: a program of the system that a test uses may be missing, and then the test says which."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def required_program() -> Callable[..., Path]:
    """Finds a program; without it the test is skipped, or fails where ``MIRROR_REQUIRE_TOOLS=1`` says that it must run.

    Those that are not in Debian's essential packages are listed in ``.ci/packages``.
    """

    def find(name: str, search: Callable[[str], str | Path | None] = shutil.which) -> Path:
        found = search(name)
        if found is None:
            if os.environ.get("MIRROR_REQUIRE_TOOLS") == "1":
                pytest.fail(f"MIRROR_REQUIRE_TOOLS=1, but {name} is not installed", pytrace=False)
            pytest.skip(f"{name} is not installed: make programs names its package")
        return Path(found)

    return find
