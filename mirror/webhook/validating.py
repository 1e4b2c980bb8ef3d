"""Whether the annotations of a Job of ours can be understood: the validating half of the webhook (D16). Pure.

Only what a write changes is looked at, so that an old mistake never keeps a Job from being ended, released or deleted.
What is refused here would otherwise be told by ``waiting-because``. Not here: what annotations mean (``placement``,
``kinds``), whose own readers are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from mirror.kinds.asking import is_ours
from mirror.kinds.base import Kind, is_held
from mirror.kinds.dependencies import BadCarry, requested_kinds
from mirror.kinds.own_annotations import mistakes
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.losses import OnLoss, OnMirrorLoss
from mirror.model.text import clean
from mirror.placement.preferences import BadPreference, order_of, priority_of, spread_of
from mirror.placement.selector import BadSelector, parse_selector
from mirror.webhook.reviews import Question, Verdict

_LONGEST_SHOWN = 100


def validate(
    question: Question, managed_by: str, *, on_loss_allowed: Collection[OnLoss] = frozenset(OnLoss)
) -> Verdict:
    """Say no to what could not be understood later, in words that name the annotation and the way out."""
    kind, found, old = question.kind, question.found, question.old
    if not is_ours(kind, found, managed_by):
        return Verdict()
    allowed = {names.ON_WORKER_LOSS: _on_loss(kind, on_loss_allowed), names.ON_MIRROR_LOSS: _on_mirror_loss(kind)}
    problems = [*_problems(kind, found, old, allowed), *_harm(kind, found, old)]
    before = {*old.annotations, *old.labels} if old is not None else ()
    return Verdict("; ".join(problems), warnings=mistakes(found, kind.own_annotations, but=before))


def _problems(
    kind: Kind, found: Object, old: Object | None, more: Mapping[str, Callable[[Object], str]]
) -> Iterator[str]:
    """What is wrong with annotations that are new, or other than before."""
    for name, check in {**_CHECKS, **more, **kind.own_annotations}.items():
        value = found.annotations.get(name)
        if value is not None and (old is None or old.annotations.get(name) != value):
            why = check(found)
            if why:
                yield f"annotation {name}: {why}"


def _harm(kind: Kind, found: Object, old: Object | None) -> Iterator[str]:
    """What a change would do to a source that goes on already."""
    if old is None:
        return
    if is_held(kind, found) and not is_held(kind, old):
        yield (
            f"annotation {names.HELD}: only our webhook sets it, on create; it would end this suspension again: "
            "remove the annotation"
        )
    placed = kind.summary(old).placed
    for name in kind.own_annotations if placed is not None else ():
        if found.annotations.get(name) != old.annotations.get(name):
            where, what = clean(placed or ""), kind.name
            yield f"annotation {name}: fixed since the {what} was placed on {where}; create another {what} instead"


def _selector(found: Object) -> str:
    try:
        parse_selector(found.annotations[names.WORKER_SELECTOR])
    except BadSelector as error:
        return f"{clean(str(error))}; write a label selector such as region=eu,name in (a,b)"
    return ""


def _carry(found: Object) -> str:
    try:
        requested_kinds(found.annotations)
    except BadCarry as error:
        return str(error)
    return ""


def _preference(read: Callable[[Mapping[str, str]], object]) -> Callable[[Object], str]:
    def check(found: Object) -> str:
        try:
            read(found.annotations)
        except BadPreference as error:
            return str(error)
        return ""

    return check


def _one_of(name: str, *words: str) -> Callable[[Object], str]:
    def check(found: Object) -> str:
        value = found.annotations[name]
        shown = clean(value)[:_LONGEST_SHOWN]
        return "" if value in words else f"'{shown}' is unknown; write {' or '.join(words)}"

    return check


def _on_loss(kind: Kind, allowed: Collection[OnLoss]) -> Callable[[Object], str]:
    """Only what the settings allow, and a kind can do; ``Wait`` always."""
    can = [one for one in OnLoss if one is OnLoss.WAIT or (one in allowed and kind.can_move)]
    if kind.fence is None:
        can = [one for one in can if one is not OnLoss.FENCE]
    is_allowed = _one_of(names.ON_WORKER_LOSS, *can)

    def check(found: Object) -> str:
        value = found.annotations[names.ON_WORKER_LOSS]
        if value in can or value not in tuple(OnLoss):
            return is_allowed(found)
        return f"{value} is not allowed here for a {kind.name}; write {' or '.join(can)}"

    return check


def _on_mirror_loss(kind: Kind) -> Callable[[Object], str]:
    """``Recreate`` only for a kind that can start over."""
    can = [one for one in OnMirrorLoss if one is OnMirrorLoss.FAIL or kind.can_move]
    return _one_of(names.ON_MIRROR_LOSS, *can)


_CHECKS: Mapping[str, Callable[[Object], str]] = {
    names.WORKER_SELECTOR: _selector,
    names.WORKER_ORDER: _preference(order_of),
    names.SPREAD_BY: _preference(spread_of),
    names.PRIORITY: _preference(priority_of),
    names.CARRY: _carry,
}
