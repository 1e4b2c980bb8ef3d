"""Which states are good, bad or on their way: the one table behind every colour of a command and of the page. Pure.

Not here: what a tone looks like (``cli.user.terminal``, and the style sheet of ``page``).
"""

from __future__ import annotations

from typing import Literal

Tone = Literal["good", "bad", "warning", "active", "muted", "plain"]

_OF_STATE: dict[str, Tone] = {
    # Of a source (``views.STATES``).
    "Waiting": "warning",
    "Suspended": "muted",
    "Placed": "active",
    "Running": "active",
    "Complete": "good",
    "Failed": "bad",
    "Deleting": "muted",
    "Deleted": "muted",
    # Of a worker.
    "Connected": "good",
    "Connecting": "warning",
    "Lost": "bad",
    "Unknown": "warning",
    # Of a manager.
    "Ready": "good",
    "NotReady": "warning",
    "Expired": "bad",
    # Of a pod.
    "Pending": "warning",
    "Succeeded": "good",
    "Terminating": "muted",
    # Of a finding, an event, a moment of a timeline.
    "ok": "good",
    "warn": "warning",
    "fail": "bad",
    "Warning": "warning",
    "Error": "bad",
    "Finished": "good",
}


def tone_of(state: str) -> Tone:
    """The tone of a state; ``plain`` for a word that has none."""
    return _OF_STATE.get(state, "plain")
