"""What a setting's value must be: one ``Rule`` per kind of value, named by the fields in ``schema``.

A rule turns what YAML gave into what the field holds, or says in one line what was expected. Rules know nothing of
the file, of the field's name, or of other fields (those conditions are in ``load``).
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from mirror.model import names
from mirror.model.durations import BadDuration, parse_duration
from mirror.model.losses import OnLoss
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

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE = re.compile(rf"({_NAME})?")
_KEY_NAME = re.compile(_NAME)
_KEY_GLOB = re.compile(r"[-A-Za-z0-9_./*?\[\]!]{1,317}")
_NAMESPACE_GLOB = re.compile(r"[-a-z0-9*?\[\]!]{1,63}")
_MANAGED_BY_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%a-z]+\]|[^\[\]:\s/]*):(?P<port>[0-9]{1,5})")
_ANNOTATIONS_BYTES = 256 * 1024
_DATA_KEY = re.compile(r"[-._A-Za-z0-9]{1,253}")
_SECRET_TYPE = re.compile(r"[-._/A-Za-z0-9]{0,253}")
_SELECTOR_KEY = rf"([a-z0-9][-a-z0-9.]{{0,252}}/)?{_NAME}"
_REQUIREMENT = re.compile(
    rf"!?\s*{_SELECTOR_KEY}|{_SELECTOR_KEY}\s*(=|==|!=)\s*({_NAME})?"
    rf"|{_SELECTOR_KEY}\s+(in|notin)\s*\(\s*{_NAME}(\s*,\s*{_NAME})*\s*\)"
)
_REQUIREMENT_END = re.compile(r",(?![^()]*\))")
"""A comma that is not within parentheses."""
_LONGEST_SELECTOR = 1024
_MOST = 1_000_000
_MOST_PODS = 100_000


def split_address(text: str) -> tuple[str, int]:
    """Host without brackets, and port, of ``127.0.0.1:8080``, ``[::1]:8080`` or ``:8080``.

    Raises:
        ValueError: it is not such a text.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise ValueError(text)
    return found["host"].strip("[]"), int(found["port"])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unexpected
    return value


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
        return parse_duration(_text(value))
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
        text = _text(value)
        if text not in words:
            raise Unexpected
        return text

    return Rule(f"one of {', '.join(words)}", read)


def _managed_by(value: object) -> str:
    text = _text(value)
    domain, slash, path = text.partition("/")
    if text == names.BUILT_IN_MANAGED_BY:
        raise Unexpected("those Jobs belong to the built-in Job controller")
    if not (slash and _SUBDOMAIN.fullmatch(domain) and _MANAGED_BY_PATH.fullmatch(path)) or len(text.encode()) > 63:
        raise Unexpected
    return text


def _label_value(value: object) -> str:
    text = _text(value)
    if not _LABEL_VALUE.fullmatch(text):
        raise Unexpected
    return text


def _dns_label(value: object) -> str:
    text = _text(value)
    if not _DNS_LABEL.fullmatch(text):
        raise Unexpected
    return text


def _path(value: object) -> str:
    text = _text(value)
    if "\0" in text:
        raise Unexpected
    return text


def _address(value: object) -> str:
    text = _text(value)
    try:
        split_address(text)
    except ValueError:
        raise Unexpected from None
    return text


def _host(value: object) -> str:
    text = _text(value)
    with suppress(ValueError):
        return str(ipaddress.ip_address(text))
    if not _SUBDOMAIN.fullmatch(text.removeprefix("*.")):
        raise Unexpected
    return text


def _https_url(value: object) -> str:
    return _url(value, ("https",))


def _http_url(value: object) -> str:
    return _url(value, ("http", "https"))


def _url(value: object, schemes: tuple[str, ...]) -> str:
    """An address without user, query and fragment, and without a slash at its end."""
    text = _text(value)
    if not text:
        return text
    try:
        parts = urlsplit(text)
        is_fine = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise Unexpected from None
    if parts.scheme not in schemes or not is_fine or parts.username is not None or parts.query or parts.fragment:
        raise Unexpected
    if not text.isascii() or not text.isprintable() or " " in text:
        raise Unexpected
    return text.rstrip("/")


def _shaped(shape: re.Pattern[str]) -> Callable[[object], str]:
    """A text that is as this expression says, whole."""

    def read(value: object) -> str:
        text = _text(value)
        if not shape.fullmatch(text):
            raise Unexpected
        return text

    return read


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
            if not _is_key(key):
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


def _selector(value: object) -> str:
    """Not empty: that would be all Secrets of a namespace."""
    text = _text(value).strip()
    requirements = [part.strip() for part in _REQUIREMENT_END.split(text)]
    if len(text) > _LONGEST_SELECTOR or not all(_REQUIREMENT.fullmatch(one) for one in requirements):
        raise Unexpected
    return text


def _label_key(value: object) -> str:
    text = _text(value)
    if text and not _is_key(text):
        raise Unexpected
    return text


def _object_name(value: object) -> str:
    text = _text(value)
    if text and not _SUBDOMAIN.fullmatch(text):
        raise Unexpected
    return text


def _some_namespaces(value: object) -> tuple[object, ...]:
    found = _list_of(NAMESPACE)(value)
    if not found:
        raise Unexpected
    return found


def _is_key(key: str) -> bool:
    """What Kubernetes calls a qualified name, for keys of labels and annotations."""
    domain, slash, name = key.rpartition("/")
    return bool(_KEY_NAME.fullmatch(name)) and (not slash or bool(_SUBDOMAIN.fullmatch(domain)))


TEXT = Rule("text", _text)
PATH = Rule("a path, or empty text", _path)
SWITCH = Rule("true or false", _switch)
RATE = Rule(f"a number ≥ 0 (0: unlimited) and ≤ {_MOST}", _rate)
BURST = Rule(f"a whole number ≥ 1 and ≤ {_MOST}", _whole(_MOST))
PODS = Rule(f"a whole number ≥ 1 and ≤ {_MOST_PODS}", _whole(_MOST_PODS))
DURATION = Rule("a duration ≥ 0 such as 15m or 0s", _duration)
PAUSE = Rule("a duration between 1ms and 24h, such as 10s", _pause)
OPTIONAL_DURATION = Rule('a duration ≥ 0 such as 15m or 0s, or ""', _optional_duration)
MANAGED_BY = Rule("DOMAIN/PATH of at most 63 bytes, such as example.com/controller", _managed_by)
ORIGIN = Rule("a label value (at most 63 letters, digits, -, _ and .), or empty text", _label_value)
NAMESPACE = Rule("the name of a namespace (at most 63 lower-case letters, digits and -)", _dns_label)
NAMESPACES = Rule("a list of namespaces", _list_of(NAMESPACE))
NAMESPACE_GLOBS = Rule(
    "a list of namespaces", _list_of(Rule("a namespace such as team-a or team-*", _shaped(_NAMESPACE_GLOB)))
)
SOME_NAMESPACES = Rule("a list of at least one namespace", _some_namespaces)
SELECTOR = Rule("a label selector such as cluster.x-k8s.io/cluster-name or team=a,gpu in (yes)", _selector)
DATA_KEY = Rule("a key of a Secret's data such as kubeconfig", _shaped(_DATA_KEY))
LABEL_KEY = Rule("a label such as cluster.x-k8s.io/cluster-name, or empty text", _label_key)
SECRET_TYPE = Rule("a Secret's type such as cluster.x-k8s.io/secret, or empty text", _shaped(_SECRET_TYPE))
OBJECT_NAME = Rule("the name of an object, or empty text", _object_name)
LISTEN = Rule("HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or :8080", _address)
HOSTS = Rule("a list of DNS names and IP addresses", _list_of(Rule("a DNS name or an IP address", _host)))
HTTPS_URL = Rule("an address such as https://jobs.example.com, or empty text", _https_url)
HTTP_URL = Rule("an address such as http://collector:4318, or empty text", _http_url)
FILTERS = Rule("a list of filters (capacity)", _list_of(_one_of("capacity")))
SCORE = _one_of("load", "readiness", "quota", "clusterQueue", "allocatable")
SCORE_WEIGHT = Rule("a number from 0 to 10", _score_weight)
ON_LOSS = _one_of(*OnLoss)
ON_LOSS_ALLOWED = Rule(f"a list of policies ({', '.join(OnLoss)})", _list_of(ON_LOSS))
FENCE_TTL = Rule("a duration of whole seconds from 5m to 24h, such as 30m", _fence_ttl)
LOSERS = _one_of("delete", "suspend")
MOVES = Rule("a whole number from 1 to 100", _whole(100))
WATCH_PODS = _one_of("none", "labelled")
LOG_FORMAT = _one_of("text", "json")
LOG_LEVEL = _one_of("debug", "info", "warning", "error")
ALLOW = Rule("a mapping of names to true or false", _switches(ALLOW_NAMES))
GATES = Rule("a mapping of feature gates to true or false", _gates)
KEY_GLOBS = Rule(
    "a list of keys", _list_of(Rule("a key such as example.com/team or example.com/*", _shaped(_KEY_GLOB)))
)
LABELS = Rule("a mapping of labels", _additions(ORIGIN))
ANNOTATIONS = Rule("a mapping of annotations", _additions(TEXT))
