"""What people are told about a Job by events (4.15), as far as it follows from decisions."""

from __future__ import annotations

from mirror.jobcontroller.decide.values import Event
from mirror.model import names

NORMAL, WARNING = "Normal", "Warning"

SUSPENDED = Event(NORMAL, "Suspended", "Job suspended")
RESUMED = Event(NORMAL, "Resumed", "Job resumed")
COMPLETED = Event(NORMAL, "Completed", "Job completed")
TOO_MANY_SUCCEEDED = Event(
    WARNING, "TooManySucceededPods", "Too many succeeded pods running after completion count reached"
)


def failed(reason: str, message: str) -> Event:
    return Event(WARNING, reason, message)


def unusable_rule_names(problem: str) -> Event:
    """Ours (D17): the Job fails with the plain reason."""
    return Event(WARNING, "InvalidRuleNames", f"annotation {names.RULE_NAMES} {problem}")
