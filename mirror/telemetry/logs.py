"""Log lines: a constant event name and ``key=value`` fields, as text or JSON; structlog carries them.

Every room logs through ``get_log``; a command calls ``set_up_logging`` once, before it builds anything. Values of
fields may come from a worker and are hostile until cleaned (D18): they cannot start a new line, move a cursor, reorder
text or fill a disk. Libraries log through the standard library; their warnings get our form. Not here: what is worth
logging.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
import traceback as tracebacks
from collections.abc import Callable, MutableMapping
from functools import lru_cache
from typing import Any, Protocol, TextIO, TypeAlias

from mirror.model.failures import failure_words
from mirror.model.text import LONGEST, clean
from mirror.settings.schema import Logging

# Structlog imports rich where it finds it, for consoles: 3 MiB and three quarters of structlog's own start. It does
# without on an ImportError, which None here gives it; who wants rich can still import it later.
_has_rich = "rich" in sys.modules
if not _has_rich:
    sys.modules["rich"] = None  # type: ignore[assignment]  # typed as if only modules could be there

import structlog  # noqa: E402 - after the above
from structlog.typing import FilteringBoundLogger  # noqa: E402 - after the above

if not _has_rich:
    del sys.modules["rich"]

Log: TypeAlias = FilteringBoundLogger
"""A logger with fields bound to it. Values are formatted only if the line is written.

``error=`` takes an exception or a text; ``exc_info=`` an exception whose traceback follows the line.
"""
Fields: TypeAlias = MutableMapping[str, Any]


class Named(Protocol):
    """What a line comes from."""

    name: str


Render: TypeAlias = Callable[[Named, str, Fields], str]

LONGEST_LINE = 2_048
LONGEST_TRACEBACK = 16_384

_BARE = re.compile(r"[A-Za-z0-9_.:/@%+,~*-]+")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def get_log(name: str, /, **fields: object) -> Log:
    """The log of a room, as logging is set up now."""
    log: Log = structlog.get_logger(name).bind(**fields)
    return log


def get_module_log(name: str, /) -> Log:
    """The log of a room, for modules that have it before logging is set up: it is looked up for each line."""
    log: Log = structlog.get_logger(name)
    return log


def set_up_logging(settings: Logging, stream: TextIO | None = None) -> None:
    """Send our lines, and warnings of the libraries, to a stream (default: stderr), and to no earlier one."""
    render = json_line if settings.format == "json" else text_line
    _configure(_LEVELS[settings.level], render, stream)
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(_LibraryLines(render))
    logging.getLogger().addHandler(handler)


def default_logging() -> None:
    """As it is before anybody sets it up: warnings of ours go to stderr as text."""
    _configure(logging.WARNING, text_line, None)


def _configure(level: int, render: Render, stream: TextIO | None) -> None:
    _processors[:] = [render]
    structlog.configure(
        processors=_processors,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda name: _Lines(name, stream),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, _Handler)]:
        root.removeHandler(old)
    root.setLevel(logging.WARNING)


_processors: list[structlog.typing.Processor] = []
"""One list for all loggers, changed in place: those that exist follow, too."""


class _Lines:
    """Where lines go. A stream that is closed, or whose reader has gone, is no reason to fail."""

    __slots__ = ("_stream", "name")

    def __init__(self, name: str, stream: TextIO | None) -> None:
        self.name = name
        self._stream = stream

    def msg(self, line: str) -> None:
        stream = self._stream or sys.stderr
        try:
            stream.write(line + "\n")
            stream.flush()
        except (OSError, ValueError):
            return

    debug = info = warning = error = msg


class _Handler(logging.StreamHandler[TextIO]):
    """Ours: known again when logging is set up anew."""


class _LibraryLines(logging.Formatter):
    """Records of the standard library in our form."""

    def __init__(self, render: Render) -> None:
        super().__init__()
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback that belongs to it."""
        fields: Fields = {"event": record.getMessage()}
        if record.exc_info:
            fields["exc_info"] = record.exc_info[1]
        return self._render(record, record.levelname.lower(), fields)


def text_line(logger: Named, level: str, fields: Fields) -> str:
    """``2026-01-31T12:00:00.250Z INFO    runtime.loop: mirror created job=team/train worker=east``"""
    event, trace = _parts(fields)
    line = f"{_timestamp(time.time())} {level.upper():<7} {_room(logger)}: {event}"
    for key, value in fields.items():
        line += f" {key}={_text_value(value)}"
    return line + "".join(f"\n  | {part}" for part in trace.splitlines()) if trace else line


def json_line(logger: Named, level: str, fields: Fields) -> str:
    """One JSON object: time, level, logger, event, then the fields, then ``traceback``."""
    event, trace = _parts(fields)
    line: dict[str, object] = {
        "time": _timestamp(time.time()),
        "level": level,
        "logger": _room(logger),
        "event": event,
    }
    for key, value in fields.items():
        line[key if key not in line else f"{key}_"] = _json_value(value)
    if trace:
        line["traceback"] = trace
    # The standard library's encoder, for once: pure ASCII, so that surrogates and control characters stay escaped.
    return json.dumps(line, allow_nan=False)


def _room(logger: Named) -> str:
    return logger.name.removeprefix("mirror.")


def _parts(fields: Fields) -> tuple[str, str]:
    """What is no field, taken out of them: the event (those of libraries may hold anything), and a traceback."""
    return clean(str(fields.pop("event")), longest=LONGEST_LINE), _traceback(fields.pop("exc_info", None))


def _text_value(value: object) -> str:
    plain = value if type(value) is str else _plain(value)
    if not isinstance(plain, str):
        return json.dumps(plain)
    if len(plain) <= LONGEST and _BARE.fullmatch(plain):
        return plain
    # Quoted before cleaning: a value must not be able to end its own quotes and invent a field.
    return '"' + clean(plain.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _json_value(value: object) -> str | int | float | bool | None:
    plain = _plain(value)
    return clean(plain) if isinstance(plain, str) else plain


def _plain(value: object) -> str | int | float | bool | None:
    """A value as one of JSON's; texts are still as they came."""
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < 2**63 else "an integer of more than 64 bits"
        case float():
            return value if math.isfinite(value) else str(value)
        case OSError():
            return failure_words(value)
        case BaseException():
            # Our own errors stand alone; the class of another is half of what it says.
            is_ours = type(value).__module__.partition(".")[0] == "mirror"
            return str(value) if is_ours and str(value) else f"{type(value).__name__}: {value}"
        case _:
            return str(value)


def _traceback(error: object) -> str:
    if not isinstance(error, BaseException):
        return ""
    text = "".join(tracebacks.format_exception(error)).rstrip()
    if len(text) > LONGEST_TRACEBACK:  # keep the end, where the error stands
        text = "…" + text[-LONGEST_TRACEBACK:]
    return "\n".join(clean(line, longest=LONGEST_LINE) for line in text.split("\n"))


def _timestamp(seconds: float) -> str:
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{_whole_second(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _whole_second(seconds: int) -> str:
    """Formatting time is half the cost of a line, and lines come many to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


default_logging()
