"""What a setting's value must be: one ``Rule`` per kind of value, named by the fields in ``schema``.

A rule turns what YAML gave into what the field holds, or says in one line what was expected. Rules know nothing of
the file, of the field's name, or of other fields (those conditions are in ``load``). What texts must be: ``texts``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mirror.model import names
from mirror.model.durations import BadDuration, parse_duration
from mirror.model.losses import OnLoss
from mirror.settings import texts
from mirror.settings.feature_gates import UPSTREAM_GATES, judge_gate
from mirror.settings.rule import Rule, Unexpected, Wrong, shown, suggestion

ALLOW_NAMES = (
    "loopback",
    "exec",
    "authProvider",
    "basicAuth",
    "filePaths",
    "tokenFile",
    "http",
    "insecureSkipTLSVerify",
    "proxyURL",
    "impersonation",
)
"""What a worker's kubeconfig is refused for unless ``workers.allow`` names it (docs/security.md)."""

FEATURE_GATES = (
    "GenericWorkload",
    "JobBackoffLimitPerIndex",
    "JobManagedBy",
    "JobPodReplacementPolicy",
    "JobSuccessPolicy",
    "MutablePodResourcesForSuspendedJobs",
    "MutableSchedulingDirectivesForSuspendedJobs",
    "PodFailurePolicyName",
    "WorkloadWithJob",
)
"""Designs that the Job controller can be told to leave out or, where they are alpha, to have."""

_ANNOTATIONS_BYTES = 256 * 1024
_MOST = 1_000_000
_MOST_PODS = 100_000


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise Unexpected
    return value


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unexpected
    if not math.isfinite(value) or not 0 <= value <= _MOST:
        raise Unexpected
    return float(value)


def _score_weight(value: object) -> float:
    weight = _rate(value)
    if weight > 10:
        raise Unexpected
    return weight


def _whole(most: int) -> Callable[[object], int]:
    """A whole number from 1 to ``most``."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise Unexpected
        return value

    return read


def _duration(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        raise Unexpected(f"a duration needs a unit: {value:g}s" if math.isfinite(value) else "")
    try:
        return parse_duration(texts.as_text(value))
    except BadDuration as error:
        raise Unexpected(str(error)) from None


def _pause(value: object) -> float:
    seconds = _duration(value)
    if not 0.001 <= seconds <= 24 * 3600:
        raise Unexpected
    return seconds


def _fence_ttl(value: object) -> float:
    seconds = _duration(value)
    if not 300 <= seconds <= 24 * 3600 or seconds != int(seconds):
        raise Unexpected
    return seconds


def _optional_duration(value: object) -> float | None:
    return None if value == "" else _duration(value)


def _one_of(*words: str) -> Rule:
    def read(value: object) -> str:
        text = texts.as_text(value)
        if text not in words:
            raise Unexpected
        return text

    return Rule(f"one of {', '.join(words)}", read)


def _list_of(item: Rule) -> Callable[[object], tuple[object, ...]]:
    """Each item obeys its rule and stands there once."""

    def read(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise Unexpected
        problems: list[tuple[str, str]] = []
        items: list[object] = []
        for index, raw in enumerate(value):
            try:
                found = item.apply(raw)
            except Wrong as wrong:
                problems += [(f"[{index}]{where}", what) for where, what in wrong.problems]
                continue
            if found in items:
                problems.append((f"[{index}]", f"{shown(found)} stands there twice; remove one"))
            items.append(found)
        if problems:
            raise Wrong(*problems)
        return tuple(items)

    return read


def _switches(known: tuple[str, ...]) -> Callable[[object], dict[str, bool]]:
    """Some of the known names, each true or false."""

    def read(value: object) -> dict[str, bool]:
        if not isinstance(value, dict):
            raise Unexpected
        problems = []
        for name, on in value.items():
            if name not in known:
                problems.append((f".{name}", f"unknown key{suggestion(name, known)}"))
            elif not isinstance(on, bool):
                problems.append((f".{name}", f"expected true or false, got {shown(on)}"))
        if problems:
            raise Wrong(*problems)
        return dict(value)

    return read


def _gates(value: object) -> dict[str, bool]:
    """Gates of our Job controller, and those of upstream's that may be ignored (``feature_gates``)."""
    known = (*FEATURE_GATES, *UPSTREAM_GATES)
    found = _switches(known)(value)
    judged = {name: judge_gate(name, on) for name, on in found.items() if name not in FEATURE_GATES}
    wrong = [(f".{name}", told[0]) for name, told in judged.items() if told is not None and told[1]]
    if wrong:
        raise Wrong(*wrong)
    return found


def _additions(item: Rule) -> Callable[[object], dict[str, str]]:
    """Keys that Kubernetes accepts and that are not ours, since those say whose a mirror is (D1)."""

    def read(value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            raise Unexpected
        problems: list[tuple[str, str]] = []
        for key, raw in value.items():
            if not texts.is_key(key):
                problems.append((f".{key}", "not a key that Kubernetes accepts; expected NAME or DOMAIN/NAME"))
            elif key.startswith(names.PREFIX):
                problems.append((f".{key}", f"keys under {names.PREFIX} are set by us; choose another"))
            try:
                item.apply(raw)
            except Wrong as wrong:
                problems += [(f".{key}{where}", what) for where, what in wrong.problems]
        if problems:
            raise Wrong(*problems)
        if sum(len(text.encode(errors="replace")) for pair in value.items() for text in pair) > _ANNOTATIONS_BYTES:
            raise Unexpected(f"more than {_ANNOTATIONS_BYTES // 1024} KiB, which Kubernetes refuses")
        return dict(value)

    return read


def _some_namespaces(value: object) -> tuple[object, ...]:
    found = _list_of(NAMESPACE)(value)
    if not found:
        raise Unexpected
    return found


TEXT = Rule("text", texts.as_text)
PATH = Rule("a path, or empty text", texts.path)
SWITCH = Rule("true or false", _switch)
RATE = Rule(f"a number ≥ 0 (0: unlimited) and ≤ {_MOST}", _rate)
BURST = Rule(f"a whole number ≥ 1 and ≤ {_MOST}", _whole(_MOST))
PODS = Rule(f"a whole number ≥ 1 and ≤ {_MOST_PODS}", _whole(_MOST_PODS))
DURATION = Rule("a duration ≥ 0 such as 15m or 0s", _duration)
PAUSE = Rule("a duration between 1ms and 24h, such as 10s", _pause)
OPTIONAL_DURATION = Rule('a duration ≥ 0 such as 15m or 0s, or ""', _optional_duration)
MANAGED_BY = Rule("DOMAIN/PATH of at most 63 bytes, such as example.com/controller", texts.managed_by)
ORIGIN = Rule("a label value (at most 63 letters, digits, -, _ and .), or empty text", texts.shaped(texts.LABEL_VALUE))
NAMESPACE = Rule("the name of a namespace (at most 63 lower-case letters, digits and -)", texts.shaped(texts.DNS_LABEL))
NAMESPACES = Rule("a list of namespaces", _list_of(NAMESPACE))
NAMESPACE_GLOBS = Rule(
    "a list of namespaces", _list_of(Rule("a namespace such as team-a or team-*", texts.shaped(texts.NAMESPACE_GLOB)))
)
SOME_NAMESPACES = Rule("a list of at least one namespace", _some_namespaces)
SELECTOR = Rule("a label selector such as cluster.x-k8s.io/cluster-name or team=a,gpu in (yes)", texts.selector)
DATA_KEY = Rule("a key of a Secret's data such as kubeconfig", texts.shaped(texts.DATA_KEY))
LABEL_KEY = Rule("a label such as cluster.x-k8s.io/cluster-name, or empty text", texts.label_key)
SECRET_TYPE = Rule("a Secret's type such as cluster.x-k8s.io/secret, or empty text", texts.shaped(texts.SECRET_TYPE))
OBJECT_NAME = Rule("the name of an object, or empty text", texts.object_name)
LISTEN = Rule("HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or :8080", texts.address)
HOSTS = Rule("a list of DNS names and IP addresses", _list_of(Rule("a DNS name or an IP address", texts.host)))
IP_ADDRESS = Rule("an IP address, or empty text", texts.ip_address)
HTTPS_URL = Rule("an address such as https://jobs.example.com, or empty text", texts.https_url)
HTTP_URL = Rule("an address such as http://collector:4318, or empty text", texts.http_url)
FILTERS = Rule("a list of filters (capacity)", _list_of(_one_of("capacity")))
SCORE = _one_of("load", "readiness", "quota", "clusterQueue", "allocatable")
SCORE_WEIGHT = Rule("a number from 0 to 10", _score_weight)
ON_LOSS = _one_of(*OnLoss)
ON_LOSS_ALLOWED = Rule(f"a list of policies ({', '.join(OnLoss)})", _list_of(ON_LOSS))
SLOTS = Rule("a whole number from 1 to 1024", _whole(1024))
FENCE_TTL = Rule("a duration of whole seconds from 5m to 24h, such as 30m", _fence_ttl)
LOSERS = _one_of("delete", "suspend")
MOVES = Rule("a whole number from 1 to 100", _whole(100))
WATCH_PODS = _one_of("none", "labelled")
LOG_FORMAT = _one_of("text", "json")
LOG_LEVEL = _one_of("debug", "info", "warning", "error")
ALLOW = Rule("a mapping of names to true or false", _switches(ALLOW_NAMES))
GATES = Rule("a mapping of feature gates to true or false", _gates)
KEY_GLOBS = Rule(
    "a list of keys", _list_of(Rule("a key such as example.com/team or example.com/*", texts.shaped(texts.KEY_GLOB)))
)
LABELS = Rule("a mapping of labels", _additions(ORIGIN))
ANNOTATIONS = Rule("a mapping of annotations", _additions(TEXT))
