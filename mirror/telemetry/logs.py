"""Log lines: a constant event name and ``key=value`` fields (style 7), as text or JSON, on the standard library.

Every room logs through ``Log``; ``app`` calls ``set_up_logging`` once. Field values may come from a worker and are
hostile until cleaned (D18): they cannot start a new line, move a cursor, reorder text or fill a disk. Not here: what
is worth logging.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
import traceback as tracebacks
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TextIO

from mirror.model.failures import failure_words
from mirror.model.text import LONGEST, clean
from mirror.settings.schema import Logging

LONGEST_LINE = 2_048
LONGEST_TRACEBACK = 16_384

_BARE = re.compile(r"[A-Za-z0-9_.:/@%+,~*-]+")
_FIELDS = "fields"
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Log:
    """A logger with fields bound to it. Values are formatted only if the line is written.

    ``error=`` takes an exception or a text; with ``traceback=True`` the exception's traceback follows the line.
    """

    __slots__ = ("_fields", "_logger")

    def __init__(self, name: str, /, **fields: object) -> None:
        self._logger = logging.getLogger(name if name.partition(".")[0] == "mirror" else f"mirror.{name}")
        self._fields = fields

    def bind(self, **fields: object) -> Log:
        """The same logger with more fields on every line."""
        bound = Log(self._logger.name)
        bound._fields = {**self._fields, **fields}
        return bound

    def debug(self, event: str, /, *, traceback: bool = False, **fields: object) -> None:
        """We looked and left it."""
        self._write(logging.DEBUG, event, traceback, fields)

    def info(self, event: str, /, *, traceback: bool = False, **fields: object) -> None:
        """The world changed."""
        self._write(logging.INFO, event, traceback, fields)

    def warning(self, event: str, /, *, traceback: bool = False, **fields: object) -> None:
        """Something failed that will be retried, or that an operator should know about."""
        self._write(logging.WARNING, event, traceback, fields)

    def error(self, event: str, /, *, traceback: bool = False, **fields: object) -> None:
        """A defect, ours or of the set-up."""
        self._write(logging.ERROR, event, traceback, fields)

    def _write(self, level: int, event: str, traceback: bool, fields: dict[str, object]) -> None:
        if not self._logger.isEnabledFor(level):
            return
        cause = fields.get("error") if traceback else None
        merged = {**self._fields, **fields} if self._fields else fields
        self._logger.handle(_record(self._logger.name, level, event, merged, cause))


# What ``logging`` notes of a line beside what we say: the process and the thread, and no place in the code. Looking for
# that in the stack would be most of a line's cost, and no format of ours shows it.
_BLANK = vars(logging.LogRecord("", 0, "", 0, "", (), None))


def _record(name: str, level: int, event: str, fields: dict[str, object], cause: object) -> logging.LogRecord:
    """A record as ``logging`` would make it, for its handlers and anybody's."""
    record = logging.LogRecord.__new__(logging.LogRecord)
    made, now = vars(record), time.time()
    made.update(_BLANK)
    made["name"], made["levelno"], made["levelname"], made["msg"] = name, level, logging.getLevelName(level), event
    made["created"], made["msecs"], made[_FIELDS] = now, int(now * 1000) % 1000, fields
    made["relativeCreated"] = _BLANK["relativeCreated"] + (now - _BLANK["created"]) * 1000
    if isinstance(cause, BaseException):
        made["exc_info"] = type(cause), cause, cause.__traceback__
    return record


def set_up_logging(settings: Logging, stream: TextIO | None = None) -> None:
    """Send our lines, and warnings of the libraries, to a stream (default: stderr), and to no earlier one."""
    handler = _Handler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("mirror").setLevel(_LEVELS[settings.level])


class _Handler(logging.StreamHandler[TextIO]):
    """Ours: known again when logging is set up anew."""


class TextLines(logging.Formatter):
    """``2026-01-31T12:00:00.250Z INFO  runtime.loop: mirror created job=team/train worker=east``"""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_timestamp(record.created)} {record.levelname:<7} {_logger_name(record)}: {_event(record)}"
        for key, value in _fields(record).items():
            line += f" {key}={_text_value(value)}"
        return line + "".join(f"\n  | {part}" for part in _traceback(record).splitlines())


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, event, then the fields, then ``traceback``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": _logger_name(record),
            "event": _event(record),
        }
        for key, value in _fields(record).items():
            line[key if key not in line else f"{key}_"] = _json_value(value)
        if text := _traceback(record):
            line["traceback"] = text
        # The standard library's encoder, for once: pure ASCII, so that surrogates and control characters stay escaped.
        return json.dumps(line, allow_nan=False)


def _event(record: logging.LogRecord) -> str:
    """Ours are constants; those of libraries may hold anything."""
    return clean(record.getMessage(), longest=LONGEST_LINE)


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


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    found = getattr(record, _FIELDS, None)
    return found if isinstance(found, dict) else {}


def _traceback(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    text = "".join(tracebacks.format_exception(record.exc_info[1])).rstrip()
    if len(text) > LONGEST_TRACEBACK:  # keep the end, where the error stands
        text = "…" + text[-LONGEST_TRACEBACK:]
    return "\n".join(clean(line, longest=LONGEST_LINE) for line in text.split("\n"))


def _logger_name(record: logging.LogRecord) -> str:
    return record.name.removeprefix("mirror.")


def _timestamp(seconds: float) -> str:
    whole, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{_whole_second(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=2)
def _whole_second(seconds: int) -> str:
    """Formatting time is half the cost of a line, and lines come many to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
