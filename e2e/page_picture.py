"""``python -m e2e.page_picture FILE``: the picture of the page that the documents show."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from e2e.browser import browser_tab, find_chromium
from mirror.kinds.registry import BUILT_IN
from mirror.page.serving import Place, serve
from mirror.telemetry.logs import get_log
from tests.doubles.pretended import picture


async def take(file: Path) -> None:
    """A day's Jobs on four workers."""
    program = find_chromium()
    if program is None:
        raise SystemExit("there is no chromium on the PATH")
    place = Place(listen=("127.0.0.1", 0), kinds=BUILT_IN, managed_by="jobmirror.io/controller", origin="7f3c9a4e")
    known = picture(datetime.now(UTC))
    async with serve(known, place, is_leading=lambda: True, log=get_log("page")) as port, browser_tab(program) as tab:
        await tab.look(width=1280, height=1120)
        await tab.open(f"http://127.0.0.1:{port}/")
        await tab.wait_for("document.getElementById('live').textContent === 'Live'")
        shot = await tab.picture()
    await asyncio.to_thread(file.write_bytes, shot)


if __name__ == "__main__":
    asyncio.run(take(Path(sys.argv[1])))
