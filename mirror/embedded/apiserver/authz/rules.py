"""What a request wants, what a policy rule of RBAC allows, and whether some rules hold all that others give. Pure.

What is wanted need not be served to be judged: who may not see what is not there gets the same 403 as for what is.
``policy`` finds the rules of a user; ``escalation`` compares them with those that the user is about to give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from mirror.batch.quoting import quoted, quoted_list
from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure, qualified
from mirror.embedded.apiserver.messages import User
from mirror.embedded.apiserver.request.info import RequestInfo

ALL = "*"
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
MOST_PARTS = 10_000
"""Of rules that are given and not held as they are; those of all built-in roles together have some thousands."""


class Rule(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rule as it is stored: what may be done with resources, or with paths that are no resources."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")


@dataclass(frozen=True, slots=True)
class Attributes:
    """What somebody wants to do: with a resource, or, if ``path`` is not empty, with a path that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined(self) -> str:
        """``pods/log``, or ``pods``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def attributes_of(info: RequestInfo) -> Attributes:
    """What the request wants, as rules have it."""
    if not info.parts:
        return Attributes(info.verb, path=info.path or "/")
    name = info.name or info.selected_name
    return Attributes(info.verb, info.group, info.parts[0], info.subresource, info.namespace, name)


def refusal(user: User, wanted: Attributes, reason: str = "") -> StatusError:
    """403: this user may not do that."""
    told = _sentence(user, wanted).translate(_ESCAPED) + (f": {reason}" if reason else "")
    what = qualified(wanted.resource, wanted.group)
    if not what:
        message = f"forbidden: {told}"
    elif wanted.name:
        message = f"{what} {quoted(wanted.name)} is forbidden: {told}"
    else:
        message = f"{what} is forbidden: {told}"
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    body = failure(403, "Forbidden", message, details)
    body.setdefault("details", {})
    return StatusError(body)


def _sentence(user: User, wanted: Attributes) -> str:
    who = f"User {quoted(user.name)} cannot {wanted.verb}"
    if wanted.path:
        return f"{who} path {quoted(wanted.path)}"
    what = f"{who} resource {quoted(wanted.combined)} in API group {quoted(wanted.group)}"
    if wanted.namespace:
        return f"{what} in the namespace {quoted(wanted.namespace)}"
    return f"{what} at the cluster scope"


FULL = (
    Rule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)),
    Rule(verbs=(ALL,), non_resource_urls=(ALL,)),
)
"""Everything."""


def allows(rule: Rule, wanted: Attributes) -> bool:
    """Whether the rule is enough."""
    if ALL not in rule.verbs and wanted.verb not in rule.verbs:
        return False
    if wanted.path:
        return any(_url_covers(one, wanted.path) for one in rule.non_resource_urls)
    return (
        (ALL in rule.api_groups or wanted.group in rule.api_groups)
        and _has_resource(rule.resources, wanted.combined, wanted.subresource)
        and (not rule.resource_names or wanted.name in rule.resource_names)
    )


def missing(held: Iterable[Rule], given: Iterable[Rule]) -> list[Rule]:
    """The smallest parts of ``given`` that nobody with the rules ``held`` has.

    Raises:
        TooManyParts: rules that no single one of ``held`` covers have more than ``MOST_PARTS``, of which a rule has as
            many as the product of its lists; nobody else could be served while they are compared.
    """
    having, lacking, left = _Having(held), list[Rule](), MOST_PARTS
    for rule in given:
        if having.covers(rule):
            continue
        left -= _count(rule)
        if left < 0:
            raise TooManyParts
        lacking += (part for part in _parts(rule) if not having.covers(part))
    return lacking


class TooManyParts(Exception):
    """Rules are not compared."""


class _Having:
    """Rules, found by what they are about."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_resource: dict[str, list[Rule]] = {}
        self._of_urls: list[Rule] = []
        for rule in dict.fromkeys(rules):
            for resource in dict.fromkeys(rule.resources):
                self._by_resource.setdefault(resource, []).append(rule)
            if rule.non_resource_urls:
                self._of_urls.append(rule)

    def covers(self, rule: Rule) -> bool:
        """Whether one of them alone does."""
        if not rule.resources:
            return any(_covers(one, rule) for one in self._of_urls)
        first = rule.resources[0]
        names = (ALL, first, f"*/{first.partition('/')[2]}")
        return any(_covers(one, rule) for name in names for one in self._by_resource.get(name, ()))


def described(rules: Iterable[Rule]) -> str:
    """Missing parts, a line each, those of one resource together, as the server prints them."""
    simple: dict[tuple[object, ...], list[str]] = {}
    lines: set[str] = set()
    for rule in rules:
        if rule.non_resource_urls:
            lines.add(_line(rule))
        else:
            simple.setdefault((rule.api_groups, rule.resources, rule.resource_names), []).extend(rule.verbs)
    for (groups, resources, names), verbs in simple.items():
        assert isinstance(groups, tuple)
        assert isinstance(resources, tuple)
        assert isinstance(names, tuple)
        rule = Rule(api_groups=groups, resources=resources, resource_names=names, verbs=tuple(verbs))
        lines.add(_line(rule))
    return "\n".join(sorted(lines))


def _count(rule: Rule) -> int:
    """How many parts it has."""
    named = len(rule.api_groups) * len(rule.resources) * max(1, len(rule.resource_names))
    return (named + len(rule.non_resource_urls)) * len(rule.verbs)


def _parts(rule: Rule) -> Iterator[Rule]:
    """The rule as many that each have one of everything."""
    for group in rule.api_groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                part = Rule(verbs=(verb,), api_groups=(group,), resources=(resource,))
                if not rule.resource_names:
                    yield part
                for name in rule.resource_names:
                    yield msgspec.structs.replace(part, resource_names=(name,))
    for url in rule.non_resource_urls:
        for verb in rule.verbs:
            yield Rule(verbs=(verb,), non_resource_urls=(url,))


def _covers(held: Rule, part: Rule) -> bool:
    """Whether a rule alone holds all of another."""
    return (
        (ALL in held.verbs or set(part.verbs) <= set(held.verbs))
        and (ALL in held.api_groups or set(part.api_groups) <= set(held.api_groups))
        and all(_has_resource(held.resources, one, one.partition("/")[2]) for one in part.resources)
        and all(any(_url_covers(own, one) for own in held.non_resource_urls) for one in part.non_resource_urls)
        and (
            not held.resource_names
            or (bool(part.resource_names) and set(part.resource_names) <= set(held.resource_names))
        )
    )


def _has_resource(resources: Sequence[str], combined: str, subresource: str) -> bool:
    if ALL in resources or combined in resources:
        return True
    return bool(subresource) and f"*/{subresource}" in resources


def _url_covers(pattern: str, path: str) -> bool:
    if pattern in (ALL, path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


def _line(rule: Rule) -> str:
    fields = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{name}:{quoted_list(values)}" for name, values in fields if values) + "}"
