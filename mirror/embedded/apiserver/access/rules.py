"""What a policy rule of RBAC allows, and whether some rules hold all that others give. Pure.

``policy`` finds the rules of a user; ``escalation`` compares them with those that the user is about to give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from mirror.batch.quoting import quoted

ALL = "*"


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


def missing(held: Sequence[Rule], given: Iterable[Rule]) -> list[Rule]:
    """The smallest parts of ``given`` that nobody with the rules ``held`` has."""
    return [part for rule in given for part in _parts(rule) if not any(_covers(one, part) for one in held)]


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


def list_of(values: Iterable[str]) -> str:
    """Texts as Go prints a slice of them, each quoted."""
    return "[" + " ".join(map(quoted, values)) + "]"


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
    """Whether a rule holds a part of another, which has at most one of everything."""
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
    return "{" + ", ".join(f"{name}:{list_of(values)}" for name, values in fields if values) + "}"
