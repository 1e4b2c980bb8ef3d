"""``mirror`` with one kind more than it has: the tests' own Drill. ``python drill_manager.py run --config FILE``.

What a further kind needs of the program is its line in the table of kinds, which is what this does.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mirror.kinds import registry
from tests.doubles.drills import KINDS

registry.BUILT_IN = KINDS

from mirror.cli.main import main  # noqa: E402 - whoever imports the table gets the one above

if __name__ == "__main__":
    main()
