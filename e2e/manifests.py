"""The objects that kustomize and the chart give, for tests of ``deploy/`` and of the shipped rights.

Rendering takes the kustomize that is built into kubectl, and Helm's engine (``controlplane/gomod/helm``). Not here:
what is expected of the objects.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from e2e.controlplane.assets import find_binaries
from e2e.controlplane.client import Json

TOP = Path(__file__).resolve().parents[1]
DEPLOY = TOP / "deploy"
OVERLAYS = sorted(path.name for path in (DEPLOY / "kustomize/overlays").iterdir())
NAMESPACE = "jobmirror-system"
_TIMEOUT_SECONDS = 300

Key = tuple[str, str, str]
"""Kind, namespace, name."""


def kustomized(overlay: str | Path, *, top: Path = TOP) -> list[Json]:
    """The objects of an overlay, or of another folder under ``deploy/kustomize``, of this tree or another.

    A path is a folder anywhere.
    """
    if isinstance(overlay, str):
        overlay = top / "deploy/kustomize" / (overlay if "/" in overlay else f"overlays/{overlay}")
    return _read(_run([find_binaries("kubectl")["kubectl"], "kustomize", overlay]))


def charted(values: Json, *, namespace: str = NAMESPACE) -> list[Json]:
    """The objects of the chart with these values."""
    command: list[str | Path] = [find_binaries("helm-template")["helm-template"], DEPLOY / "helm/jobmirror", namespace]
    return _read(_run(command, yaml.safe_dump(values)))


def key(found: Json) -> Key:
    """What tells an object from the others; kustomize's digest at the end of the ConfigMap's name is left out."""
    name = found["metadata"]["name"]
    is_generated = found["kind"] == "ConfigMap" and name.startswith("jobmirror-config-")
    return found["kind"], found["metadata"].get("namespace", ""), "jobmirror-config" if is_generated else name


def by_key(objects: Iterable[Json]) -> dict[Key, Json]:
    """The objects, each of which must be there once."""
    found: dict[Key, Json] = {}
    for one in objects:
        assert key(one) not in found, f"twice: {key(one)}"
        found[key(one)] = one
    return found


def one_of(objects: Iterable[Json], kind: str, name: str = "jobmirror") -> Json:
    """The object of this kind and name."""
    (found,) = (one for one in objects if (key(one)[0], key(one)[2]) == (kind, name))
    return found


def settings_text(objects: Iterable[Json]) -> str:
    """The configuration file in the ConfigMap."""
    return str(one_of(objects, "ConfigMap", "jobmirror-config")["data"]["mirror.yaml"])


def _run(command: list[str | Path], stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def _read(text: str) -> list[Json]:
    documents: Iterable[Any] = yaml.load_all(text, Loader=yaml.CSafeLoader)
    return [document for document in documents if document]
