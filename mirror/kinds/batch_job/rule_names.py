"""Names of podFailurePolicy rules on their way (D17): out with the mirror, back in a failed source's reason.

The names that a source gives, in its spec or by annotation, are validated and go to the mirror when it is created: they
are fixed from then on. What comes back from a worker whose controller knows no names gets the name of the rule that the
message ends with; a reason that names one already passes. Pure; called by ``body`` and ``kind``.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror.batch import conditions, rule_names, views
from mirror.batch.rule_names import BadRuleNames
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean


def check(source: Object) -> None:
    """Look at the annotation of a source that is to be placed.

    Raises:
        BadRuleNames: it cannot be used; the text says why.
    """
    if names.RULE_NAMES in source.annotations:
        rule_names.names_of(source.spec_dict(), source.annotations)


def problem(source: Object) -> str:
    """What is wrong with the annotation, and the way out, for people; empty if nothing is."""
    try:
        check(source)
    except BadRuleNames as error:
        return f"{clean(str(error))}; write the index of each rule and its name, as in " + '{"0":"OutOfMemory"}'
    return ""


def for_mirror(source: Object, spec: Mapping[str, object], *, server_knows_names: bool = False) -> dict[str, str]:
    """The annotation that a new mirror gets; none for a source without names, or with names that broke since.

    Where the management cluster's server knows names, every rule has one: an empty map stands for the indexes (RN1).
    """
    try:
        given = rule_names.names_of(spec, source.annotations)
    except BadRuleNames:
        given = None
    if given is None and server_knows_names and spec.get("podFailurePolicy") is not None:
        given = {}
    return {} if given is None else {names.RULE_NAMES: rule_names.as_text(given)}


def named(mirror: Object, status: dict[str, object]) -> dict[str, object]:
    """A mirror's status with the reason of a FailJob rule's failure by its name, in FailureTarget and Failed."""
    listed = views.items(status.get("conditions"))
    if names.RULE_NAMES not in mirror.annotations or not any(map(_is_plain, listed)):
        return status
    return {**status, "conditions": [_renamed(mirror, one) if _is_plain(one) else one for one in listed]}


def _is_plain(condition: object) -> bool:
    found = views.mapping(condition)
    ends = found.get("type") in (conditions.FAILURE_TARGET, conditions.FAILED)
    return ends and found.get("reason") == rule_names.PLAIN_REASON


def _renamed(mirror: Object, condition: object) -> Mapping[str, object]:
    found = views.mapping(condition)
    message = views.text(found.get("message"))
    return {**found, "reason": rule_names.reason(mirror.spec_dict(), mirror.annotations, message)}
