"""Reads an answer that is open: a watch by lines, a text by pieces, a refusal to its end. Used by ``client``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import TypeAlias

from mirror.kube import amounts
from mirror.kube.amounts import Head, Share
from mirror.kube.errors import OutcomeUnknown, TooLarge, Unreachable
from mirror.kube.transport import Opened

Silence: TypeAlias = float | Callable[[], float]
"""For how many seconds a stream may say nothing; a function is asked before each piece."""

_LINE_ENDS = re.compile(rb"\n\n+")


async def read_error(opened: Opened) -> bytes:
    """The body of a refusal; cut off when it is absurdly long, which makes it unreadable and nothing else."""
    body = bytearray()
    while len(body) < amounts.MOST_ERROR_BYTES and (piece := await opened.chunk()):
        body += piece
    return bytes(body)


async def read_pieces(opened: Opened, ends_at: float) -> AsyncGenerator[bytes, None]:
    """What comes, as it comes."""
    while True:
        try:
            async with asyncio.timeout_at(ends_at):
                piece = await opened.chunk()
        except TimeoutError as error:
            raise Unreachable("the text did not end in time") from error
        except OutcomeUnknown as error:
            raise Unreachable(str(error)) from error
        if not piece:
            return
        yield piece


def seconds_of(silence: Silence) -> float:
    return silence() if callable(silence) else silence


async def read_lines(opened: Opened, silence: Silence, ends_at: float, share: Share) -> AsyncGenerator[bytes, None]:
    """Split what comes into lines. A last line without an end was cut off, and is dropped."""
    loop = asyncio.get_running_loop()
    lines = _Lines(share)
    while True:
        silent_seconds = seconds_of(silence)
        try:
            async with asyncio.timeout_at(min(loop.time() + silent_seconds, ends_at)):
                chunk = await opened.chunk()
        except TimeoutError as error:
            why = "did not end in time" if loop.time() >= ends_at else f"was silent for {silent_seconds:g} s"
            raise Unreachable(f"the watch {why}") from error
        except OutcomeUnknown as error:
            raise Unreachable(str(error)) from error
        if not chunk:
            return
        for line in lines.split(chunk):
            yield line


class _Lines:
    """Puts lines together. Invariant: ``begun`` is the beginning of the line under way, whose size is ``size``."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._begun = bytearray()
        self._size = 0

    def split(self, chunk: bytes) -> Iterable[bytes]:
        """The lines that end in this chunk, without empty ones. Raises TooLarge."""
        if not self._size and 1 < len(chunk) <= amounts.MOST_OBJECT_BYTES and chunk.find(b"\n") == len(chunk) - 1:
            return (chunk[:-1],)  # one event, as most come
        return self._split(chunk)

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        if b"\n\n" in chunk:
            chunk = _LINE_ENDS.sub(b"\n", chunk)  # millions of them would take as many turns
        begin = 0
        while (end := chunk.find(b"\n", begin)) >= 0:
            if self._size:
                self._add(chunk[begin:end])
                yield self._end()
            elif end - begin > amounts.MOST_OBJECT_BYTES:
                yield Head(chunk[begin:end])
            elif end > begin:
                yield chunk[begin:end]
            begin = end + 1
        if begin < len(chunk):
            self._add(chunk[begin:])

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > amounts.MOST_LINE_BYTES:
            raise TooLarge(f"a line of more than {amounts.MOST_LINE_BYTES} bytes")
        room = amounts.MOST_OBJECT_BYTES - len(self._begun)
        self._begun += piece[:room]
        self._share.hold(len(self._begun))

    def _end(self) -> bytes:
        line = Head(self._begun) if self._size > amounts.MOST_OBJECT_BYTES else bytes(self._begun)
        self._begun, self._size = bytearray(), 0
        self._share.hold(0)
        return line
