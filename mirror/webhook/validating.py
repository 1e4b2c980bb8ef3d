"""Whether the annotations of a Job of ours can be understood: the validating half of the webhook (D16). Pure.

Only what a write changes is looked at, so that an old mistake never keeps a Job from being ended, released or deleted.
What is refused here would otherwise be told by ``waiting-because``. Not here: what annotations mean (``placement``,
``kinds``), whose own readers are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mirror.batch.rule_names import BadRuleNames
from mirror.kinds.base import is_held
from mirror.kinds.batch_job import rule_names
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean
from mirror.placement.selector import BadSelector, parse_selector
from mirror.webhook.reviews import Question, Verdict

MOST_WARNINGS = 5
_LONGEST_SHOWN = 100


def validate(question: Question, managed_by: str) -> Verdict:
    """Say no to what could not be understood later, in words that name the annotation and the way out."""
    found, old = question.found, question.old
    if JOB.managed_by(found) != managed_by:
        return Verdict()
    problems = [*_problems(found, old), *_harm(found, old)]
    return Verdict("; ".join(problems), warnings=tuple(_warnings(found, old)))


def _problems(found: Object, old: Object | None) -> Iterator[str]:
    """What is wrong with annotations that are new, or other than before."""
    for name, check in _CHECKS.items():
        value = found.annotations.get(name)
        if value is not None and (old is None or old.annotations.get(name) != value):
            why = check(found, value)
            if why:
                yield f"annotation {name}: {why}"


def _harm(found: Object, old: Object | None) -> Iterator[str]:
    """What a change would do to a Job that goes on already."""
    if old is None:
        return
    if is_held(JOB, found) and not is_held(JOB, old):
        yield (
            f"annotation {names.HELD}: only our webhook sets it, on create; it would end this suspension again: "
            "remove the annotation"
        )
    given, fixed = found.annotations.get(names.RULE_NAMES), old.annotations.get(names.RULE_NAMES)
    placed = JOB.summary(old).placed
    if given != fixed and placed is not None:
        where = clean(placed)
        yield f"annotation {names.RULE_NAMES}: fixed since the Job was placed on {where}; create another Job instead"


def _selector(_: Object, value: str) -> str:
    try:
        parse_selector(value)
    except BadSelector as error:
        return f"{clean(str(error))}; write a label selector such as region=eu,name in (a,b)"
    return ""


def _rule_names(found: Object, _: str) -> str:
    try:
        rule_names.check(found)
    except BadRuleNames as error:
        return f"{clean(str(error))}; write the index of each rule and its name, as in " + '{"0":"OutOfMemory"}'
    return ""


def _one_of(*words: str) -> Callable[[Object, str], str]:
    def check(_: Object, value: str) -> str:
        shown = clean(value)[:_LONGEST_SHOWN]
        return "" if value in words else f"'{shown}' is unknown; write {' or '.join(words)}"

    return check


_CHECKS: dict[str, Callable[[Object, str], str]] = {
    names.WORKER_SELECTOR: _selector,
    names.ON_WORKER_LOSS: _one_of("Wait", "Reschedule"),
    names.ON_MIRROR_LOSS: _one_of("Fail", "Recreate"),
    names.RULE_NAMES: _rule_names,
}
_KNOWN = frozenset((*_CHECKS, names.HELD, names.ASSIGNED_WORKER, names.WAITING_BECAUSE, names.MIRROR_UID))


def _warnings(found: Object, old: Object | None) -> list[str]:
    """Annotations that look like ours and are none: most likely misspelt."""
    before = old.annotations if old is not None else {}
    strange = [key for key in found.annotations if key.startswith(names.PREFIX) and key not in (_KNOWN | before.keys())]
    return [f"unknown annotation {clean(key)[:_LONGEST_SHOWN]}" for key in sorted(strange)[:MOST_WARNINGS]]
