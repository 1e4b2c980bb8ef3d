"""podFailurePolicy (F1–F6): which rule a failed pod matches, and what that makes of its failure.

What the rule does to the Job is decided in ``ending`` (FailJob), ``indexed`` (FailIndex) and ``track`` (Ignore, Count).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mirror.batch import rule_names, views
from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.decide.values import Container, Pod, Snapshot

IGNORE, COUNT, FAIL_INDEX, FAIL_JOB = "Ignore", "Count", "FailIndex", "FailJob"


class Match(msgspec.Struct, frozen=True):
    """What the policy makes of a failed pod."""

    action: str = ""
    """Empty: no rule matched."""
    message: str = ""
    """Of FailJob (F4)."""

    @property
    def is_counted(self) -> bool:
        return self.action != IGNORE


UNMATCHED = Match()


class Rule(msgspec.Struct, frozen=True):
    """One rule that can be understood, with its place in the spec."""

    index: int
    action: str
    is_by_exit_code: bool
    container: str | None = None
    is_in: bool = True
    codes: frozenset[int] = frozenset()
    patterns: frozenset[tuple[str, str]] = frozenset()
    """Type and status of pod conditions."""

    def match(self, pod: Pod) -> Match | None:
        what = self._what_matches(pod)
        if what is None:
            return None
        message = f"{what} matching {self.action} rule at index {self.index}" if self.action == FAIL_JOB else ""
        return Match(self.action, message)

    def _what_matches(self, pod: Pod) -> str | None:
        if self.is_by_exit_code:
            found = self._container_of(pod)
            if found is None:
                return None
            return f"Container {found.name} for pod {pod.namespace}/{pod.name} failed with exit code {found.exit_code}"
        kind = next((one.type for one in pod.conditions if (one.type, one.status) in self.patterns), None)
        return None if kind is None else f"Pod {pod.namespace}/{pod.name} has condition {kind}"

    def _container_of(self, pod: Pod) -> Container | None:
        """Containers go before init containers; one that has not failed never matches (F1)."""
        for is_init in (False, True):
            for one in pod.containers:
                if one.is_init is is_init and one.exit_code and self._matches(one.name, one.exit_code):
                    return one
        return None

    def _matches(self, container: str, code: int) -> bool:
        return self.container in (None, container) and (code in self.codes) is self.is_in


class FailurePolicy(msgspec.Struct, frozen=True):
    """The rules of a Job that has a policy, in order."""

    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, spec: Mapping[str, object], gates: FeatureGates) -> FailurePolicy | None:
        policy = spec.get("podFailurePolicy")
        if policy is None:
            return None
        listed = views.items(views.mapping(policy).get("rules"))
        rules = (_rule(index, views.mapping(one), gates) for index, one in enumerate(listed))
        return cls(tuple(rule for rule in rules if rule is not None))

    def match(self, pod: Pod) -> Match:
        """By the first rule that matches; a pod that none matches is counted (F2)."""
        for rule in self.rules:
            found = rule.match(pod)
            if found is not None:
                return found
        return UNMATCHED


def reason_of(snapshot: Snapshot, message: str) -> tuple[str, str]:
    """The reason of a Job that a FailJob rule fails (RN2, RN4), and why its rule names cannot be used, if so (D17)."""
    if not snapshot.gates.pod_failure_policy_name:
        return rule_names.PLAIN_REASON, ""
    try:
        given = rule_names.names_of(snapshot.spec, snapshot.annotations)
    except rule_names.BadRuleNames as problem:
        return rule_names.reason_of(None, message, server_knows_names=snapshot.server_knows_rule_names), str(problem)
    return rule_names.reason_of(given, message, server_knows_names=snapshot.server_knows_rule_names), ""


def _rule(index: int, rule: Mapping[str, object], gates: FeatureGates) -> Rule | None:
    """None for a rule that is passed over: of an unknown action or operator (F2), or of a gate that is off."""
    action = views.text(rule.get("action"))
    if action not in (IGNORE, COUNT, FAIL_INDEX, FAIL_JOB):
        return None
    if action == FAIL_INDEX and not gates.job_backoff_limit_per_index:
        return None
    if rule.get("onExitCodes") is None:
        patterns = map(views.mapping, views.items(rule.get("onPodConditions")))
        wanted = frozenset((views.text(one.get("type")), views.text(one.get("status"))) for one in patterns)
        return Rule(index, action, is_by_exit_code=False, patterns=wanted)
    codes = views.mapping(rule.get("onExitCodes"))
    operator = codes.get("operator")
    if operator not in ("In", "NotIn"):
        return None
    return Rule(
        index,
        action,
        is_by_exit_code=True,
        container=views.optional_text(codes.get("containerName")),
        is_in=operator == "In",
        codes=frozenset(map(views.number, views.items(codes.get("values")))),
    )
