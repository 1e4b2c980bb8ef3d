"""Memory that was taken for large documents is the system's again once they are read."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mirror.runtime import large_blocks

MIB = 2**20
READS_A_LOT = """
import sys
if sys.argv[1] == "given back":
    from mirror.runtime.large_blocks import give_back
    give_back()

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

def read(size):
    return b"x" * size

first = read(24 * 2**20)  # from which the C library learns
del first
before, small = resident(), []
for _ in range(8):
    document = read(2 * 2**20)
    small.append(read(3000))
    large = read(1 * 2**20)
    small.append(read(3000))
    del document, large
print(resident() - before)
"""


def grown_by(how: str) -> int:
    """Bytes."""
    found = subprocess.run([sys.executable, "-c", READS_A_LOT, how], check=True, capture_output=True, text=True)
    return int(found.stdout)


@pytest.mark.slow
def test_what_is_freed_between_small_objects_is_given_back() -> None:
    """With another C library it only has to work."""
    is_glibc = platform.libc_ver()[0] == "glibc"
    assert grown_by("given back") < 1 * MIB < grown_by("kept") or not is_glibc


def test_another_c_library_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    large_blocks.give_back()
