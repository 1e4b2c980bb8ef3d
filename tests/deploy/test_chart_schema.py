"""values.schema.json of the chart is generated, strict, and has what values.yaml has."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HELM = Path(__file__).parents[2] / "deploy/helm"
SCHEMA = json.loads((HELM / "jobmirror/values.schema.json").read_text())
FREE = {"resources", "affinity", "global"}
"""What Kubernetes or Helm know better."""


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from parts(part, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from parts(schema["items"], f"{path}[]")


def keys(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Those of values.yaml that the schema does not have."""
    for name, value in values.items():
        part = schema.get("properties", {}).get(name)
        if part is None and not schema.get("additionalProperties"):
            yield f"{path}{name}"
        elif isinstance(value, dict) and part and name not in FREE:
            yield from keys(value, part, f"{path}{name}.")


def test_the_schema_is_the_one_that_is_generated() -> None:
    """`.venv/bin/python deploy/helm/generate_schema.py` changes nothing: a new setting is in the chart, too."""
    spec = importlib.util.spec_from_file_location("generate_schema", HELM / "generate_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    assert (HELM / "jobmirror/values.schema.json").read_text() == module.text()


def test_values_and_schema_have_the_same_keys() -> None:
    """What values.yaml shows is known; what is known at the top is shown there."""
    values = yaml.safe_load((HELM / "jobmirror/values.yaml").read_text())

    assert list(keys(values, SCHEMA)) == []
    assert SCHEMA["properties"].keys() - values.keys() == {"global"}
    for name in ("networkPolicy", "prometheusOperator", "dashboard", "expose", "image"):
        assert SCHEMA["properties"][name]["properties"].keys() == values[name].keys()


def test_no_mapping_takes_unknown_keys() -> None:
    """But those whose keys people choose, whose values then have a type; and those that Kubernetes checks."""
    for path, part in parts(SCHEMA):
        if part.get("type") == "object" and path not in FREE and not path.endswith("[]"):
            assert "additionalProperties" in part, path
            assert part["additionalProperties"] is not True, path
