"""Log lines, and what hostile values can do to them: nothing."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror.settings.schema import Logging
from mirror.telemetry import logs
from mirror.telemetry.logs import get_log, json_line, set_up_logging, text_line

Written = Callable[[], str]

ROOM = SimpleNamespace(name="mirror.runtime.loop")
NOON = 1_767_268_800.25  # 2026-01-01T12:00:00.250Z


@pytest.fixture
def stream() -> io.StringIO:
    """Where lines go."""
    return io.StringIO()


@pytest.fixture(autouse=True)
def it_is_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same time for all lines."""
    monkeypatch.setattr(logs.time, "time", lambda: NOON)


def written(stream: io.StringIO) -> str:
    """The only line, without its time."""
    (line,) = stream.getvalue().splitlines()
    return line.partition(" ")[2]


def line_of(event: str, error: BaseException | None = None, **fields: object) -> dict[str, object]:
    """What structlog hands to a renderer."""
    return {**fields, "event": event, **({"exc_info": error} if error else {})}


def as_text(event: str, error: BaseException | None = None, **fields: object) -> str:
    return text_line(ROOM, "info", line_of(event, error, **fields))


def as_json(event: str, error: BaseException | None = None, **fields: object) -> dict[str, object]:
    found: dict[str, object] = json.loads(json_line(ROOM, "info", line_of(event, error, **fields)))
    return found


def test_a_text_line_is_time_level_room_event_and_fields() -> None:
    """The event is constant text, the rest key=value, in the order given."""
    line = as_text("mirror created", job="team/train", worker="east", tries=2)

    assert line == "2026-01-01T12:00:00.250Z INFO    runtime.loop: mirror created job=team/train worker=east tries=2"


def test_a_json_line_holds_the_same() -> None:
    """One object per line; numbers stay numbers."""
    line = json_line(ROOM, "info", line_of("mirror created", job="team/train", tries=2))

    assert json.loads(line) == {
        "time": "2026-01-01T12:00:00.250Z",
        "level": "info",
        "logger": "runtime.loop",
        "event": "mirror created",
        "job": "team/train",
        "tries": 2,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("plain-1.2/3", "plain-1.2/3", id="a plain word needs no quotes"),
        pytest.param("two words", '"two words"', id="a space needs quotes"),
        pytest.param("", '""', id="nothing is shown as empty quotes"),
        pytest.param('say "x"', r'"say \"x\""', id="quotes are escaped"),
        pytest.param(r"back\slash", r'"back\\slash"', id="a backslash is escaped"),
        pytest.param(r"a\" evil=1", r'"a\\\" evil=1"', id="a value cannot end its quotes and invent a field"),
        pytest.param("a=b", '"a=b"', id="an equals sign needs quotes"),
        pytest.param("x\nERROR fake", r'"x\nERROR fake"', id="a value cannot start a line"),
        pytest.param("\x1b[31mred", r'"\x1b[31mred"', id="a value cannot talk to the terminal"),
        pytest.param("größer", '"größer"', id="letters of other alphabets stay readable"),
        pytest.param(None, "null", id="none"),
        pytest.param(True, "true", id="a boolean"),
        pytest.param(0.25, "0.25", id="a number"),
        pytest.param(float("nan"), "nan", id="no number"),
        pytest.param(10**30, '"an integer of more than 64 bits"', id="a number that JSON readers would round"),
        pytest.param(ValueError("x y"), '"ValueError: x y"', id="an exception"),
        pytest.param("x" * 600, '"' + "x" * 512 + '…"', id="a long value is cut"),
    ],
)
def test_values_are_quoted_as_needed(value: object, text: str) -> None:
    """Fields can be taken apart again, whatever a worker put in (D18)."""
    assert as_text("seen", value=value).endswith(f": seen value={text}")


def test_json_values_are_bounded_too() -> None:
    """The JSON form cuts and cleans values like the text form."""
    fields = line_of("seen", text="x" * 600, escape="\x1b[2J", surrogate="\ud800", nan=float("inf"))
    line = json_line(ROOM, "info", fields)

    assert line.isascii()
    assert line.isprintable()
    assert {"text": "x" * 512 + "…", "escape": "\\x1b[2J", "surrogate": "\\ud800", "nan": "inf"}.items() <= json.loads(
        line
    ).items()


def test_a_field_cannot_replace_what_every_line_has() -> None:
    """Time, level, logger and event of a JSON line are always ours."""
    line = as_json("seen", level="fatal", time="never")

    assert (line["level"], line["level_"]) == ("info", "fatal")
    assert (line["time"], line["time_"]) == ("2026-01-01T12:00:00.250Z", "never")


def test_a_traceback_follows_its_line() -> None:
    """Its lines are marked as belonging to the one above, and cleaned: messages may hold anything."""
    try:
        raise ValueError("bad\nfake line\x1b[2J")
    except ValueError as caught:
        error = caught

    lines = as_text("failed", error).split("\n")
    in_json = as_json("failed", error)

    assert lines[0].endswith("failed")
    assert lines[1] == "  | Traceback (most recent call last):"
    assert lines[-2:] == ["  | ValueError: bad", "  | fake line\\x1b[2J"]
    assert all(line.startswith("  | ") for line in lines[1:])
    assert in_json["traceback"].endswith("fake line\\x1b[2J")


def test_a_long_traceback_keeps_its_end() -> None:
    """What is cut is the beginning; the error itself stands last."""
    text = as_text("failed", ValueError("x\n" * 20_000 + "the end"))

    assert len(text) < 70_000
    assert text.endswith("the end")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from("abc"), st.text(st.characters()) | st.floats() | st.integers() | st.none()))
def test_any_values_make_one_printable_line(fields: dict[str, object]) -> None:
    """No value makes a second line, an unprintable character, or invalid JSON."""
    text, in_json = as_text("seen", **fields), json_line(ROOM, "info", line_of("seen", **fields))

    assert text.isprintable()
    assert in_json.isprintable()
    assert set(fields) <= set(json.loads(in_json))


def test_bound_fields_come_first_and_can_be_replaced(stream: io.StringIO) -> None:
    """A bound logger repeats its fields; binding leaves the first logger as it was."""
    set_up_logging(Logging(), stream)
    log = get_log("controllers").bind(job="team/train", worker="east")

    log.bind(worker="west").info("moved", why="drain")

    assert written(stream) == "INFO    controllers: moved job=team/train worker=west why=drain"


def test_lines_below_the_level_are_not_formatted(stream: io.StringIO) -> None:
    """A debug line costs nothing when debug is off: its values are not even turned into text."""

    class Explosive:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    set_up_logging(Logging(level="info"), stream)
    get_log("controllers").debug("looked", value=Explosive())

    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("level", "kept"),
    [("debug", "dbg inf wrn err"), ("info", "inf wrn err"), ("warning", "wrn err"), ("error", "err")],
)
def test_the_level_decides_what_is_written(stream: io.StringIO, level: str, kept: str) -> None:
    """Everything from the level on is written."""
    set_up_logging(Logging(level=level), stream)
    log = get_log("room")
    log.debug("dbg")
    log.info("inf")
    log.warning("wrn")
    log.error("err")

    assert kept.split() == [line.rpartition(" ")[2] for line in stream.getvalue().splitlines()]


def test_an_error_with_traceback_names_the_exception_in_both(stream: io.StringIO) -> None:
    """``exc_info`` adds the traceback of an exception."""
    set_up_logging(Logging(), stream)
    error = KeyError("x")

    get_log("runtime.loop").error("unexpected error", key="team/train", error=error, exc_info=error)

    line, *below = stream.getvalue().splitlines()
    assert line.endswith("unexpected error key=team/train error=\"KeyError: 'x'\"")
    assert below == ["  | KeyError: 'x'"]


def test_setting_up_again_replaces_the_stream(stream: io.StringIO) -> None:
    """Several managers in one process do not write each line several times."""
    second = io.StringIO()
    set_up_logging(Logging(), stream)
    set_up_logging(Logging(format="json"), second)

    get_log("room").info("seen")

    assert stream.getvalue() == ""
    assert json.loads(second.getvalue())["event"] == "seen"


def test_libraries_are_heard_from_warnings_on_and_cleaned(stream: io.StringIO) -> None:
    """Other packages' lines have our form; their chatter is left out."""
    set_up_logging(Logging(level="debug"), stream)

    logging.getLogger("aiohttp.client").info("chatter")
    logging.getLogger("aiohttp.client").warning("closing %s", "x\ny")

    assert written(stream) == "WARNING aiohttp.client: closing x\\ny"


@pytest.mark.slow
def test_who_logs_need_not_load_what_draws_on_consoles() -> None:
    """Structlog alone would import rich, which costs the manager memory and every command time; it stays importable."""
    probe = "import sys, mirror.telemetry.logs; print('rich' in sys.modules); import rich.console"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
