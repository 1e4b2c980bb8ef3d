"""How commands for users run: progress on a terminal, failures out of groups, Ctrl-C."""

from __future__ import annotations

import asyncio
import io
import sys

import pytest

from mirror.cli.user import running
from mirror.cli.user.failures import Failure
from mirror.cli.user.running import INTERRUPTED, progress, run


class Terminal(io.StringIO):
    """Where somebody looks."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal(), True), (io.StringIO(), False)], ids=["tty", "pipe"])
async def test_what_takes_long_says_so_on_a_terminal(
    stream: io.StringIO, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On stderr, after a second (here: at once), and only where somebody looks."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(running, "SHOWN_AFTER_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")

    with progress("Asking the worker …"):
        await asyncio.sleep(0.01)

    assert ("Asking the worker …" in stream.getvalue()) is is_shown


async def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No flicker."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)

    with progress("Asking the worker …"):
        await asyncio.sleep(0)

    assert stream.getvalue() == ""


def test_the_first_failure_of_a_group_is_the_commands_failure() -> None:
    """A user gets one line, not a tree."""

    async def fail() -> None:
        raise Failure("no such log")

    async def work() -> None:
        async with asyncio.TaskGroup() as scope:
            scope.create_task(fail(), name="one")
            scope.create_task(asyncio.sleep(9), name="other")

    with pytest.raises(Failure, match="no such log"):
        run(work)


def test_ctrl_c_ends_without_a_word() -> None:
    """As a shell reports a process that SIGINT ended."""

    async def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        run(work)
    assert ended.value.code == INTERRUPTED


def test_a_closed_pipe_is_no_failure(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Who reads has all they wanted."""

    async def work() -> None:
        raise BrokenPipeError

    class Closed(io.StringIO):
        def fileno(self) -> int:
            raise io.UnsupportedOperation

    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(SystemExit) as ended:
        run(work)
    assert ended.value.code == 0
