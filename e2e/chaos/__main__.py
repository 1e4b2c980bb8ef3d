"""``python -m e2e.chaos --minutes N --seed S``: a fault campaign. ``judge HISTORY``: what a stored one breaks."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from e2e.chaos import history
from e2e.chaos.breaches import Breach
from e2e.chaos.campaign import Campaign
from e2e.chaos.counting import summary
from e2e.chaos.judging import judge
from e2e.controlplane.assets import MissingBinaries


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit code is 1 if an invariant is broken, 2 if there is nothing to judge."""
    if arguments[:1] == ["judge"]:
        parser = argparse.ArgumentParser(prog="python -m e2e.chaos judge", description="Judge a stored history.")
        parser.add_argument("history", type=Path, help="the file that a campaign has written")
        return judge_file(parser.parse_args(arguments[1:]).history)
    options = _options(arguments)
    path = options.history or Path(f"build-output/chaos-{options.seed}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(options.minutes * 60, options.seed, options.workers, path)
    try:
        breaches = asyncio.run(campaign.play())
    except MissingBinaries as problem:
        print(problem, file=sys.stderr)
        return 2
    return _tell(breaches)


def judge_file(path: Path) -> int:
    """Print what a history is made of, and each broken invariant."""
    try:
        records = history.read(path)
    except (OSError, history.BadHistory) as problem:
        print(problem, file=sys.stderr)
        return 2
    print(summary(records))
    return _tell(judge(records))


def _tell(breaches: list[Breach]) -> int:
    for breach in breaches:
        print(breach)
    print(f"{len(breaches)} broken invariants")
    return 1 if breaches else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m e2e.chaos",
        description="A fault campaign on real control planes. `judge HISTORY` judges a stored one again.",
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long things break (10)")
    parser.add_argument(
        "--seed", type=int, default=15, help="of all that is random: faults and what users request (15)"
    )
    parser.add_argument("--workers", type=int, default=2, help="how many worker clusters (2)")
    parser.add_argument("--history", type=Path, help="where to write the history (build-output/chaos-SEED.jsonl)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
