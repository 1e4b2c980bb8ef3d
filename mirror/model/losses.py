"""What becomes of a Job whose worker is lost, as users and settings say it (D14). Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, StrEnum

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


class Unread(Enum):
    """What a Namespace says of lost workers is read, and not known yet, or not allowed to us."""

    UNREAD = "unread"


UNREAD = Unread.UNREAD
OnNamespace = str | Unread | None
"""What a Namespace says of lost workers; None: nothing, or it is not read (``workers.onLossOfNamespaces``)."""


class OnMirrorLoss(StrEnum):
    """What becomes of a Job whose mirror vanishes after it has started (D11)."""

    FAIL = "Fail"
    RECREATE = "Recreate"
    """It starts over, on the same worker, once nothing of the vanished mirror runs any more."""


class LossPolicy(msgspec.Struct, frozen=True):
    """What holds for one Job."""

    on_loss: OnLoss
    mistake: str = ""
    """Why that is not what was written on the Job or its namespace, for people."""


def loss_policy(
    on_job: str | None, on_namespace: OnNamespace, *, default: OnLoss, allowed: Collection[OnLoss]
) -> LossPolicy:
    """The first that is said: by Job, namespace, settings. What is not understood or not allowed is ``Wait``."""
    text = on_job if on_job is not None else on_namespace
    if text is None:
        return LossPolicy(default)
    if text is UNREAD:
        return LossPolicy(OnLoss.WAIT, "the policy of its namespace is not known")
    whose = "policy" if on_job is not None else "namespace's policy"
    if text not in tuple(OnLoss):
        return LossPolicy(OnLoss.WAIT, f"the {whose} '{clean(text, longest=_LONGEST_SHOWN)}' is unknown")
    if OnLoss(text) not in allowed and OnLoss(text) is not OnLoss.WAIT:
        return LossPolicy(OnLoss.WAIT, f"the {whose} {text} is not allowed here")
    return LossPolicy(OnLoss(text))
