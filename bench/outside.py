"""What every measurement needs of the world: a collection's changes, what processes use, the time."""

from __future__ import annotations

import datetime
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path

from bench import figures
from e2e.controlplane.client import Client, Json, StatusError

_TICKS = os.sysconf("SC_CLK_TCK")


async def newest(client: Client, path: str) -> str:
    """The version that a watch of this collection begins from."""
    version: str = (await client.get(f"{path}?limit=1"))["metadata"]["resourceVersion"]
    return version


async def follow(client: Client, path: str, version: str) -> AsyncIterator[Json]:
    """A collection's changes after a version, for ever: a watch that ends is begun anew where it ended.

    Raises:
        StatusError: the watch was refused, or is too far behind.
    """
    while True:
        async with aclosing(client.watch(path, version)) as events:
            async for event in events:
                version = event["object"]["metadata"]["resourceVersion"]
                yield event


async def requests_answered(client: Client) -> float:
    """How many requests the API server has answered; NaN where we may not ask."""
    try:
        return figures.requests_answered((await client.get("/metrics"))["text"])
    except StatusError:
        return float("nan")


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """What each process has used so far."""
    return {name: figures.cpu_seconds(Path(f"/proc/{pid}/stat").read_text(), _TICKS) for name, pid in pids.items()}


def rss_mib(pids: Mapping[str, int]) -> dict[str, int]:
    """What each process holds now."""
    return {name: round(figures.rss_mib(Path(f"/proc/{pid}/status").read_text())) for name, pid in pids.items()}


def now() -> str:
    """As statuses have it."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
