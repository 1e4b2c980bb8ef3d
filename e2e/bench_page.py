"""What the page costs, and how soon it shows something: ``python -m e2e.bench_page [--jobs 20000] [--viewers 50]``.

A process of its own serves the page over Jobs that are pretended, and changes one of the newest some four times a
second. Measured from outside: how long the first page takes, and the next; how much of a core open pages cost, and how
long after a change each of them has it; when Chromium first paints a page, and when it is live. Figures are for
``docs/page.md``; none is a test.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec

from bench.figures import cpu_seconds, percentile
from e2e.browser import browser_tab, find_chromium
from mirror.kinds.registry import BUILT_IN
from mirror.page.serving import Place, serve
from mirror.telemetry.logs import get_log
from tests.doubles.pretended import many

CHANGES_A_SECOND = 4.0
FILTERED = "?state=Failed&sort=name"
PAGES = 5
_LIVE = "document.getElementById('live')?.textContent === 'Live'"
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
_LONGEST_LINE = 2**22
_TICKS = os.sysconf("SC_CLK_TCK")


async def serve_pretended(jobs: int) -> None:
    """Until it is killed: print the port, then a line for each change, with the number that stands in its text."""
    known, chance = many(jobs), random.Random(1)
    shown = list(known.by_key)[:50]
    place = Place(listen=("127.0.0.1", 0), kinds=BUILT_IN)
    async with serve(known, place, is_leading=lambda: True, log=get_log("page")) as port:
        print(port, flush=True)
        number = 0
        while True:
            await asyncio.sleep(chance.expovariate(CHANGES_A_SECOND))  # as long as pages wait, all would come too late
            key = shown[number % len(shown)]
            print(number, time.monotonic(), flush=True)
            known.put(msgspec.structs.replace(known.by_key[key], because=f"change-{number};"))
            number += 1


@dataclass
class Served:
    """The process that serves, and when it changed what."""

    pid: int
    url: str
    changed: dict[int, float] = field(default_factory=dict)

    def cpu_seconds(self) -> float:
        """Of user and system, since its start."""
        return cpu_seconds(Path(f"/proc/{self.pid}/stat").read_text(), _TICKS)


@asynccontextmanager
async def served(jobs: int) -> AsyncIterator[Served]:
    """The process, ready."""
    command = [sys.executable, "-m", "e2e.bench_page", "--serve", "--jobs", str(jobs)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        one = Served(process.pid, f"http://127.0.0.1:{int(await process.stdout.readline())}/")
        async with asyncio.TaskGroup() as scope:
            noting = scope.create_task(_note(process.stdout, one.changed), name="changes")
            yield one
            noting.cancel()
    finally:
        process.kill()
        await process.wait()


async def _note(lines: asyncio.StreamReader, changed: dict[int, float]) -> None:
    async for line in lines:
        number, at = line.split()
        changed[int(number)] = float(at)


async def pages(one: Served) -> None:
    """The first one, for which all Jobs are read; then others."""
    async with aiohttp.ClientSession() as session:
        for title, path, times in (("first page", "", 1), ("next pages", "", PAGES), ("filtered", FILTERED, PAGES)):
            took = [await _seconds(session, one.url + path) for _ in range(times)]
            print(f"{title}: {statistics.median(took):.3f} s", flush=True)


async def _seconds(session: aiohttp.ClientSession, url: str) -> float:
    began = time.perf_counter()
    async with session.get(url) as answer:
        answer.raise_for_status()
        await answer.read()
    return time.perf_counter() - began


async def paint(one: Served) -> None:
    """In a browser that has its first look at a page that others have had already, and again."""
    chromium = find_chromium()
    if chromium is None:
        print("first paint: not measured, there is no Chromium", flush=True)
        return
    async with browser_tab(chromium) as tab:
        found = []
        for _ in range(PAGES):
            began = time.perf_counter()
            await tab.open(one.url)
            await tab.wait_for(_LIVE)
            found.append((await tab.evaluate(_PAINTED), (time.perf_counter() - began) * 1000))
    for title, column in zip(("first paint after the navigation", "live"), zip(*found, strict=True), strict=True):
        print(f"{title}: {statistics.median(column):.0f} ms (most {max(column):.0f} ms)", flush=True)


async def viewers(one: Served, count: int, seconds: float) -> None:
    """Open pages: when each has a change, and what all of them cost."""
    seen: list[tuple[int, float]] = []
    many_at_once = aiohttp.TCPConnector(limit=0)
    async with (
        aiohttp.ClientSession(connector=many_at_once, read_bufsize=_LONGEST_LINE) as session,
        asyncio.TaskGroup() as scope,
    ):
        looking = [scope.create_task(_look(session, one.url, seen), name=f"viewer {n}") for n in range(count)]
        await asyncio.sleep(5)  # first messages are whole pages
        seen.clear()
        before, began = one.cpu_seconds(), time.monotonic()
        await asyncio.sleep(seconds)
        share = (one.cpu_seconds() - before) / (time.monotonic() - began)
        for task in looking:
            task.cancel()
    # What was seen in the last moment may not have been read from the process yet.
    late = [at - one.changed[number] for number, at in seen if number in one.changed]
    assert late, "nothing changed meanwhile"
    print(f"{count} open pages, {CHANGES_A_SECOND:g} changes a second: {share:.1%} of a core", flush=True)
    print(f"a change is in each after {percentile(late, 0.5):.3f} s (p50), {percentile(late, 0.99):.3f} s (p99)")


async def _look(session: aiohttp.ClientSession, url: str, seen: list[tuple[int, float]]) -> None:
    newest = -1
    async with session.get(f"{url}events", timeout=aiohttp.ClientTimeout(total=None)) as answer:
        async for line in answer.content:
            at = time.monotonic()
            numbers = [int(part.partition(b";")[0]) for part in line.split(b"change-")[1:]]
            seen += [(number, at) for number in sorted(set(numbers)) if number > newest]
            newest = max([newest, *numbers])


async def run(options: argparse.Namespace) -> None:
    async with served(options.jobs) as one:
        await pages(one)
        await viewers(one, options.viewers, options.seconds)
        await paint(one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0, help="for which pages are open")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    asyncio.run(serve_pretended(options.jobs) if options.serve else run(options))


if __name__ == "__main__":
    main()
