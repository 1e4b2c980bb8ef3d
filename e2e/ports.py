"""Ports of this machine for servers that are told theirs: chosen, and kept until nobody needs them any more.

A port that was merely free a moment ago may be somebody else's when its server asks for it. Used by tests whose servers
must be known by address before they start, or find it again after a restart. Not here: API servers (``controlplane``).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def reserve_port() -> socket.socket:
    """A socket that keeps a port of loopback until it is closed; the server may bind it, too, now and later.

    Nobody else gets the port as a free one. The server may have it since both ask for SO_REUSEADDR, as servers do by
    themselves, and this one never listens; connections are refused while there is no server.
    """
    reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def number_of(reserved: socket.socket) -> int:
    """The port that it keeps."""
    port: int = reserved.getsockname()[1]
    return port


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that is ours while the block runs."""
    with reserve_port() as reserved:
        yield number_of(reserved)
