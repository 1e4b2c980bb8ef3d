"""Tables on a terminal: how they fit, and their colours. Pure."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import click
import msgspec
import pytest

from mirror.cli.user import printing
from mirror.cli.user.get import Wanted, columns
from mirror.cli.user.terminal import Display, color_option, display
from mirror.model.tones import tone_of
from mirror.model.views import STATES, JobView

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
EVIL = "a\x1b[31mb\nc\u202ed\x9bK"


def view(name: str, state: str, created: str) -> JobView:
    return JobView(namespace="n", name=name, uid=name, state=state, created=created, started=created, succeeded=1)


def on_terminal(width: int, *, why: str = "x" * 200, name: str = "train") -> list[str]:
    """Two Jobs as ``get`` shows them on a terminal of this width."""
    long = msgspec.structs.replace(view(name, "Failed", "2026-03-01T11:59:00Z"), because=why, worker="east")
    rows = [long, view("other", "Running", "2026-03-01T11:59:00Z")]
    return printing.table(columns(NOW, Wanted()), rows, on=Display(width=width))


@pytest.mark.parametrize("width", [200, 100, 80, 72, 60, 45])
def test_a_table_fits_the_terminal_and_keeps_age_and_why(width: int) -> None:
    """Long texts are cut, then columns are left out, the least important first."""
    lines = on_terminal(width, name="a-name-that-is-rather-long-for-a-job")

    headings = lines[0].split()
    assert {"NAME", "WORKER", "STATE", "AGE", "WHY"} <= set(headings)
    assert max(map(len, lines)) == width
    assert lines[1].endswith("…")
    assert lines[1][lines[0].index("AGE") :].startswith("60s")
    shown = [name for name in ("COMPLETIONS", "DURATION", "LAG") if name in headings]
    assert shown == ["COMPLETIONS", "DURATION", "LAG"][: len(shown)]


def test_a_table_that_fits_is_not_changed() -> None:
    """And a pipe gets everything, however long it is."""
    assert on_terminal(1000) == printing.table(
        columns(NOW, Wanted()),
        [
            msgspec.structs.replace(view("train", "Failed", "2026-03-01T11:59:00Z"), because="x" * 200, worker="east"),
            view("other", "Running", "2026-03-01T11:59:00Z"),
        ],
    )


@pytest.mark.parametrize(
    ("choice", "environment", "is_terminal", "has_colors"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_colors_are_for_terminals_unless_somebody_says_otherwise(
    choice: str,
    environment: dict[str, str],
    is_terminal: bool,
    has_colors: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``--color`` first, then NO_COLOR, then what stdout is."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    found: list[Display] = []
    command = click.Command("x", params=[], callback=lambda: found.append(display()))
    color_option()(command)
    command.main(["--color", choice], standalone_mode=False)

    assert found[0].has_colors is has_colors


def test_a_state_has_one_color_and_takes_no_room() -> None:
    """Without its colours, a coloured table is the plain one."""
    rows = [view("train", state, "2026-03-01T11:59:00Z") for state in STATES]
    painted = printing.table(columns(NOW, Wanted()), rows, on=Display(has_colors=True))

    assert [click.unstyle(line) for line in painted] == printing.table(columns(NOW, Wanted()), rows)
    assert all(tone_of(state) != "plain" for state in STATES)
    complete = next(line for line in painted if "Complete" in line)
    assert "\x1b[32mComplete\x1b[0m " in complete


def test_colors_do_not_let_a_hostile_cell_through() -> None:
    """Only our own sequences are printed: a cell is cleaned before it is painted (D18)."""
    hostile = msgspec.structs.replace(view(EVIL, "Failed", ""), because=EVIL)
    [_, line] = printing.table(columns(NOW, Wanted()), [hostile], on=Display(has_colors=True))

    assert click.unstyle(line).isprintable()
    assert line.count("\x1b") == 2
