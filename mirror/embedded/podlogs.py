"""What containers have written: kept by the kubelets in ``controllers``, read by ``pods/log``.

A control plane has one ``PodLogs``, which its API server and its kubelets are given; logs are found by the id of the
container, as a pod's status names it. A log is bounded: of one that grows too long, the older half is forgotten.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from mirror.batch.quoting import quoted

MOST_BYTES = 10 * 2**20
LONGEST_LINE = 16 * 2**10
"""Bytes after which a line is kept in parts, as container runtimes do it."""
_PIECE_BYTES = 2**16
_TIME_LENGTH = len("2026-03-01T12:00:00.000000000Z")
_WHOLE, _PART = b"F", b"P"


class NoLog(LookupError):
    """There is nothing to read; the text is what a kubelet says."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is wanted of a log."""

    follow: bool = False
    """Go on until the container has ended."""
    timestamps: bool = False
    """Put the time before each line."""
    since: datetime | None = None
    tail: int | None = None
    """Only so many of the lines that are there now."""
    limit_bytes: int | None = None


def container_id_of(pod: Mapping[str, Any], container: str, *, previous: bool = False) -> str:
    """The id of the container whose log is meant, as a kubelet finds it in a pod's status.

    Raises:
        NoLog: it has not begun, or there was no earlier run of it.
    """
    status: Mapping[str, Any] = pod.get("status") or {}
    lists = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
    found = next((one for name in lists for one in status.get(name) or () if one.get("name") == container), None)
    where = f"container {quoted(container)} in pod {quoted(pod['metadata']['name'])}"
    if found is None:
        raise NoLog(f"{where} is not available")
    state, last = found.get("state") or {}, (found.get("lastState") or {}).get("terminated")
    last_id = str((last or {}).get("containerID") or "")
    if previous:
        if not last_id:
            raise NoLog(f"previous terminated {where} not found")
        return last_id
    if "running" in state:
        return str(found.get("containerID") or "")
    if "terminated" in state or last is not None:
        own_id = str((state.get("terminated") or {}).get("containerID") or "") or last_id
        if not own_id:
            raise NoLog(f"{where} is terminated")
        return own_id
    if "waiting" in state:
        raise NoLog(f"{where} is waiting to start: {state['waiting'].get('reason', '')}")
    raise NoLog(f"{where} is waiting to start - no logs yet")


class ContainerLog:
    """The log of one run of a container, in memory or in a file.

    Invariant: what is kept is whole records (time, whether the line ends here, text), ``_dropped`` bytes of older ones
    were forgotten, and ``_begun`` is the beginning of a line whose end has not been written.
    """

    def __init__(self, path: Path | None = None, *, most_bytes: int = MOST_BYTES) -> None:
        """Raises OSError: the file cannot be made."""
        self._kept: BinaryIO = io.BytesIO() if path is None else path.open("w+b")
        self._path = path
        self._most_bytes = most_bytes
        self._size = 0
        self._dropped = 0
        self._begun = bytearray()
        self._is_closed = False
        self._waiting: set[asyncio.Future[None]] = set()

    def write(self, data: bytes, now: datetime) -> None:
        """Take what the container has written just now."""
        if self._is_closed:
            return
        *lines, rest = data.split(b"\n")
        records = bytearray()
        time = _time(now)
        for line in lines:
            records += self._record(time, bytes(self._begun) + line, _WHOLE)
            self._begun.clear()
        self._begun += rest
        while len(self._begun) >= LONGEST_LINE:
            records += self._record(time, bytes(self._begun[:LONGEST_LINE]), _PART)
            del self._begun[:LONGEST_LINE]
        if records:
            self._append(bytes(records))

    def end(self, now: datetime) -> None:
        """The container has ended: followers see the end. The log can still be read."""
        if self._is_closed:
            return
        if self._begun:
            self._append(self._record(_time(now), bytes(self._begun), _PART))
            self._begun.clear()
        self._is_closed = True
        if self._path is not None:
            self._kept.close()  # there may be thousands of them; who reads it opens it again
        self._wake()

    def last_text(self, lines: int, most_bytes: int) -> str:
        """The end of it: so many lines, and bytes, at most."""
        kept = self._from(self._position_of_tail(lines))
        return b"".join(_Printer(Options()).print(kept))[-most_bytes:].decode(errors="replace")

    def remove(self) -> None:
        """Forget it all."""
        self._is_closed = True
        self._wake()
        self._kept.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def read(self, options: Options) -> AsyncGenerator[bytes, None]:
        """What is wanted, in pieces; while it is followed, an empty piece says that no more is there yet."""
        left = options.limit_bytes
        position = self._dropped if options.tail is None else self._position_of_tail(options.tail)
        printer = _Printer(options)
        while True:
            found = self._from(position)
            position = self._dropped + self._size
            for piece in printer.print(found):
                if left is not None:
                    piece, left = piece[:left], left - len(piece)
                yield piece
                if left is not None and left <= 0:
                    return
            if not options.follow or self._is_closed:
                return
            yield b""
            await self._wait(position)

    async def _wait(self, position: int) -> None:
        """Until there is more, or the end of it."""
        while not self._is_closed and position >= self._dropped + self._size:
            more = asyncio.get_running_loop().create_future()
            self._waiting.add(more)
            try:
                await more
            finally:
                self._waiting.discard(more)

    def _from(self, position: int) -> bytes:
        if self._path is not None and self._is_closed:
            try:
                with self._path.open("rb") as file:
                    file.seek(max(0, position - self._dropped))
                    return file.read()
            except OSError:
                return b""  # it was removed
        if self._kept.closed:
            return b""
        self._kept.seek(max(0, position - self._dropped))
        return self._kept.read()

    def _position_of_tail(self, lines: int) -> int:
        """Where the last lines begin; a line in parts is one."""
        begins: list[int] = []
        position, at_line_begin = self._dropped, True
        for record in _lines(self._from(self._dropped)):
            if at_line_begin:
                begins.append(position)
            at_line_begin = record[_TIME_LENGTH + 1 : _TIME_LENGTH + 2] == _WHOLE
            position += len(record)
        return position if lines <= 0 else begins[-lines] if lines <= len(begins) else self._dropped

    @staticmethod
    def _record(time: bytes, text: bytes, kind: bytes) -> bytes:
        return b"%s %s %s\n" % (time, kind, text)

    def _append(self, records: bytes) -> None:
        self._kept.seek(0, io.SEEK_END)
        self._kept.write(records)
        self._size += len(records)
        if self._size > self._most_bytes:
            self._forget_older_half()
        self._wake()

    def _forget_older_half(self) -> None:
        self._kept.seek(self._size - self._most_bytes // 2)
        self._kept.readline()
        rest = self._kept.read()
        self._dropped += self._size - len(rest)
        self._kept.seek(0)
        self._kept.truncate()
        self._kept.write(rest)
        self._size = len(rest)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


@dataclass(eq=False, slots=True)
class PodLogs:
    """The logs of one cluster's containers."""

    _logs: dict[str, ContainerLog] = field(default_factory=dict)

    def add(self, container_id: str, log: ContainerLog) -> None:
        """From now on it is found."""
        self._logs[container_id] = log

    def find(self, container_id: str) -> ContainerLog | None:
        """The log of a container; None if nobody has kept it."""
        return self._logs.get(container_id)

    def remove(self, container_id: str) -> None:
        """The container is gone, and its log with it."""
        log = self._logs.pop(container_id, None)
        if log is not None:
            log.remove()

    def __len__(self) -> int:
        return len(self._logs)


def _time(now: datetime) -> bytes:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


class _Printer:
    """Makes text of records."""

    def __init__(self, options: Options) -> None:
        self._since = None if options.since is None else _time(options.since)
        self._has_times = options.timestamps
        self._at_line_begin = True

    def print(self, records: bytes) -> Iterator[bytes]:
        """The text in pieces that are not too long."""
        piece = bytearray()
        for record in _lines(records):
            time, kind = record[:_TIME_LENGTH], record[_TIME_LENGTH + 1 : _TIME_LENGTH + 2]
            if self._since is not None and time < self._since:
                continue
            if self._has_times and self._at_line_begin:
                piece += time + b" "
            self._at_line_begin = kind == _WHOLE
            text = record[_TIME_LENGTH + 3 :]
            piece += text if self._at_line_begin else text[:-1]
            if len(piece) >= _PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
        if piece:
            yield bytes(piece)


def _lines(records: bytes) -> list[bytes]:
    """Lines by their feeds alone; ``splitlines`` also takes carriage returns for ends."""
    return [line + b"\n" for line in records.split(b"\n")[:-1]]
