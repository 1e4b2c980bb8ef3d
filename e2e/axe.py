"""axe-core, which looks for what makes a page hard to use for those who hear it or see little of it.

It comes out of a Python package that carries it, as pip installs it, with its version and hash in
``requirements-axe.txt``: once, into the cache beside the control planes'
programs. Of the package only this file is used.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from e2e.browser import Tab

LOCK = Path(__file__).with_name("requirements-axe.txt")
_FILE = "axe_playwright_python/axe.min.js"
_INSTALL_SECONDS = 120.0
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class NoAxe(RuntimeError):
    """The script is not here and cannot be had; the text says why, and what to do."""


def read_axe() -> str:
    """The script: the file that ``AXE_CORE`` names, else the cached one, else as pip brings it.

    Raises:
        NoAxe: pip cannot bring it.
        OSError: ``AXE_CORE`` names no file.
    """
    if own := os.environ.get("AXE_CORE"):
        return Path(own).read_text()
    locked = re.search(r"==(\S+)", LOCK.read_text())
    assert locked is not None
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = Path(base) / "jobmirror" / f"axe-of-playwright-python-{locked[1]}.min.js"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".axe.") as folder:
            (Path(folder) / "whole").write_bytes(_fetch(folder))
            (Path(folder) / "whole").rename(kept)  # several processes may do this at once
    return kept.read_text()


def _fetch(folder: str) -> bytes:
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", *options, "-r", str(LOCK), "--dest", folder]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except subprocess.SubprocessError as failed:
        said = getattr(failed, "stderr", None) or failed
        raise NoAxe(
            f"axe-core is not in the cache, and pip cannot bring it; AXE_CORE may name an axe.min.js: {said}"
        ) from None
    (wheel,) = Path(folder).glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        return files.read(_FILE)


async def violations(tab: Tab, axe: str) -> list[str]:
    """What is wrong with the page as it stands, as this script of axe-core finds it: the rule, and where."""
    await tab.evaluate(f"{axe};0")
    options = {"runOnly": {"type": "tag", "values": _RULES}, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = await tab.evaluate(
        f"axe.run(document, {options!r}).then(found => JSON.parse(JSON.stringify(found.violations)))"
    )
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}" for one in found for node in one["nodes"][:3]
    ]
