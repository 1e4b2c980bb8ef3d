"""Which policy holds for a source when its worker is lost (D14). Pure."""

from __future__ import annotations

from mirror.decide.snapshot import Policy, Source
from mirror.model import names
from mirror.model.fences import FENCED, mark_of
from mirror.model.losses import UNREAD, LossPolicy, OnLoss, OnNamespace, loss_policy


def policy_of(source: Source, policy: Policy, namespace_on_loss: OnNamespace) -> LossPolicy:
    """What its Job says, else its Namespace, else the settings; what cannot be done for its kind is ``Wait``."""
    said = source.found.annotations.get(names.ON_WORKER_LOSS)
    if said is None and namespace_on_loss is None and policy.on_loss is OnLoss.WAIT:
        return _WAIT
    kind = source.kind
    if not kind.can_move:
        is_asked = (said or namespace_on_loss or policy.on_loss) != OnLoss.WAIT
        return LossPolicy(OnLoss.WAIT, f"a {kind.name} is not moved" if is_asked else "")
    found = loss_policy(said, namespace_on_loss, default=policy.on_loss, allowed=policy.on_loss_allowed)
    if found.on_loss is OnLoss.FENCE and kind.fence is None:
        return LossPolicy(OnLoss.WAIT, f"a {kind.name} has no deadline by which it could be fenced")
    return found


def is_to_be_fenced(source: Source, policy: Policy, namespace_on_loss: OnNamespace) -> bool:
    """Whether a mirror of it is to have a lease; while that is not known, it keeps the one it has."""
    if namespace_on_loss is UNREAD and names.ON_WORKER_LOSS not in source.found.annotations:
        return source.kind.fence is not None and mark_of(source.stored.status) == FENCED
    return policy_of(source, policy, namespace_on_loss).on_loss is OnLoss.FENCE


_WAIT = LossPolicy(OnLoss.WAIT)
