"""Objects of a kind that a definition defines: their strategy, made of one version of the definition. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from functools import cached_property
from typing import Any

from mirror.batch.quoting import quoted
from mirror.batch.syntax import subdomain_problems
from mirror.batch.violations import Violation, invalid
from mirror.embedded.apiserver.apimachinery.decoding import goprint
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json, Strategy, Update
from mirror.embedded.apiserver.crds import checking, paths, rule_evaluation, rules, structural_checks, values
from mirror.embedded.apiserver.crds.correlation import Correlated
from mirror.embedded.apiserver.crds.rule_evaluation import Outcome
from mirror.embedded.apiserver.managedfields import sets
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.validation import metadata

_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")
_META = ("apiVersion", "kind", "metadata")
_NAME = Column("Name", format="name", description=printers.NAME.description)
_DEFAULT_COLUMN = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": printers.AGE.description,
}


class Custom(Strategy):
    """A kind of a definition, in one version."""

    allows_unconditional_update = False
    selector_refusal = "field label not supported: {label}"
    is_converted = True

    def __init__(self, definition: Json, version: Json) -> None:
        spec = definition["spec"]
        self.is_namespaced = spec["scope"] == "Namespaced"
        self._api_version = f"{spec['group']}/{version['name']}"
        storage = next(one["name"] for one in spec["versions"] if one["storage"])
        self._stored_as = f"{spec['group']}/{storage}"
        self._schemas = {f"{spec['group']}/{one['name']}": _schema_of(one) for one in spec["versions"]}
        self.schema: Mapping[str, Any] = self._schemas[self._api_version]
        self.shape = sets.of_schema(self.schema)
        subresources = version.get("subresources") or {}
        self._has_status = subresources.get("status") is not None
        self.scale: Json | None = subresources.get("scale")
        self.subresources = {"status": Update(self._prepare_status, self._check_status)} if self._has_status else {}
        wanted = version.get("additionalPrinterColumns") or [_DEFAULT_COLUMN]
        self._columns = [(column, _column(column)) for column in wanted]
        self.columns = (_NAME, *(column for _, column in self._columns))
        self.selectable = {
            one["jsonPath"][1:]: _field(one["jsonPath"]) for one in version.get("selectableFields") or ()
        }
        self._deprecation = _deprecation(spec, version)
        self._has_rules = rules.count(self.schema) > 0
        self.takes_long = self._has_rules
        """Rules are still to be read; afterwards, whether they have loops in loops."""
        self._asked: tuple[Json, Json | None, Outcome] | None = None
        """The last question to the rules; whoever asked it reads its warnings right afterwards."""

    # -- the form of a version ----------------------------------------------------------------------------------------

    def prune(self, body: Json) -> list[str]:
        """Take out what the schema does not know, in place; gives its paths, sorted."""
        return sorted(values.prune(body, self.schema, is_root=True))

    def decode(self, body: Json) -> Json:
        found: Json = _copy(body)
        found["metadata"] = canonical(found.get("metadata"), "ObjectMeta")
        values.prune(found, self.schema, is_root=True)
        return found

    def default(self, body: Json, context: Context) -> None:
        self._complete(body, self.schema)

    def default_applied(self, body: Json, context: Context) -> None:
        """A null that is read means that the field is not there; one that applying has left is there, and judged."""
        values.drop_defaulted(body, self.schema)
        values.default(body, self.schema)

    def from_stored(self, stored: Json) -> Json:
        """Defaults are those of the version as which it was stored, as upstream."""
        schema = self._schemas.get(stored["apiVersion"], self.schema)
        values.prune(stored, schema, is_root=True)
        self._complete(stored, schema)
        if schema is not self.schema:
            values.prune(stored, self.schema, is_root=True)
        stored["apiVersion"] = self._api_version
        return stored

    def to_stored(self, body: Json) -> Json:
        found = body | {"apiVersion": self._stored_as}
        if self._stored_as != self._api_version:
            found = deepcopy(found)
            values.prune(found, self._schemas[self._stored_as], is_root=True)
        return found

    def _complete(self, body: Json, schema: values.Schema) -> None:
        for name in body.keys() - set(_META):
            inner = (schema.get("properties") or {}).get(name)
            if inner is not None and body[name] is None and not inner.get("nullable"):
                del body[name]
            elif inner is not None:
                values.drop_nulls(body[name], inner)
        values.default(body, schema)

    # -- writes -------------------------------------------------------------------------------------------------------

    def prepare_create(self, body: Json, context: Context) -> Json:
        if self._has_status:
            body.pop("status", None)
        body["metadata"]["generation"] = 1
        return body

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        left_out = {"metadata", "status"} if self._has_status else {"metadata"}
        generation = old["metadata"].get("generation", 0)
        is_changed = _without(new, left_out) != _without(old, left_out)
        new["metadata"]["generation"] = generation + 1 if is_changed else generation
        return new

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        of_meta = metadata.check_meta(
            body["metadata"], name_problems=subdomain_problems, is_namespaced=self.is_namespaced, is_core=False
        )
        found = [*of_meta, *self._check(body, None), *structural_checks.check_lists(body, self._own)]
        return [*found, *self._ask(body, None, None, found).wrong]

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        before = Correlated(new, old, self.schema)
        found = [*metadata.check_meta_update(new, old, is_core=False), *self._check(new, before)]
        found += self._check_changed_lists(new, old)
        return [*found, *self._ask(new, old, before, found).wrong]

    @cached_property
    def _rules(self) -> rules.Part | None:
        """Read with the first object, which is where there is time for it."""
        found = rules.read(self.schema) if self._has_rules else None
        self.takes_long = found is not None and found.depth > 1
        return found

    def _ask(self, new: Json, old: Json | None, before: Correlated | None, found: list[Violation]) -> Outcome:
        """What the definition's own rules say."""
        if self._rules is None:
            return Outcome()
        self._asked = asked = (new, old, rule_evaluation.ask(self._rules, new, old, before, found))
        return asked[2]

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        told = [self._deprecation] if self._deprecation else []
        before = () if old is None else old["metadata"].get("finalizers") or ()
        added = sorted(set(new["metadata"].get("finalizers") or ()).difference(before, _STANDARD_FINALIZERS))
        return [*told, *(_odd_finalizer(one) for one in added if "/" not in one)]

    def eased(self, new: Json, old: Json) -> Sequence[str]:
        asked = self._asked
        if asked is None or asked[0] is not new or asked[1] is not old:
            return ()
        return asked[2].warnings

    @cached_property
    def _own(self) -> values.Schema:
        """The schema without what every object has."""
        required = [one for one in self.schema.get("required") or () if one not in _META]
        properties = self.schema.get("properties") or {}
        own = {name: inner for name, inner in properties.items() if name not in _META}
        return {**self.schema, "required": required, "properties": own}

    def _check(self, body: Json, before: Correlated | None) -> Iterator[Violation]:
        value = {name: one for name, one in body.items() if name not in _META}
        yield from checking.check(value, self._own, before=before)
        if self.scale is not None:
            yield from _check_scale(body, self.scale)
        yield from structural_checks.check_embedded(value, self._own)

    def _check_changed_lists(self, new: Json, old: Json) -> Iterator[Violation]:
        """Where items of lists were there twice before, they may be so anywhere."""
        if not any(structural_checks.check_lists(old, self._own)):
            yield from structural_checks.check_lists(new, self._own)

    def _prepare_status(self, new: Json, old: Json, context: Context) -> Json:
        found: Json = {name: one for name, one in old.items() if name != "status"}
        kept = ("managedFields", "resourceVersion")
        found["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        found["metadata"] |= {name: new["metadata"][name] for name in kept if name in new["metadata"]}
        if "status" in new:
            found["status"] = new["status"]
        return found

    def _check_status(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        schema = (self.schema.get("properties") or {}).get("status")
        found = list(metadata.check_meta_update(new, old, is_core=False))
        before = Correlated(new, old, self.schema)
        if schema is not None and "status" in new:
            found += checking.check(new["status"], schema, field="status", before=before.key("status"))
        if self.scale is not None:
            found += _check_scale(new, self.scale)
        found += self._check_changed_lists(new, old)
        return [*found, *self._ask(new, old, before, found).wrong]

    # -- tables -------------------------------------------------------------------------------------------------------

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], *(_cell(body, column, now) for column, _ in self._columns)]


def _schema_of(version: Json) -> Mapping[str, Any]:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _copy(value: Any) -> Any:
    """The same value as Go holds it: whole numbers of more than 64 bits are floats."""
    if isinstance(value, dict):
        return {name: _copy(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_copy(one) for one in value]
    if not isinstance(value, int) or -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _without(body: Json, names: set[str]) -> Json:
    return {name: one for name, one in body.items() if name not in names | {"apiVersion", "kind"}}


def _column(column: Json) -> Column:
    shown = column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return Column(column["name"], column["type"], column.get("format", ""), shown, column.get("priority", 0))


def _cell(body: Json, column: Json, now: datetime) -> object:
    found = paths.find(body, column["jsonPath"])
    if not found or found[0] is None:
        return None
    value = found[0]
    match column["type"]:
        case "integer":
            return int(value) if isinstance(value, int | float) else None
        case "number":
            return float(value) if isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return printers.since(value, now) if isinstance(value, str) else "<invalid>"
        case _:
            return ",".join(map(_text, found))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return checking.shown(value)


def _field(path: str) -> Callable[[Json], str]:
    def of(body: Json) -> str:
        found = paths.find(body, path)
        return _text(found[0]) if found else ""

    return of


def _odd_finalizer(name: str) -> str:
    """Two writers may mean different things by a name without a domain."""
    path = " including a path (/)" if "." in name else ""
    better = f"prefer a domain-qualified finalizer name{path}"
    return f"metadata.finalizers: {quoted(name)}: {better} to avoid accidental conflicts with other finalizer writers"


def _deprecation(spec: Json, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    said = version.get("deprecationWarning")
    return str(said) if said else f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"


_LARGEST_SCALE = 2**31 - 1


def _check_scale(body: Json, scale: Json) -> Iterator[Violation]:
    for path in (scale["specReplicasPath"], scale["statusReplicasPath"]):
        value, problem = _at(body, path, "integer", "int64")
        if problem:
            yield invalid(path, 0, problem)
        elif value is not None and value < 0:
            yield invalid(path, value, "should be a non-negative integer")
        elif value is not None and value > _LARGEST_SCALE:
            yield invalid(path, value, f"should be less than or equal to {_LARGEST_SCALE}")
    selector = scale.get("labelSelectorPath")
    if selector:
        _, problem = _at(body, selector, "string", "string")
        if problem:
            yield invalid(selector, quoted(""), problem)


def _at(body: Json, path: str, wanted: str, in_go: str) -> tuple[Any, str]:
    """The value at a simple path, None if there is none, and what is wrong with it or with the way to it."""
    value, way = body, ""
    for step in paths.names(path):
        if value is None:
            return None, ""
        way += f".{step}"
        if not isinstance(value, dict):
            return None, _mistaken(value, way, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if checking.kind_of(value) == wanted:
        return value, ""
    return None, _mistaken(value, way, in_go)


def _mistaken(value: Any, path: str, wanted: str) -> str:
    return f"{path} accessor error: {goprint.text(value)} is of the type {goprint.type_of(value)}, expected {wanted}"
