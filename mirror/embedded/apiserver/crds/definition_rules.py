"""What is wrong with a definition, beside its schemas. The words of kube-apiserver. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mirror.batch.quoting import json_texts
from mirror.batch.syntax import subdomain_problems
from mirror.batch.violations import (
    IMMUTABLE,
    Violation,
    forbidden,
    invalid,
    invalid_text,
    not_supported_text,
    required,
)
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.crds import paths
from mirror.embedded.apiserver.crds.forbidden_keywords import has_defaults
from mirror.embedded.apiserver.crds.schema_rules import check_schema
from mirror.embedded.apiserver.crds.selectable import check_selectable
from mirror.embedded.apiserver.validation.webhooks import dns_1035_problems

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "binary",
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
    "",
)
_LONGEST_WARNING = 256
_PROTECTED = re.compile(r"(^|\.)(k8s\.io|kubernetes\.io)$")
_APPROVAL = "api-approved.kubernetes.io"


def check_definition(body: Json) -> Iterator[Violation]:
    """A new definition, or a changed one."""
    spec = body["spec"]
    yield from _check_spec(spec)
    yield from _check_stored(body.get("status", {}).get("storedVersions"), spec)
    if _PROTECTED.search(spec["group"]) and not (body["metadata"].get("annotations") or {}).get(_APPROVAL):
        why = (
            f'protected groups must have approval annotation "{_APPROVAL}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield required(f"metadata.annotations[{_APPROVAL}]", why)
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", "true", why)


def name_problems(body: Json) -> Callable[[str], Iterable[str]]:
    """What is wrong with its name: a definition is called by what it defines."""
    wanted = f"{body['spec']['names'].get('plural', '')}.{body['spec']['group']}"

    def problems(name: str) -> Iterator[str]:
        yield from subdomain_problems(name)
        if name != wanted:
            yield 'must be spec.names.plural+"."+spec.group'

    return problems


def check_change(new: Json, old: Json, *, is_established: bool) -> Iterator[Violation]:
    """What stays as it is."""
    fields: list[tuple[str, Any, Any]] = []
    new_spec, old_spec = new["spec"], old["spec"]
    if is_established:
        fields.append(("spec.scope", new_spec["scope"], old_spec["scope"]))
        fields.append(("spec.names.kind", new_spec["names"]["kind"], old_spec["names"]["kind"]))
    fields.append(("spec.group", new_spec["group"], old_spec["group"]))
    fields.append(("spec.names.plural", new_spec["names"]["plural"], old_spec["names"]["plural"]))
    for field, value, before in fields:
        if value != before:
            yield invalid_text(field, value, IMMUTABLE)


def _check_spec(spec: Json) -> Iterator[Violation]:
    group, versions = spec["group"], spec.get("versions") or []
    if not group:
        yield required("spec.group")
    elif problems := subdomain_problems(group):
        yield invalid_text("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid_text("spec.group", group, "should be a domain with at least one dot")
    if not spec["scope"]:
        yield required("spec.scope")
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        yield not_supported_text("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        yield from _check_preserving(spec)
    for position, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield required(f"spec.versions[{position}].schema.openAPIV3Schema")
    shared = _shared(versions)
    for position, version in enumerate(versions):
        yield from _check_version_name(f"spec.versions[{position}].name", version["name"])
        yield from _check_deprecation(f"spec.versions[{position}].deprecationWarning", version)
        if "schema" not in shared:
            yield from _check_version_schema(f"spec.versions[{position}].schema", version)
        if "subresources" not in shared:
            yield from _check_subresources(f"spec.versions[{position}].subresources", version)
        if "additionalPrinterColumns" not in shared:
            yield from _check_columns(f"spec.versions[{position}].additionalPrinterColumns", version)
        if "selectableFields" not in shared:
            place = f"spec.versions[{position}].selectableFields"
            has_schema = version.get("schema") and "schema" not in shared
            if version.get("selectableFields") and not has_schema:
                yield invalid_text(place, "", "may only be set when `version.schema.openAPIV3Schema` is not included")
            else:
                yield from check_selectable(place, version)
    yield from _check_versions(spec.get("versions"))
    if versions and versions[0]["name"]:
        yield from _check_version_name("spec.version", versions[0]["name"])
    yield from _check_names(spec["names"])
    if versions:
        first = versions[0]
        if "schema" in shared:
            yield from _check_version_schema("spec.validation", first)
        if "subresources" in shared:
            yield from _check_subresources("spec.subresources", first)
        if "additionalPrinterColumns" in shared:
            yield from _check_columns("spec.additionalPrinterColumns", first)
        if "selectableFields" in shared and first.get("selectableFields"):
            if "schema" in shared and (first.get("schema") or {}).get("openAPIV3Schema"):
                yield from check_selectable("spec.selectableFields", first)
            else:
                yield invalid_text("spec.selectableFields", "", "may only be set when validations.schema is included")
    yield from _check_conversion(spec.get("conversion") or {})


def _check_preserving(spec: Json) -> Iterator[Violation]:
    """What does not go with unknown fields that are kept everywhere."""
    schemas = [(one.get("schema") or {}).get("openAPIV3Schema") for one in spec.get("versions") or ()]
    if any(map(has_defaults, schemas)):
        yield invalid("spec.preserveUnknownFields", "true", "must be false in order to use defaults in the schema")
    strategy = (spec.get("conversion") or {}).get("strategy", "")
    if strategy != "None":
        why = "must be None if spec.preserveUnknownFields is true"
        yield invalid_text("spec.conversion.strategy", strategy, why)


def _shared(versions: Sequence[Json]) -> frozenset[str]:
    """What is the same in all versions, kube-apiserver holds, and talks of, as a field of the spec."""
    return frozenset(
        name
        for name in ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
        if all(version.get(name) == versions[0].get(name) for version in versions)
    )


def _check_version_name(field: str, name: str) -> Iterator[Violation]:
    if problems := dns_1035_problems(name):
        yield invalid_text(field, name, ",".join(problems))


def _check_deprecation(field: str, version: Json) -> Iterator[Violation]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield invalid_text(field, text, "can only be set for deprecated versions")
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST_WARNING:
        yield invalid_text(field, text, f"must be <= {_LONGEST_WARNING} characters long")
    if not text:
        yield invalid_text(field, text, "must not be an empty string")
    odd = next((at for at, letter in enumerate(text) if not letter.isprintable()), None)
    if odd is not None:
        index = len(text[:odd].encode("utf-8", "surrogatepass"))
        why = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        yield invalid_text(field, text, why)


def _check_versions(given: Sequence[Json] | None) -> Iterator[Violation]:
    versions = given or ()
    shared = _shared(versions)
    shown = json.dumps(
        None if given is None else [_shown(version, shared) for version in versions], separators=(",", ":")
    )
    if len({version["name"] for version in versions}) < len(versions):
        yield invalid("spec.versions", shown, "must contain unique version names")
    if sum(bool(version["storage"]) for version in versions) != 1:
        yield invalid("spec.versions", shown, "must have exactly one version marked as storage version")


def _shown(version: Json, shared: frozenset[str]) -> Json:
    """A version as Go prints it; what all share is not there."""
    names = (
        ("Schema", "schema"),
        ("Subresources", "subresources"),
        ("AdditionalPrinterColumns", "additionalPrinterColumns"),
        ("SelectableFields", "selectableFields"),
    )
    head = {
        "Name": version["name"],
        "Served": version["served"],
        "Storage": version["storage"],
        "Deprecated": version.get("deprecated", False),
        "DeprecationWarning": version.get("deprecationWarning"),
    }
    return head | {shown: None if name in shared else version.get(name) for shown, name in names}


def _check_version_schema(field: str, version: Json) -> Iterator[Violation]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        has_status = (version.get("subresources") or {}).get("status") is not None
        yield from check_schema(f"{field}.openAPIV3Schema", schema, has_status=has_status)


def _check_subresources(field: str, version: Json) -> Iterator[Violation]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        place, path = f"{field}.scale.{name}", scale.get(name, "")
        if not path:
            yield required(place)
            continue
        if problems := list(_check_path(place, path)):
            yield from problems
        elif not path.startswith(start):
            yield invalid_text(place, path, f"should be a json path under {start[:-1]}")
    path = scale.get("labelSelectorPath")
    if path and not path.startswith((".spec.", ".status.")):
        yield invalid_text(
            f"{field}.scale.labelSelectorPath", path, "should be a json path under either .spec or .status"
        )


def _check_path(field: str, path: str) -> Iterator[Violation]:
    if not path.startswith("."):
        yield invalid_text(field, path, "must be a simple json path starting with .")
        return
    try:
        paths.find({}, path)
    except paths.NotAPath as error:
        yield invalid_text(field, path, f"is an invalid jsonpath: {error}")


def _check_columns(field: str, version: Json) -> Iterator[Violation]:
    for position, column in enumerate(version.get("additionalPrinterColumns") or ()):
        place, kinds = f"{field}[{position}]", ",".join(_COLUMN_TYPES)
        if not column.get("name"):
            yield required(f"{place}.name")
        if not column.get("type"):
            yield required(f"{place}.type", f"must be one of {kinds}")
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid_text(f"{place}.type", column["type"], f"must be one of {kinds}")
        if column.get("format", "") not in _COLUMN_FORMATS:
            formats = ",".join(sorted(filter(None, _COLUMN_FORMATS)))
            yield invalid_text(f"{place}.format", column["format"], f"must be one of {formats}")
        if not column.get("jsonPath"):
            yield required(f"{place}.JSONPath")
        else:
            yield from _check_path(f"{place}.JSONPath", column["jsonPath"])


def _check_names(names: Json) -> Iterator[Violation]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    for name in ("plural", "singular"):
        yield from _check_label(f"spec.names.{name}", names.get(name, ""))
    for name in ("kind", "listKind"):
        yield from _check_label(f"spec.names.{name}", names.get(name, "").lower(), names.get(name, ""))
    for name in ("shortNames", "categories"):
        for position, one in enumerate(names.get(name) or ()):
            yield from _check_label(f"spec.names.{name}[{position}]", one)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid_text("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _check_label(field: str, label: str, shown: str = "") -> Iterator[Violation]:
    if label and (problems := dns_1035_problems(label)):
        words = ",".join(problems)
        yield invalid_text(
            field, shown or label, f"may have mixed case, but should otherwise match: {words}" if shown else words
        )


def _check_conversion(conversion: Json) -> Iterator[Violation]:
    strategy = conversion.get("strategy", "")
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy == "Webhook":
        yield forbidden("spec.conversion.strategy", "this server does not call webhooks that convert; use None")
    elif strategy != "None":
        yield not_supported_text("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif conversion.get("webhook"):
        yield forbidden("spec.conversion.webhookClientConfig", "should not be set when strategy is not set to Webhook")


def _check_stored(stored: Sequence[str] | None, spec: Json) -> Iterator[Violation]:
    if not stored:
        yield invalid("status.storedVersions", "null", "must have at least one stored version")
        return
    left, known = dict.fromkeys(stored), frozenset(stored)
    for version in spec.get("versions") or ():
        if version["storage"] and version["name"] not in known:
            yield invalid(
                "status.storedVersions", json_texts(stored), f"must have the storage version {version['name']}"
            )
        left.pop(version["name"], None)
    for name in left:
        why = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        yield invalid_text(f"status.storedVersions[{stored.index(name)}]", name, why)
