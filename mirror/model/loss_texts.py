"""What a Job says of its unreachable worker in ``jobmirror.io/waiting-because``, as ``decide`` writes it. Pure.

First how the worker is and the cause, then what follows of it for the Job (D14): when it is moved, or why it is not.
Who shows the cause as it is now, not as it was when that was written, takes what follows from here.
"""

from __future__ import annotations

import re

LOST, DECLARED_DEAD = "lost", "declared dead"
_FORM = re.compile(
    r"(?:worker (?P<worker>\S+) is (?:unreachable|lost|declared dead)|the lease on worker (?P<leased>\S+) has expired)"
    r"(?:(?::| \().*?)?; (?P<follows>(?:the Job |it is not fenced: ).*)",
    re.DOTALL,
)
"""The cause may be a worker's text: where that looks like what follows, more is shown, and nothing is left out."""


def lost_worker_text(worker: str, cause: str, *, is_declared_dead: bool = False) -> str:
    """How a worker is that has been lost for ``workers.lostAfter``, or is declared dead; what follows is added."""
    return f"worker {worker} is {DECLARED_DEAD if is_declared_dead else LOST}{f' ({cause})' if cause else ''}"


def follows_of(text: str, worker: str) -> str:
    """What follows for a Job of the loss of its worker: it is moved, waits, stays, and why; empty: it does not say.

    Args:
        text: why the Job makes no progress; it may be about anything.
        worker: the one that is recorded on it.
    """
    found = _FORM.fullmatch(text)
    if found is None or worker not in (found["worker"], found["leased"]):
        return ""
    return found["follows"]
