"""The sample Jobs that demonstrations send, and how each ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from mirror.model.views import JobView

_INSTALLED = Path(__file__).parent / "sample_jobs"
_IN_TREE = Path(__file__).parents[2] / "config" / "samples"
COPIES = 3

EXPECTED: Mapping[str, str] = {
    "plain": "Complete",
    "indexed": "Complete",
    "failing": "Failed",
    "pod-failure-policy": "Failed",
    "success-policy": "Complete",
}
EXPECTED_OF_KINDS: Mapping[str, str] = {"jobset": "Complete", "mpijob": "Complete"}
"""The same of other kinds' samples."""
"""What each sample that ends by itself says of its end in its first lines."""


def folder() -> Path:
    """Where the files are: in the source tree, or beside this module once it is installed."""
    return _IN_TREE if _IN_TREE.is_dir() else _INSTALLED


def sample_jobs(managed_by: str) -> Iterator[dict[str, Any]]:
    """The samples that end by themselves, a few times each."""
    for kind in EXPECTED:
        body = yaml.safe_load((folder() / f"{kind}.yaml").read_text())
        body["spec"]["managedBy"] = managed_by
        for number in range(1, COPIES + 1):
            yield {**body, "metadata": {**body["metadata"], "name": f"{kind}-{number}"}}


def expected(job: JobView) -> str:
    """How the Job should end."""
    return {**EXPECTED, **EXPECTED_OF_KINDS}[job.name.rpartition("-")[0]]
