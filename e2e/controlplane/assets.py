"""Finds the binaries of a control plane by the envtest convention, so that people can bring their own.

For each binary, the first of these that has it: ``TEST_ASSET_<NAME>`` (a file; dashes become underscores), the folder
``KUBEBUILDER_ASSETS``, our own cache. What none of them has is compiled only when ``MIRROR_BUILD_CONTROLPLANE=1`` asks
for it. Called by ``cluster`` and by the fixtures. Not here: how to compile (``build``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from e2e.controlplane import build
from mirror.model.durations import parse_duration

_START_TIMEOUT_SECONDS = 180.0


class MissingBinaries(RuntimeError):
    """Some binaries are nowhere; the text names them and says how to get them."""


def find_binaries(*names: str, environment: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The executables of these names.

    Raises:
        MissingBinaries: at least one is nowhere, and nobody asked to build it.
        CannotBuild: building was asked for and failed.
    """
    found = {name: _find(name, environment) for name in names}
    absent = [name for name, path in found.items() if path is None]
    if absent and environment.get("MIRROR_BUILD_CONTROLPLANE") == "1":
        build.build(wanted=[*build.BINARIES, *(one for one in build.FURTHER if one.name in absent)])
        found |= {name: build.cached(name) for name in absent}
    elif absent:
        raise MissingBinaries(
            f"no {', '.join(absent)}: run `python -m e2e.controlplane build` (or set MIRROR_BUILD_CONTROLPLANE=1), "
            "or name a folder that holds them in KUBEBUILDER_ASSETS"
        )
    return {name: path for name, path in found.items() if path is not None}


def start_timeout_seconds(environment: Mapping[str, str] = os.environ) -> float:
    """How long a control plane may take to be ready: ``KUBEBUILDER_CONTROLPLANE_START_TIMEOUT``, else three minutes.

    Raises:
        BadDuration: the variable holds neither a duration like ``90s`` nor a number of seconds.
    """
    text = environment.get("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "").strip()
    if not text:
        return _START_TIMEOUT_SECONDS
    return float(text) if text.replace(".", "", 1).isdecimal() else parse_duration(text)


def _find(name: str, environment: Mapping[str, str]) -> Path | None:
    candidates = [environment.get(f"TEST_ASSET_{name.upper().replace('-', '_')}", "")]
    if folder := environment.get("KUBEBUILDER_ASSETS", ""):
        candidates.append(str(Path(folder) / name))
    candidates.append(str(build.cached(name)))
    return next((Path(path).resolve() for path in candidates if path and _is_executable(path)), None)


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
