"""Writes ``jobmirror/values.schema.json``: ``.venv/bin/python deploy/helm/generate_schema.py``.

Helm refuses values that the chart does not have, and names them. What stands under ``config`` is the settings' own
schema, so that a setting is known here as soon as the manager knows it; the rest is said here. What Kubernetes checks
by itself (tolerations, resources and their like) is left to it. Tests compare the file with what this prints, and the
keys with values.yaml.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from mirror.settings import rules
from mirror.settings.kinds import KindEntry
from mirror.settings.rule import Rule
from mirror.settings.schema import Section, Settings

Json = dict[str, Any]

TARGET = Path(__file__).parent / "jobmirror/values.schema.json"
TEXT: Json = {"type": "string"}
SWITCH: Json = {"type": "boolean"}
ANY_MAPPING: Json = {"type": "object"}
TEXTS: Json = {"type": "object", "additionalProperties": TEXT}
MAPPINGS: Json = {"type": "array", "items": {"type": "object"}}
RELEASE = ("namespace",)
"""Settings that are the release's."""
DURATIONS = (rules.DURATION, rules.PAUSE, rules.OPTIONAL_DURATION, rules.FENCE_TTL)


def mapping(**properties: Json) -> Json:
    """These keys and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def whole(least: int, most: int) -> Json:
    """A whole number."""
    return {"type": "integer", "minimum": least, "maximum": most}


def section(part: type[Section], without: tuple[str, ...] = ()) -> Json:
    """One mapping of the settings."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(part)}
    found = mapping(**{name: value(field.type) for name, field in fields.items() if name not in without})
    required = list(getattr(part, "REQUIRED", ()))
    return found | ({"required": required} if required else {})


def value(kind: Any) -> Json:
    """One setting; what is beyond its type is in the description, and the manager's to check."""
    if isinstance(kind, type) and issubclass(kind, Section):
        return section(kind)
    if kind == tuple[KindEntry, ...]:
        return {"type": "array", "items": {"type": ["string", "object"]}}  # a form of its own, which the manager checks
    if get_origin(kind) is tuple:
        return {"type": "array", "items": section(get_args(kind)[0])}
    (rule,) = kind.__metadata__
    assert isinstance(rule, Rule)
    return {"description": rule.expected} | typed(get_args(kind)[0], rule)


def typed(kind: Any, rule: Rule) -> Json:
    """The JSON that YAML gives for a field of this type."""
    if rule in DURATIONS:
        return TEXT
    if rule.expected.startswith("one of "):
        return {"enum": rule.expected.removeprefix("one of ").split(", ")}
    if rule is rules.ALLOW:
        return mapping(**dict.fromkeys(rules.ALLOW_NAMES, SWITCH))
    if get_origin(kind) is dict:
        return {"type": "object", "additionalProperties": SWITCH if get_args(kind)[1] is bool else TEXT}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": TEXT, "uniqueItems": True}
    return {"type": {str: "string", bool: "boolean", int: "integer", float: "number"}[kind]}


def exposure(what: str, listener: Json, *more: str) -> Json:
    """How one of the two addresses is reached from outside."""
    gateway = mapping(enabled=SWITCH, parentRefs={"type": "array", "maxItems": 32, "items": listener})
    annotated = {"enabled": SWITCH, "className": TEXT, "annotations": TEXTS, **dict.fromkeys(more, TEXT)}
    return mapping(host=TEXT | {"description": what}, gateway=gateway, ingress=mapping(**annotated))


def schema() -> Json:
    """The whole of the values."""
    listener = mapping(name=TEXT, namespace=TEXT, sectionName=TEXT | {"minLength": 1}, port=whole(1, 65535))
    listener |= {"required": ["name", "sectionName"]}
    found = mapping(
        config=section(Settings, without=RELEASE),
        image=mapping(repository=TEXT, tag=TEXT, pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]}),
        imagePullSecrets=MAPPINGS,
        replicas=whole(0, 10),
        resources=ANY_MAPPING,
        priorityClassName=TEXT,
        nodeSelector=TEXTS,
        tolerations=MAPPINGS,
        affinity=ANY_MAPPING,
        podAnnotations=TEXTS,
        env=MAPPINGS,
        serviceAccount=mapping(annotations=TEXTS),
        networkPolicy=mapping(
            enabled=SWITCH,
            metricsFrom=MAPPINGS,
            pageFrom=MAPPINGS | {"minItems": 1},
            apiServerPorts={"type": "array", "items": whole(1, 65535)},
        ),
        flowSchema=mapping(enabled=SWITCH),
        certManager=mapping(enabled=SWITCH),
        prometheusOperator=mapping(enabled=SWITCH, labels=TEXTS, runbookURL=TEXT),
        dashboard=mapping(enabled=SWITCH, labels=TEXTS, annotations=TEXTS),
        expose=mapping(
            access=exposure("The name that users' commands use, such as access.jobs.example.com", listener),
            page=exposure("The name that browsers use, such as jobs.example.com", listener, "tlsSecret"),
        ),
    )
    found["properties"]["global"] = ANY_MAPPING  # Helm's, where this is a part of another chart
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart jobmirror", **found}


def text() -> str:
    """What the file holds."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
    sys.stdout.write(f"{TARGET}\n")
