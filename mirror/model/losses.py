"""What becomes of a Job whose worker is lost, as users and settings say it (D14). Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

import msgspec

from mirror.model.text import clean

_LONGEST_SHOWN = 40


class OnLoss(StrEnum):
    """The policies that there are."""

    WAIT = "Wait"
    """It stays with its worker."""
    RESCHEDULE = "Reschedule"
    """It is moved after ``workers.lostAfter``; its copy may still run on the lost worker."""
    FENCE = "Fence"
    """It is moved once a lease has ended that the worker itself enforces; its copy does not run any more."""


class LossPolicy(msgspec.Struct, frozen=True):
    """What holds for one Job."""

    on_loss: OnLoss
    mistake: str = ""
    """Why that is not what was written on the Job or its namespace, for people."""


def loss_policy(
    on_job: str | None, on_namespace: str | None, *, default: OnLoss, allowed: Collection[OnLoss]
) -> LossPolicy:
    """The first that is said: by Job, namespace, settings. What is not understood or not allowed is ``Wait``."""
    text = on_job if on_job is not None else on_namespace
    if text is None:
        return LossPolicy(default)
    if text not in tuple(OnLoss):
        return LossPolicy(OnLoss.WAIT, f"the policy '{clean(text, longest=_LONGEST_SHOWN)}' is unknown")
    if OnLoss(text) not in allowed and OnLoss(text) is not OnLoss.WAIT:
        return LossPolicy(OnLoss.WAIT, f"the policy {text} is not allowed here")
    return LossPolicy(OnLoss(text))
