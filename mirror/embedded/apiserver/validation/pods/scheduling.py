"""What the API refuses in where pods may run: tolerations, affinity, topology spread (C31)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import label_problems, label_value_problems, qualified_name_problems, subdomain_problems
from mirror.batch.violations import (
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported,
    required,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.validation.metadata import check_selector

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_COMPARISONS = ("Gt", "Lt")


def check_tolerations(field: str, tolerations: Sequence[Json]) -> Iterator[Violation]:
    """Which taints pods bear."""
    for position, toleration in enumerate(tolerations):
        yield from _check_toleration(f"{field}[{position}]", toleration)


def check_affinity(field: str, affinity: Json, *, allow_bad_selector_values: bool) -> Iterator[Violation]:
    """Affinity to nodes, to pods, and against pods."""
    node = affinity.get("nodeAffinity", {})
    if _REQUIRED in node:
        terms = node[_REQUIRED]["nodeSelectorTerms"] or ()
        path = f"{field}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            yield required(path, "must have at least one node selector term")
        for position, term in enumerate(terms):
            yield from _check_node_term(f"{path}[{position}]", term)
    for position, term in enumerate(node.get(_PREFERRED, ())):
        path = f"{field}.nodeAffinity.{_PREFERRED}[{position}]"
        yield from _check_weight(path, term["weight"])
        yield from _check_node_term(f"{path}.preference", term["preference"], allow_bad_values=True)
    for kind in ("podAffinity", "podAntiAffinity"):
        part: Json = affinity.get(kind, {})
        for position, term in enumerate(part.get(_REQUIRED, ())):
            path = f"{field}.{kind}.{_REQUIRED}[{position}]"
            yield from _check_pod_term(path, term, allow_bad_values=allow_bad_selector_values)
        for position, term in enumerate(part.get(_PREFERRED, ())):
            path = f"{field}.{kind}.{_PREFERRED}[{position}]"
            yield from _check_weight(path, term["weight"])
            yield from _check_pod_term(
                f"{path}.podAffinityTerm", term["podAffinityTerm"], allow_bad_values=allow_bad_selector_values
            )


def check_spread(field: str, constraints: Sequence[Json]) -> Iterator[Violation]:
    """How evenly pods are spread."""
    kinds = [(one["topologyKey"], one["whenUnsatisfiable"]) for one in constraints]
    later = Counter(kinds)
    for position, (constraint, kind) in enumerate(zip(constraints, kinds, strict=True)):
        path = f"{field}[{position}]"
        yield from _check_constraint(path, constraint)
        later[kind] -= 1
        if later[kind]:
            text = f"{{{kind[0]}, {kind[1]}}}"
            yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", quoted(text))
        yield from _check_constraint_details(path, constraint)


def _check_toleration(field: str, toleration: Json) -> Iterator[Violation]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        yield from invalid_texts(f"{field}.key", key, qualified_name_problems(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{field}.operator", json_text(operator), detail)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", json_text(effect), detail)
    if operator in ("", "Equal"):
        if problems := label_value_problems(value):
            yield invalid_text(f"{field}.operator", value, ";".join(problems))
    elif operator == "Exists":
        if value:
            yield invalid_text(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        comparisons = ("Lt", "Gt") if operator in _COMPARISONS else ()
        yield not_supported(f"{field}.operator", operator, ("Equal", "Exists", *comparisons))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{field}.effect", effect, _EFFECTS)


def _check_weight(field: str, weight: int) -> Iterator[Violation]:
    if not 1 <= weight <= 100:
        yield invalid(f"{field}.weight", weight, "must be in the range 1-100")


def _check_node_term(field: str, term: Json, *, allow_bad_values: bool = False) -> Iterator[Violation]:
    for position, requirement in enumerate(term.get("matchExpressions", ())):
        path = f"{field}.matchExpressions[{position}]"
        yield from _check_node_requirement(path, requirement, allow_bad_values=allow_bad_values)
    for position, requirement in enumerate(term.get("matchFields", ())):
        yield from _check_node_field(f"{field}.matchFields[{position}]", requirement)


def _check_node_requirement(field: str, requirement: Json, *, allow_bad_values: bool) -> Iterator[Violation]:
    operator, key, values = requirement["operator"], requirement["key"], requirement.get("values", ())
    match operator:
        case "In" | "NotIn":
            if not values:
                yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{field}.values", detail)
        case "Gt" | "Lt":
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{field}.values", detail)
        case _:
            yield invalid(f"{field}.operator", json_text(operator), "not a valid selector operator")
    yield from invalid_texts(f"{field}.key", key, qualified_name_problems(key))
    for position, value in () if allow_bad_values else enumerate(values):
        yield from invalid_texts(f"{field}.values[{position}]", value, label_value_problems(value))


def _check_node_field(field: str, requirement: Json) -> Iterator[Violation]:
    operator, key, values = requirement["operator"], requirement["key"], requirement.get("values", ())
    if operator not in ("In", "NotIn"):
        yield invalid(f"{field}.operator", json_text(operator), "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{field}.values", detail)
    if key != "metadata.name":
        yield invalid_text(f"{field}.key", key, "not a valid field selector key")
        return
    for position, value in enumerate(values):
        yield from invalid_texts(f"{field}.values[{position}]", value, subdomain_problems(value))


def _check_pod_term(field: str, term: Json, *, allow_bad_values: bool) -> Iterator[Violation]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from check_selector(f"{field}.{name}", term.get(name), allow_bad_values=allow_bad_values)
    for namespace in term.get("namespaces", ()):
        yield from invalid_texts(f"{field}.namespace", namespace, label_problems(namespace))
    yield from _check_label_keys(field, term)
    if not term["topologyKey"]:
        yield required(f"{field}.topologyKey", "can not be empty")
    yield from invalid_texts(f"{field}.topologyKey", term["topologyKey"], qualified_name_problems(term["topologyKey"]))


def _check_label_keys(field: str, term: Json) -> Iterator[Violation]:
    """matchLabelKeys and mismatchLabelKeys; the server adds the former to the selector only in pods."""
    selector: Json | None = term.get("labelSelector")
    keys: Sequence[str] = term.get("matchLabelKeys", ())
    mismatched: Sequence[str] = term.get("mismatchLabelKeys", ())
    excluded = frozenset(mismatched)
    for name, listed in (("matchLabelKeys", keys), ("mismatchLabelKeys", mismatched)):
        if listed and selector is None:
            yield forbidden(f"{field}.{name}", "must not be specified when labelSelector is not set")
            continue
        for position, key in enumerate(listed):
            yield from invalid_texts(f"{field}.{name}[{position}]", key, qualified_name_problems(key))
    if selector is not None:
        seen = set(selector.get("matchLabels", {}))
        positions = {key: position for position, key in enumerate(keys)}
        for expression in selector.get("matchExpressions", ()):
            key = expression["key"]
            if key in positions and key in seen:
                detail = "exists in both matchLabelKeys and labelSelector"
                yield invalid_text(f"{field}[{positions[key]}]", key, detail)
            seen.add(key)
    for position, key in enumerate(keys):
        if key in excluded:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid_text(f"{field}.matchLabelKeys[{position}]", key, detail)


def _check_constraint(field: str, constraint: Json) -> Iterator[Violation]:
    skew, action = constraint["maxSkew"], constraint["whenUnsatisfiable"]
    if skew <= 0:
        yield invalid(f"{field}.maxSkew", skew, "must be greater than zero")
    if not constraint["topologyKey"]:
        yield required(f"{field}.topologyKey", "can not be empty")
    if action not in _ACTIONS:
        yield not_supported(f"{field}.whenUnsatisfiable", action, _ACTIONS)


def _check_constraint_details(field: str, constraint: Json) -> Iterator[Violation]:
    domains, action = constraint.get("minDomains"), constraint["whenUnsatisfiable"]
    if domains is not None and domains <= 0:
        yield invalid(f"{field}.minDomains", domains, "must be greater than zero")
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(f"{field}.minDomains", domains, detail)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(name)
        if policy is not None and policy not in _POLICIES:
            yield not_supported(f"{field}.{name}", policy, _POLICIES)
    yield from _check_label_keys(field, constraint)
    yield from check_selector(f"{field}.labelSelector", constraint.get("labelSelector"))
