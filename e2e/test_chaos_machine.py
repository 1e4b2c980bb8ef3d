"""What a campaign changes in a manager's process: what it calls itself, in each request as in its Lease."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.chaos import own_machine

_ROOT = Path(__file__).resolve().parents[1]
_SAYS = """
import e2e.drill_manager
import socket
from mirror.kube import client
print(socket.gethostname(), client.version(), sep="|")
"""


def said_by(program: str, **environment: str) -> list[str]:
    """What this program prints in a process with these variables."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT)}
    command = own_machine.command(environment, [sys.executable, "-c", program])
    done = subprocess.run(command, env=known, cwd=_ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip().split("|")


def test_a_manager_says_in_each_request_who_it_is() -> None:
    """D28: workers know all managers by one account; the name is the one with which the holder of the Lease begins."""
    host, version = said_by(_SAYS, **{own_machine.NAME: "manager-7"})
    process = own_machine.process_of(f"jobmirror/{version}")
    name, _, pid = process.rpartition("_")
    assert (host, name) == ("manager-7", "manager-7")
    assert int(pid) > 1


def test_elsewhere_a_manager_is_as_it_is() -> None:
    """Tests that run it without a campaign have the program as it is shipped."""
    host, version = said_by(_SAYS)
    assert host == os.uname().nodename
    assert own_machine.process_of(f"jobmirror/{version}") == ""


@pytest.mark.parametrize(
    ("agent", "process"),
    [
        ("jobmirror/1.2.3 (manager-0_4711)", "manager-0_4711"),
        ("jobmirror/1.2.3", ""),
        ("kubectl/v1.36.0 (linux/amd64) kubernetes/abc", ""),
        ("", ""),
    ],
)
def test_who_has_sent_a_request_is_read_from_its_agent(agent: str, process: str) -> None:
    """Others have brackets, too, and mean something else."""
    assert own_machine.process_of(agent) == process
