"""``mirror`` with one kind more than it has: the tests' own Drill. ``python drill_manager.py run --config FILE``.

What a further kind needs of the program is its line in the table of kinds, which is what this does. In a campaign it is
on a machine of its own besides (``chaos/own_machine``).
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from e2e.chaos import own_machine

own_machine.settle_in()

from mirror.kinds import registry  # noqa: E402 - what it takes from its machine it takes when it is imported
from mirror.kube import client  # noqa: E402 - the same
from mirror.model.version import version  # noqa: E402 - the same
from mirror.runtime.clock import SystemClock  # noqa: E402 - the same
from tests.doubles.drills import KINDS  # noqa: E402 - the same


def _now(self: SystemClock) -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


registry.BUILT_IN = KINDS
SystemClock.now = _now  # type: ignore[method-assign]  # by the clock of this machine, for all that have one
vars(client)["version"] = lambda: version() + own_machine.signature()

from mirror.cli.main import main  # noqa: E402 - whoever imports the table gets the one above

if __name__ == "__main__":
    main()
