"""How many source files the create of a Job passes: who reads it needs no more of them open."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import mirror
from tests.embedded.apiserver.asking import JOBS, Asking

MOST_FILES, MOST_RETURNS = 31, 72
"""Of a create that is accepted. A change that needs more should say why; one that needs fewer lowers them."""
_ROOT = str(Path(mirror.__file__).parent) + "/"


async def _path(asking: Asking, name: str) -> list[str]:
    """The files whose functions are called, in order, each once for as long as the calls stay in it."""
    found: list[str] = []

    def called(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(_ROOT) and found[-1:] != [file.removeprefix(_ROOT)]:
            found.append(file.removeprefix(_ROOT))

    containers = [{"name": "main", "image": "busybox", "command": ["true"]}]
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    before = sys.getprofile()
    sys.setprofile(called)
    try:
        await asking.ok("POST", JOBS, {"metadata": {"name": name}, "spec": spec})
    finally:
        sys.setprofile(before)
    return found


async def test_a_create_passes_few_files_and_seldom_goes_back() -> None:
    """Merging what is read together, and asking nothing twice, keeps both low."""
    asking = Asking()
    await _path(asking, "first")  # what is made once: decoders, shapes of kinds
    path = await _path(asking, "second")
    files = list(dict.fromkeys(path))
    assert len(files) <= MOST_FILES, files
    assert len(path) - len(files) <= MOST_RETURNS, path
