"""How a worker is emptied: the values of the annotation ``drain`` on what declares it (D14, D15). Pure.

How many of a source's moves were for that is the message of its condition ``jobmirror.io/Drained``. It is not in that
of ``Moved``, which earlier releases read, and where each move has a number of its own.
"""

import re

WAIT = "wait"
"""No new Jobs; those that are there end there."""
MOVE = "move"
"""Those that have not started, or are suspended, go to other workers; the others end there."""
MOVE_STARTED = "move-started"
"""Those that run are stopped, and go on elsewhere."""
DRAINS = (WAIT, MOVE, MOVE_STARTED)
MOVING = (MOVE, MOVE_STARTED)
_LEFT = re.compile("([0-9]{1,6}) of its moves left a drained worker")


def drains_text(count: int) -> str:
    """As in the condition."""
    return f"{count} of its moves left a drained worker"


def parse_drains(message: str) -> int:
    """From the condition; what is none of ours says nothing."""
    found = _LEFT.fullmatch(message)
    return int(found[1]) if found is not None else 0
