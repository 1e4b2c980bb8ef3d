"""What the API refuses in containers of a pod template, with their probes and hooks, and in ephemeral ones (C31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mirror.batch.quoting import json_text, quoted
from mirror.batch.syntax import http_header_problems, label_problems, port_name_problems, port_problems
from mirror.batch.violations import (
    Violation,
    duplicate,
    forbidden,
    invalid,
    invalid_text,
    invalid_texts,
    not_found,
    not_negative,
    not_supported,
    one_of,
    required,
    too_many,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.validation.pods import env, resources, security

_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")
_MOST_RULES, _MOST_VALUES = 20, 255


class Context(msgspec.Struct, frozen=True):
    """What the rules of a container need to know of its pod."""

    volumes: Mapping[str, Json]
    """The volumes that are right themselves."""
    claims: frozenset[str]
    names: frozenset[str]
    """Of the main containers."""
    restart_policy: str
    grace_seconds: int
    has_host_users: bool

    @classmethod
    def of(cls, pod: Json, volumes: Mapping[str, Json]) -> Context:
        return cls(
            volumes=volumes,
            claims=frozenset(one["name"] for one in pod.get("resourceClaims", ()) if one["name"]),
            names=frozenset(one["name"] for one in pod.get("containers") or ()),
            restart_policy=pod["restartPolicy"],
            grace_seconds=pod["terminationGracePeriodSeconds"],
            has_host_users=pod.get("hostUsers", True),
        )


def check_main(field: str, containers: Sequence[Json], context: Context) -> Iterator[Violation]:
    """The main containers, of which there must be one."""
    if not containers:
        yield required(field)
    seen: set[str] = set()
    for position, container in enumerate(containers):
        path, name = f"{field}[{position}]", container["name"]
        yield from check_common(path, container, context)
        if name in seen:
            yield duplicate(f"{path}.name", quoted(name))
        seen.add(name)
        yield from check_lifecycle(path, container, context.grace_seconds)
        yield from check_probes(path, container)
        yield from _check_restarts(path, container)
    yield from _check_host_ports(field, containers)


def check_init(field: str, containers: Sequence[Json], context: Context) -> Iterator[Violation]:
    """Init containers; those that always restart may have what main containers have."""
    seen = set(context.names)
    for position, container in enumerate(containers):
        path, name = f"{field}[{position}]", container["name"]
        yield from check_common(path, container, context)
        yield from _check_restarts(path, container)
        if name in seen:
            yield duplicate(f"{path}.name", quoted(name))
        elif name:
            seen.add(name)
        # They run one by one, and the server takes each for the first of the list here.
        yield from _check_host_ports(field, (container,))
        if container.get("restartPolicy") == "Always":
            yield from check_lifecycle(path, container, context.grace_seconds)
            yield from check_probes(path, container)
            continue
        for part in ("lifecycle", *PROBES):
            if part in container:
                yield forbidden(f"{path}.{part}", "may not be set for init containers without restartPolicy=Always")
        for number, policy in enumerate(container.get("resizePolicy", ())):
            if policy["restartPolicy"] == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield invalid(f"{path}.resizePolicy[{number}].restartPolicy", '"RestartContainer"', detail)


def check_common(path: str, container: Json, context: Context) -> Iterator[Violation]:
    """The rules of containers of all kinds."""
    name = container["name"]
    if name:
        yield from invalid_texts(f"{path}.name", name, label_problems(name))
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from one_of(f"{path}.terminationMessagePolicy", container["terminationMessagePolicy"], _MESSAGE_POLICIES)
    yield from _check_ports(f"{path}.ports", container.get("ports", ()))
    if "env" in container:
        yield from env.check_variables(f"{path}.env", container["env"])
    if "envFrom" in container:
        yield from env.check_sources(f"{path}.envFrom", container["envFrom"])
    if "volumeMounts" in container or "volumeDevices" in container:
        yield from env.check(path, container, context.volumes)
    yield from one_of(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL_POLICIES)
    if container["resources"]:
        yield from resources.check_container(f"{path}.resources", container["resources"], context.claims)
    yield from _check_resize(f"{path}.resizePolicy", container.get("resizePolicy", ()), context.restart_policy)
    if "securityContext" in container:
        yield from security.check_container(
            f"{path}.securityContext", container["securityContext"], has_host_users=context.has_host_users
        )


def _check_ports(field: str, ports: Sequence[Json]) -> Iterator[Violation]:
    seen: set[str] = set()
    for position, port in enumerate(ports):
        path, name = f"{field}[{position}]", port.get("name", "")
        problems = port_name_problems(name) if name else []
        yield from invalid_texts(f"{path}.name", name, problems)
        if name and not problems:
            if name in seen:
                yield duplicate(f"{path}.name", quoted(name))
            seen.add(name)
        if not port["containerPort"]:
            yield required(f"{path}.containerPort")
        for key in ("containerPort", "hostPort"):
            number = port.get(key, 0)
            for problem in port_problems(number) if number else ():
                yield invalid(f"{path}.{key}", number, problem)
        yield from one_of(f"{path}.protocol", port["protocol"], _PROTOCOLS)


def _check_host_ports(field: str, containers: Sequence[Json]) -> Iterator[Violation]:
    """No two containers may have the same port of the node."""
    seen: set[str] = set()
    for position, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            key = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                yield duplicate(f"{field}[{position}].ports[{number}].hostPort", quoted(key))
            seen.add(key)


def _check_resize(field: str, policies: Sequence[Json], restart_policy: str) -> Iterator[Violation]:
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        resource, restart = policy["resourceName"], policy["restartPolicy"]
        if resource in seen:
            yield duplicate(f"{field}[{position}]", json_text(resource))
        seen.add(resource)
        yield from one_of(field, resource, ("cpu", "memory"))
        yield from one_of(field, restart, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(field, json_text(restart), detail)


def _check_restarts(path: str, container: Json) -> Iterator[Violation]:
    """The restart policy of one container, and its rules."""
    policy: str | None = container.get("restartPolicy")
    rules: Sequence[dict[str, Any]] = container.get("restartPolicyRules", ())
    if policy is None:
        if not rules:
            return
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
        if ".initContainers[" in path:
            return
    elif policy not in _RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for position, rule in enumerate(rules):
        yield from _check_restart_rule(f"{path}.restartPolicyRules[{position}]", rule)


def _check_restart_rule(field: str, rule: Json) -> Iterator[Violation]:
    action, exit_codes = rule.get("action", ""), rule.get("exitCodes")
    if action not in _RULE_ACTIONS:
        yield not_supported(f"{field}.action", action, _RULE_ACTIONS)
    if exit_codes is None:
        yield required(f"{field}.exitCodes", "must be specified")
        return
    operator, values = exit_codes.get("operator", ""), exit_codes.get("values", ())
    if operator not in _OPERATORS:
        yield not_supported(f"{field}.exitCodes.operator", operator, _OPERATORS)
    if len(values) > _MOST_VALUES:
        yield too_many(f"{field}.exitCodes.values", len(values), _MOST_VALUES)


# Probes and lifecycle hooks.

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


# Ephemeral containers.

_NOT_FOR_THEM = "cannot be set for an Ephemeral Container"
_NOT_ALLOWED = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


def check(field: str, pod: Json, context: Context) -> Iterator[Violation]:
    """Names are unique among all containers of the pod; a target is one of the others."""
    others = {one["name"] for kind in ("containers", "initContainers") for one in pod.get(kind) or ()}
    seen = set(others)
    for position, container in enumerate(pod.get("ephemeralContainers", ())):
        path, name = f"{field}[{position}]", container["name"]
        yield from check_common(path, container, context)
        image, target = container.get("image", ""), container.get("targetContainerName")
        if image != image.strip():
            yield invalid_text(f"{path}.image", image, "must not have leading or trailing whitespace")
        if name in seen:
            yield duplicate(f"{path}.name", quoted(name))
        seen.add(name)
        if target and target not in others:
            yield not_found(f"{path}.targetContainerName", target)
        yield from _check_fields(path, container)


def _check_fields(path: str, container: Json) -> Iterator[Violation]:
    for name in _NOT_ALLOWED:
        # Resources are always there; of all others, even an empty one is one.
        if container.get("resources") if name == "resources" else name in container:
            yield forbidden(f"{path}.{name}", _NOT_FOR_THEM)
    for position, mount in enumerate(container.get("volumeMounts", ())):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield forbidden(f"{path}.volumeMounts[{position}].{name}", _NOT_FOR_THEM)
