"""Counts what a manager executes, and what each turn of the event loop does: that does not depend on the machine."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import mirror

Function = tuple[str, str]
"""Its module, as a path within ``mirror``, and its name."""

_is_the_managers = contextvars.ContextVar("_is_the_managers", default=False)
_PACKAGE = f"{Path(mirror.__file__).resolve().parent}/"
_CLUSTERS = (f"{_PACKAGE}embedded/", f"{_PACKAGE}planes/")
_LOOP = f"{_PACKAGE}embedded/virtual.py"


@contextmanager
def as_the_managers() -> Iterator[None]:
    """What is begun meanwhile is counted as the manager's, and all that comes of it."""
    token = _is_the_managers.set(True)
    try:
        yield
    finally:
        _is_the_managers.reset(token)


class Count:
    """Bytecodes and calls by function, of what is the manager's."""

    def __init__(self) -> None:
        self.bytecodes: Counter[Function] = Counter()
        self.calls: Counter[Function] = Counter()

    def start(self) -> None:
        sys.settrace(self._on_call)

    def stop(self) -> None:
        sys.settrace(None)

    def minus(self, other: Count) -> Count:
        left = Count()
        left.bytecodes, left.calls = self.bytecodes.copy(), self.calls.copy()
        left.bytecodes.subtract(other.bytecodes)
        left.calls.subtract(other.calls)
        return left

    def _on_call(self, frame: FrameType, event: str, arg: object) -> Callable[..., Any] | None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) or not _is_the_managers.get() or is_of_a_cluster(frame):
            return None
        function = code.co_filename.removeprefix(_PACKAGE), code.co_qualname
        self.calls[function] += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def on_event(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            self.bytecodes[function] += event == "opcode"
            return on_event

        return on_event


def is_of_a_cluster(frame: FrameType | None) -> bool:
    """Whether it is called, at whatever distance, by the API server that answers in this process."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_CLUSTERS) and name != _LOOP:
            return True
        frame = frame.f_back
    return False


class Turns:
    """How often each turn of the event loop calls some methods; ``most``: of all turns, by the method's name."""

    def __init__(self) -> None:
        self.most = Counter[str]()
        self._now = Counter[str]()

    def count(self, of: Any, name: str) -> None:
        """Count the calls of one method from now on; ``of``: an object, or a class for all of its objects."""
        called = getattr(of, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            if not self._now:
                asyncio.get_running_loop().call_soon(self._end_turn)
            self._now[name] += 1
            return called(*arguments, **more)

        setattr(of, name, counted)

    def _end_turn(self) -> None:
        self.most |= self._now
        self._now.clear()
