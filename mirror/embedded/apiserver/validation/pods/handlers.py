"""What the API refuses in probes and lifecycle hooks (C31)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror.batch.quoting import quoted
from mirror.batch.syntax import http_header_problems, port_name_problems, port_problems
from mirror.batch.violations import (
    Violation,
    forbidden,
    invalid,
    invalid_texts,
    not_negative,
    not_supported,
    required,
)
from mirror.embedded.apiserver.apimachinery.canonical import Json

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def check_lifecycle(path: str, container: Json, grace_seconds: int) -> Iterator[Violation]:
    """Hooks after the start and before the end."""
    for name in ("postStart", "preStop"):
        if name in container.get("lifecycle", {}):
            field = f"{path}.lifecycle.{name}"
            yield from _check_handler(field, container["lifecycle"][name], grace_seconds)


def check_probes(path: str, container: Json) -> Iterator[Violation]:
    """The three probes; only readiness may need several successes."""
    for name in PROBES:
        if name not in container:
            continue
        field, probe = f"{path}.{name}", container[name]
        yield from _check_probe(field, probe)
        grace = probe.get("terminationGracePeriodSeconds")
        if name != "readinessProbe" and probe["successThreshold"] != 1:
            yield invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")
        if name == "readinessProbe" and grace is not None:
            detail = "must not be set for readinessProbes"
            yield invalid(f"{field}.terminationGracePeriodSeconds", grace, detail)


def _check_probe(field: str, probe: Json) -> Iterator[Violation]:
    yield from _check_handler(field, probe, 0)
    for name in _NUMBERS:
        yield from not_negative(f"{field}.{name}", probe.get(name))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(f"{field}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _check_handler(field: str, handler: Json, grace_seconds: int) -> Iterator[Violation]:
    first, *others = [one for one in _ACTIONS if one in handler] or [""]
    match first:
        case "":
            yield required(field, "must specify a handler type")
        case "exec":
            if not handler["exec"].get("command"):
                yield required(f"{field}.exec.command")
        case "httpGet":
            yield from _check_http(f"{field}.httpGet", handler["httpGet"])
        case "sleep":
            yield from _check_sleep(f"{field}.sleep", handler["sleep"]["seconds"], grace_seconds)
        case _:
            yield from _check_port(f"{field}.{first}.port", handler[first]["port"])
    for one in others:
        yield forbidden(f"{field}.{one}", "may not specify more than 1 handler type")


def _check_http(field: str, action: Json) -> Iterator[Violation]:
    yield from _check_port(f"{field}.port", action["port"])
    if action["scheme"] not in _SCHEMES:
        yield not_supported(f"{field}.scheme", action["scheme"], _SCHEMES)
    headers: Sequence[Json] = action.get("httpHeaders", ())
    for header in headers:
        yield from invalid_texts(f"{field}.httpHeaders", header["name"], http_header_problems(header["name"]))


def _check_port(field: str, port: int | str) -> Iterator[Violation]:
    problems = port_problems(port) if isinstance(port, int) else port_name_problems(port)
    for problem in problems:
        yield invalid(field, port if isinstance(port, int) else quoted(port), problem)


def _check_sleep(field: str, seconds: int, grace_seconds: int) -> Iterator[Violation]:
    if not 0 <= seconds <= grace_seconds:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
        yield invalid(field, seconds, detail)
