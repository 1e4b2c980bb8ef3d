"""axe-core, which looks for what makes a page hard to use for those who hear it or see little of it.

It comes from npm, once, into the cache beside the control planes' programs; exactly this file, whoever serves it.
Without npm, or without a network, there is none, and ``test_page_dashboard`` skips what needs it: the page's own checks
of roles and names are in ``test_page``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from e2e.browser import Tab

VERSION = "4.14.1"
_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
_INSTALL_SECONDS = 120.0
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def read_axe() -> str:
    """The script; fetched when it is not in the cache, empty when it cannot be. ``AXE_CORE`` names another place."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = Path(os.environ.get("AXE_CORE") or Path(base) / "jobmirror" / f"axe-core-{VERSION}.min.js")
    if kept.exists() or not (npm := shutil.which("npm")):
        return kept.read_text() if kept.exists() else ""
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder]
        try:
            subprocess.run([*command, f"axe-core@{VERSION}"], check=True, capture_output=True, timeout=_INSTALL_SECONDS)
        except (subprocess.SubprocessError, OSError):
            return ""
        text = (Path(folder) / "node_modules/axe-core/axe.min.js").read_bytes()
    if sha256(text).hexdigest() != _SHA256:
        raise RuntimeError(f"axe-core {VERSION} is not the file that was looked at")
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(text)
    return text.decode()


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
