"""Files of other projects' Go modules, such as their CRDs, as the module proxy has them; kept by Go's own cache.

Versions are checked against the checksum database by ``go`` itself. Needs the Go that ``controlplane`` builds with.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import yaml

from e2e.controlplane.build import go_toolchain
from e2e.controlplane.client import Json
from e2e.controlplane.toolchain import CannotBuild

JOBSET = "sigs.k8s.io/jobset@v0.12.0"
_SECONDS = 300.0


@cache
def module_directory(module: str) -> Path:
    """Where the files of ``PATH@VERSION`` are; read only.

    Raises:
        CannotBuild: it cannot be had.
    """
    go = go_toolchain()
    with tempfile.TemporaryDirectory(prefix="mirror-module-") as elsewhere:
        done = subprocess.run(
            [go.program, "mod", "download", "-json", module],
            cwd=elsewhere,
            env=go.environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    try:
        found = json.loads(done.stdout)
        return Path(found["Dir"])
    except (ValueError, KeyError):
        raise CannotBuild(f"{module} cannot be downloaded: {(done.stdout + done.stderr)[-500:]}") from None


def definition(module: str, path: str) -> Json:
    """A CRD of a module, without conversion webhooks: nothing answers them here."""
    found: Json = yaml.load((module_directory(module) / path).read_text(), Loader=yaml.CSafeLoader)
    found.pop("status", None)
    found["spec"].pop("conversion", None)
    return found


def jobset_definition() -> Json:
    """The CRD of JobSets."""
    return definition(JOBSET, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml")
