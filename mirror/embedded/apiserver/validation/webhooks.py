"""What is wrong with a webhook, as kube-apiserver says it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from mirror.batch.quoting import json_texts, quoted
from mirror.batch.syntax import port_problems, subdomain_problems
from mirror.batch.violations import (
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_supported_text,
    required,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.validation.metadata import check_selector

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REVIEWS = ("v1", "v1beta1")
_ANY = "*"
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_LABEL.pattern}')"
)
_FORM = "; desired format: https://host[/path]"
_WORDS = (
    ("failurePolicy", ("Fail", "Ignore")),
    ("matchPolicy", ("Equivalent", "Exact")),
)


def check_webhooks(webhooks: Sequence[Json], *, is_mutating: bool) -> Iterator[Violation]:
    """All webhooks of a configuration."""
    names: set[str] = set()
    for position, webhook in enumerate(webhooks):
        field = f"webhooks[{position}]"
        yield from _check_webhook(field, webhook, is_mutating=is_mutating)
        yield from _check_reviews(f"{field}.admissionReviewVersions", webhook.get("admissionReviewVersions") or ())
        name = webhook["name"]
        if name and name in names:
            yield duplicate(f"{field}.name", quoted(name))
        names.add(name)


def _check_webhook(field: str, webhook: Json, *, is_mutating: bool) -> Iterator[Violation]:
    yield from check_qualified_name(f"{field}.name", webhook["name"])
    for position, rule in enumerate(webhook.get("rules", ())):
        yield from _check_rule(f"{field}.rules[{position}]", rule)
    for name, words in _WORDS:
        if name in webhook:
            yield from _check_word(f"{field}.{name}", webhook[name], words)
    if webhook.get("sideEffects") is None:
        yield required(f"{field}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    else:
        yield from _check_word(f"{field}.sideEffects", webhook["sideEffects"], _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        yield invalid(f"{field}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    for name in ("namespaceSelector", "objectSelector"):
        yield from check_selector(f"{field}.{name}", webhook.get(name))
    if is_mutating and "reinvocationPolicy" in webhook:
        yield from _check_word(f"{field}.reinvocationPolicy", webhook["reinvocationPolicy"], ("IfNeeded", "Never"))
    yield from _check_client(f"{field}.clientConfig", webhook["clientConfig"])
    if webhook.get("matchConditions"):
        yield forbidden(f"{field}.matchConditions", "expressions are not evaluated by this server; leave them out")


def _check_word(field: str, word: str, words: Sequence[str]) -> Iterator[Violation]:
    if word not in words:
        yield not_supported_text(field, word, words)


def check_qualified_name(field: str, name: str) -> Iterator[Violation]:
    """A name like ``a.example.com``."""
    if not name:
        yield required(field)
    elif problems := subdomain_problems(name):
        yield invalid_text(field, name, ",".join(problems))
    elif len(name.split(".")) < 3:
        yield invalid_text(field, name, "should be a domain with at least three segments separated by dots")


def _check_rule(field: str, rule: Json) -> Iterator[Violation]:
    operations = rule.get("operations", ())
    yield from _check_any(f"{field}.operations", operations, "operations")
    for position, operation in enumerate(operations):
        yield from _check_word(f"{field}.operations[{position}]", operation, _OPERATIONS)
    yield from _check_any(f"{field}.apiGroups", rule.get("apiGroups", ()), "API groups")
    versions = rule.get("apiVersions", ())
    yield from _check_any(f"{field}.apiVersions", versions, "API versions")
    for position, version in enumerate(versions):
        if not version:
            yield required(f"{field}.apiVersions[{position}]")
    yield from _check_resources(f"{field}.resources", rule.get("resources", ()))
    if "scope" in rule:
        yield from _check_word(f"{field}.scope", rule["scope"], _SCOPES)


def _check_any(field: str, values: Sequence[str], what: str) -> Iterator[Violation]:
    if not values:
        yield required(field)
    elif len(values) > 1 and _ANY in values:
        yield invalid(field, json_texts(values), f"if '*' is present, must not specify other {what}")


def _check_resources(field: str, resources: Sequence[str]) -> Iterator[Violation]:
    if not resources:
        yield required(field)
    whole: set[str] = set()
    parts: set[str] = set()
    has_plain = False
    for position, text in enumerate(resources):
        one = f"{field}[{position}]"
        if not text:
            yield required(one)
            continue
        resource, slash, part = text.partition("/")
        if not slash:
            has_plain = text != _ANY
            continue
        if resource in whole:
            yield invalid_text(one, text, f"if '{resource}/*' is present, must not specify {text}")
        if part in parts:
            yield invalid_text(one, text, f"if '*/{part}' is present, must not specify {text}")
        if part == _ANY:
            whole.add(resource)
        if resource == _ANY:
            parts.add(part)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(field, json_texts(resources), "if '*/*' is present, must not specify other resources")
    if _ANY in resources and has_plain:
        why = "if '*' is present, must not specify other resources without subresources"
        yield invalid(field, json_texts(resources), why)


def _check_client(field: str, client: Json) -> Iterator[Violation]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(field, "exactly one of url or service is required")
    elif url is not None:
        yield from check_url(f"{field}.url", url)
    elif service is not None:
        yield from check_service(f"{field}.service", service)


def check_url(field: str, url: str) -> Iterator[Violation]:
    """Where a webhook is."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        yield required(field, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield invalid_text(field, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield invalid_text(field, "", f"host must be specified{_FORM}")
    user, at, _ = parts.netloc.rpartition("@")
    if at:
        yield invalid_text(field, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_text(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_text(field, parts.query, "query parameters are not permitted in the URL")


def check_service(field: str, service: Json) -> Iterator[Violation]:
    """Which service a webhook is behind. Name and namespace are shown in each other's place, as upstream does."""
    if not service.get("namespace"):
        yield required(f"{field}.name")
    if not service.get("name"):
        yield required(f"{field}.namespace")
    port = service.get("port", 443)
    if problems := port_problems(port):
        yield invalid(f"{field}.port", port, f"port is not valid: {', '.join(problems)}")
    path = service.get("path")
    if path in (None, "", "/"):
        return
    yield from _check_path(f"{field}.path", path)


def _check_path(field: str, path: str) -> Iterator[Violation]:
    if path == "//":
        yield invalid_text(field, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid_text(field, path, "must start with a '/'")
    for position, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_text(field, path, f"segment[{position}] may not be empty")
            continue
        for problem in subdomain_problems(segment):
            yield invalid_text(field, path, f"segment[{position}]: {problem}")


def _check_reviews(field: str, versions: Sequence[str]) -> Iterator[Violation]:
    if not versions:
        yield required(field, f"must specify one of {', '.join(_REVIEWS)}")
        return
    seen: set[str] = set()
    for position, version in enumerate(versions):
        one = f"{field}[{position}]"
        if version in seen:
            yield invalid_text(one, version, "duplicate version")
            continue
        seen.add(version)
        yield from invalid_texts(one, version, dns_1035_problems(version))
    if not seen.intersection(_REVIEWS):
        yield invalid(field, json_texts(versions), f"must include at least one of {', '.join(_REVIEWS)}")


def dns_1035_problems(label: str) -> list[str]:
    """A label that begins with a letter (RFC 1035)."""
    problems = ["must be no more than 63 characters"] if len(label) > 63 else []
    return [*problems, *([] if _LABEL.fullmatch(label) else [_LABEL_WORDS])]
