"""What a campaign changes in the process of a manager, so that it is as if on a machine of its own.

Each request names the process as the Lease does, but for what is random there: workers know both managers by one
account. Called by ``drill_manager``, before it imports ``mirror``; nothing of that is imported here.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Mapping, Sequence

NAME = "MIRROR_CHAOS_NAME"
"""The variable that says what the machine is called."""
_PROCESS = re.compile(r"\((\S+_[0-9]+)\)")


def command(settings: Mapping[str, str], program: Sequence[str]) -> list[str]:
    """A program with these variables in its environment.

    Raises:
        FileNotFoundError: this machine lacks ``env``.
    """
    env = shutil.which("env")
    if env is None:
        raise FileNotFoundError("env")
    return [env, *(f"{name}={value}" for name, value in settings.items()), *program]


def settle_in() -> None:
    """Be on the machine that the environment names, or change nothing."""
    if name := os.environ.get(NAME):
        socket.gethostname = lambda: name


def signature() -> str:
    """What to say of oneself behind the version; empty where the environment names no machine."""
    name = os.environ.get(NAME)
    return f" ({name}_{os.getpid()})" if name else ""


def process_of(user_agent: str) -> str:
    """Who has sent a request, from what it says of itself; empty: it does not say so."""
    found = _PROCESS.search(user_agent)
    return found[1] if found else ""
