"""The bar of ``mirror worker drain``: of the Jobs that were there at the start."""

from __future__ import annotations

import io

import pytest

from mirror.cli.worker.drain import left_text
from mirror.cli.worker.drain_bar import bar
from mirror.cli.worker.operations.overview import Tally


class Terminal(io.StringIO):
    """What is written to it is seen by somebody."""

    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Where stderr goes; no fixture, since each phase of a test gets pytest's own stderr."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    return terminal


def counted(left: int, leaving: int = 0) -> Tally:
    return Tally(unfinished={"east": left, "west": 7}, leaving={"east": leaving})


def test_it_is_full_when_all_have_gone_that_were_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is on other workers, and whatever had gone before; then it is taken away."""
    shown = terminal_of(monkeypatch)
    with bar("east", left_text) as look:
        for left in (3, 1, 0):
            look(counted(left))
            assert f"draining worker east {'━' * (8 * (3 - left))}" in shown.getvalue()
            assert f"{3 - left}/3 gone, {left} Job{'' if left == 1 else 's'} still running" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K")


def test_one_that_was_being_placed_belongs_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal_of(monkeypatch)
    with bar("east", left_text) as look:
        look(counted(1))
        look(counted(2, leaving=1))
        assert "0/2 gone, 2 Jobs still running, 1 of them stopped and leaving" in shown.getvalue()


def test_nothing_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal_of(monkeypatch)
    with bar("east", left_text) as look:
        look(counted(0))
        assert "0/0 gone, 0 Jobs still running" in shown.getvalue()
