"""A whole answer's body, compressed or not, and never more of it than is to be read (D29). Used by ``transport``."""

from __future__ import annotations

import zlib

import aiohttp

from mirror.kube.amounts import Share
from mirror.kube.errors import BadAnswer, TooLarge

_GZIP = "gzip"
_WINDOW_BITS = 16 + zlib.MAX_WBITS
"""A gzip stream with its header and its checksum."""


def is_readable(response: aiohttp.ClientResponse, *, may_be_compressed: bool) -> bool:
    """Whether ``read_body`` can read it, and whoever sent the request wants it to."""
    encoding = _encoding(response)
    return encoding == "identity" or (encoding == _GZIP and may_be_compressed)


def _encoding(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Content-Encoding", "identity")


async def read_body(response: aiohttp.ClientResponse, most_bytes: int, share: Share) -> bytes:
    """The whole body, as it was before it was compressed.

    Raises:
        TooLarge: it is longer than that, or than what there is room for.
        BadAnswer: it cannot be decompressed.
    """
    if (response.content_length or 0) > most_bytes:
        raise TooLarge(f"an answer of more than {most_bytes} bytes")
    if _encoding(response) == _GZIP:
        return await _read_compressed(response.content, most_bytes, share)
    content = response.content
    first = await content.readany()
    if content.at_eof() and len(first) <= most_bytes:
        return first
    pieces, size = [first], len(first)
    share.hold(size)
    while size <= most_bytes and (piece := await content.readany()):
        pieces.append(piece)
        size += len(piece)
        share.hold(size)
    if size > most_bytes:
        raise TooLarge(f"an answer of more than {most_bytes} bytes")
    return b"".join(pieces)


async def _read_compressed(content: aiohttp.StreamReader, most_bytes: int, share: Share) -> bytes:
    """Of what is packed a thousandfold, too, only so much is unpacked."""
    inflate = zlib.decompressobj(_WINDOW_BITS)
    pieces: list[bytes] = []
    size = 0
    try:
        while packed := await content.readany():  # to the end of the answer: else its connection is not used again
            if inflate.eof:
                raise BadAnswer("the compressed response is followed by something")
            pieces.append(inflate.decompress(packed, most_bytes + 1 - size))
            size += len(pieces[-1])
            if size > most_bytes:
                raise TooLarge(f"an answer of more than {most_bytes} bytes")
            share.hold(size)
    except zlib.error as error:
        raise BadAnswer(f"the response cannot be decompressed: {error}") from error
    if not inflate.eof or inflate.unused_data:
        raise BadAnswer(f"the compressed response {'is cut off' if not inflate.eof else 'is followed by something'}")
    return b"".join(pieces)
