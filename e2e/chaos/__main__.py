"""``python -m e2e.chaos judge HISTORY``: what a stored history of a fault campaign breaks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from e2e.chaos import history
from e2e.chaos.judging import judge, summary


def main() -> int:
    """Run the command; the exit code is 1 if an invariant is broken, 2 if there is nothing to judge."""
    parser = argparse.ArgumentParser(prog="python -m e2e.chaos", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    judging = commands.add_parser("judge", help="judge a stored history")
    judging.add_argument("history", type=Path, help="the file that a campaign has written")
    options = parser.parse_args()
    return judge_file(options.history)


def judge_file(path: Path) -> int:
    """Print what a history is made of, and each broken invariant."""
    try:
        records = history.read(path)
    except (OSError, history.BadHistory) as problem:
        print(problem, file=sys.stderr)
        return 2
    breaches = judge(records)
    print(summary(records))
    for breach in breaches:
        print(breach)
    print(f"{len(breaches)} broken invariants")
    return 1 if breaches else 0


if __name__ == "__main__":
    raise SystemExit(main())
