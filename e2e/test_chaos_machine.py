"""What a campaign changes in a manager's process: what it calls itself, in requests as in its Lease, and its clock."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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

_TELLS_TIME = """
import sys
import e2e.drill_manager
import inspect
import time
from mirror.kube.client import Client
from mirror.runtime.clock import SystemClock
wall = inspect.signature(Client).parameters["wall"].default
for _ in sys.stdin:
    print(time.time(), SystemClock().now().timestamp(), wall(), sep="|")
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
    pid = process.rpartition("_")[2]
    assert (host, own_machine.machine_of(process)) == ("manager-7", "manager-7")
    assert int(pid) > 1


def test_elsewhere_a_manager_is_as_it_is() -> None:
    """Tests that run it without a campaign have the program as it is shipped."""
    host, version = said_by(_SAYS)
    assert host == os.uname().nodename
    assert own_machine.process_of(f"jobmirror/{version}") == ""


def test_its_clock_is_another_and_jumps(tmp_path: Path) -> None:
    """It is what its file says each time: the one that is written down, and the one that is compared with workers'."""
    clock = own_machine.Clock(tmp_path / "clock", -45.0)
    command = own_machine.command({own_machine.CLOCK: str(clock.path)}, [sys.executable, "-uc", _TELLS_TIME])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=_ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for seconds in (-45.0, 20.0, 0.0, 3600.0):
            clock.ahead_seconds = seconds
            process.stdin.write("\n")
            process.stdin.flush()
            told = [float(one) for one in process.stdout.readline().split("|")]
            assert told == pytest.approx([time.time() + seconds] * 3, abs=2)
        process.stdin.close()


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
