"""An earlier state of this tree, taken from its history, and the manager that it had. Used by the upgrade test.

Not here: what is upgraded (``test_upgrade``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
HOURS = 3
"""Commits here are small: an upgrade is from what was there before the work of some hours."""

_TIMEOUT_SECONDS = 300


class NoHistory(RuntimeError):
    """There is no earlier state: no git, or a clone without history; the text says what."""


def find_earlier(environment: Mapping[str, str] = os.environ) -> str:
    """The commit to upgrade from: ``MIRROR_UPGRADE_FROM``, or the newest that is some hours older than the newest.

    Raises:
        NoHistory: there is none.
    """
    if chosen := environment.get("MIRROR_UPGRADE_FROM"):
        return _git("rev-parse", "--verify", f"{chosen}^{{commit}}")
    newest = int(_git("show", "--no-patch", "--format=%ct", "HEAD"))
    old = _git("rev-list", "--first-parent", "--max-count=1", f"--before={newest - HOURS * 3600}", "HEAD")
    return old or _git("rev-parse", "--verify", "HEAD~1^{commit}")


def check_out(commit: str, folder: Path) -> Path:
    """Put the files of a commit into this folder; git's own notes are left alone.

    Raises:
        NoHistory: the commit's files are not here.
    """
    command = ["git", "-C", str(TOP), "archive", commit]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False)
    if done.returncode:
        raise NoHistory(done.stderr.decode(errors="replace").strip())
    with tarfile.open(fileobj=BytesIO(done.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def command_of(top: Path) -> list[str]:
    """How to call ``mirror`` as it is in a tree, with the packages that are installed now."""
    return ["/usr/bin/env", f"PYTHONPATH={top}", sys.executable, "-c", "from mirror.cli.main import main; main()"]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(TOP), *arguments], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except FileNotFoundError:
        raise NoHistory("git is not installed") from None
    if done.returncode:
        raise NoHistory(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()
