"""``python -m e2e.controlplane up``: control planes to try things on, until Ctrl-C. ``build``: compile the binaries."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
from pathlib import Path

from e2e.controlplane import build
from e2e.controlplane.assets import MissingBinaries
from e2e.controlplane.audit import Level
from e2e.controlplane.components import JOB_CONTROLLERS, Shape
from e2e.controlplane.provider import Binaries, Planes, control_planes
from e2e.controlplane.toolchain import CannotBuild

_DIRECTORY = "build-output/control-planes"


def main() -> int:
    """Run the command; the exit code is 1 if control planes cannot be had."""
    options = _arguments()
    try:
        if options.command == "build":
            print(build.build(wanted=(*build.BINARIES, *build.FURTHER) if options.kinds else build.BINARIES))
        else:
            asyncio.run(_up(options))
    except (CannotBuild, MissingBinaries) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


async def _up(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    provider = Binaries(*_shapes(options))
    async with control_planes(workers=options.workers, provider=provider) as planes:
        _write_kubeconfigs(planes, options.directory)
        _show(planes, options.directory)
        await stop.wait()
    _remove_kubeconfigs(planes, options.directory)


def _shapes(options: argparse.Namespace) -> tuple[Shape, Shape]:
    """The shapes of the management cluster and of a worker."""
    audit: Level | None = "Metadata" if options.audit else None
    if options.bare:
        return Shape(audit=audit), Shape(audit=audit)
    management = Shape(controllers=JOB_CONTROLLERS, audit=audit)
    return management, Shape(controllers=JOB_CONTROLLERS, scheduler=True, kwok=True, audit=audit)


def _write_kubeconfigs(planes: Planes, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, plane in planes.by_name.items():
        shutil.copy(plane.kubeconfig, directory / f"{name}.kubeconfig")


def _remove_kubeconfigs(planes: Planes, directory: Path) -> None:
    """They lead nowhere now. The directory goes too, if nothing else is in it."""
    for name in planes.by_name:
        (directory / f"{name}.kubeconfig").unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        directory.rmdir()


def _show(planes: Planes, directory: Path) -> None:
    for name, plane in planes.by_name.items():
        print(f"{name:<12} {plane.server}  files and logs in {plane.directory}")
    print("\nTry, until Ctrl-C:")
    for name in planes.by_name:
        print(f"  kubectl --kubeconfig {directory / name}.kubeconfig get namespaces")
    if any(plane.runs_pods for plane in planes.workers.values()):
        worker = next(iter(planes.workers))
        print(f"  kubectl --kubeconfig {directory / worker}.kubeconfig create job hello --image=any")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="compile what is missing into the cache, and print where that is")
    building.add_argument("--kinds", action="store_true", help="the controllers of all kinds, too: minutes each")
    up = commands.add_parser("up", help="start a management cluster and workers, until Ctrl-C")
    up.add_argument("--workers", type=int, default=2, help="how many workers (2)")
    up.add_argument("--bare", action="store_true", help="only etcd and API servers: no controllers, scheduler, nodes")
    up.add_argument("--audit", action="store_true", help="log every request")
    up.add_argument("--directory", type=_absolute, default=_DIRECTORY, help=f"for kubeconfigs ({_DIRECTORY})")
    return parser.parse_args()


def _absolute(path: str) -> Path:
    return Path(path).absolute()


if __name__ == "__main__":
    raise SystemExit(main())
