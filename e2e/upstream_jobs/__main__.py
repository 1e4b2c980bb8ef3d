"""``python -m e2e.upstream_jobs [REGEX]``: run upstream's integration tests of the Job controller with ours.

``--theirs`` runs them as they are, with the controller that they were written for, and shows what a machine makes fail.
``--kills`` ends ours by SIGKILL wherever a test stops its controller.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.controlplane.assets import MissingBinaries, find_binaries
from e2e.controlplane.process import Program, installed_mirror
from e2e.controlplane.scratch import Scratch
from e2e.controlplane.toolchain import CannotBuild
from e2e.ports import reserved_port
from e2e.upstream_jobs.building import Suite, build_suite

_RESULT = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+)")
_LOOK_AGAIN_SECONDS = 0.5


def main() -> int:
    """Run the command; the exit code is 1 if a test failed or nothing could be run."""
    options = _arguments()
    try:
        binary = find_binaries("etcd")["etcd"]
        print("compiling …", file=sys.stderr, flush=True)
        suite = build_suite(theirs=options.theirs)
    except (CannotBuild, MissingBinaries) as problem:
        print(problem, file=sys.stderr)
        return 1
    found: Counter[str] = Counter()
    scratch = Scratch("upstream-jobs")
    try:
        with reserved_port() as port:
            url = f"http://127.0.0.1:{port}"
            etcd = Program(_etcd(binary, scratch, url), scratch)
            etcd.start()
            tests = Program(_command(suite, scratch, url, options), scratch)
            with _kept(tests.log, suite.directory / "output.log") as kept:
                tests.start()
                for line in _lines(tests):
                    if result := _RESULT.match(line):
                        found[result[1]] += 1
                        print(line.rstrip(), flush=True)
    finally:
        scratch.close()
    print(f"{found['PASS']} passed, {found['FAIL']} failed, {found['SKIP']} skipped; all that was said is in {kept}")
    return 0 if tests.exit_code == 0 and found["PASS"] else 1


def _etcd(binary: Path, scratch: Scratch, url: str) -> list[str | Path]:
    return [
        binary,
        f"--data-dir={scratch.path / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def _command(suite: Suite, scratch: Scratch, etcd: str, options: argparse.Namespace) -> list[str | Path]:
    environment = {
        "KUBE_INTEGRATION_ETCD_URL": etcd,
        "TEST_SRCDIR": suite.modules,
        "TEST_WORKSPACE": ".",
        "TMPDIR": scratch.path,
        "MIRROR_SUITE_COMMAND": installed_mirror(),
        "MIRROR_SUITE_DIRECTORY": scratch.path,
        "MIRROR_SUITE_KILLS": str(options.kills).lower(),
    }
    return [
        "/usr/bin/env",
        *(f"{name}={value}" for name, value in environment.items()),
        suite.program,
        "-test.v",
        "-test.timeout=150m",
        f"-test.run={options.regex}",
    ]


@contextmanager
def _kept(log: Path, at: Path) -> Iterator[Path]:
    """Where the log will be when the scratch directory is gone."""
    try:
        yield at
    finally:
        if log.exists():
            shutil.copy(log, at)


def _lines(program: Program) -> Iterator[str]:
    """What it says, until it ends."""
    with program.log.open(errors="replace") as log:
        is_running, begun = True, ""
        while is_running:
            time.sleep(_LOOK_AGAIN_SECONDS)  # a file that grows tells nobody
            is_running = program.is_running
            *whole, begun = (begun + log.read()).split("\n")
            yield from whole


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.upstream_jobs", description=__doc__)
    parser.add_argument("regex", nargs="?", default="^Test", help="as for `go test -run` (all tests)")
    parser.add_argument("--theirs", action="store_true", help="upstream's own controller")
    parser.add_argument("--kills", action="store_true", help="SIGKILL instead of SIGTERM")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
