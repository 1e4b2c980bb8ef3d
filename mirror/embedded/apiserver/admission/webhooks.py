"""Webhooks as they are stored, and which of them a request concerns. Pure but for reading namespaces."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirror.embedded.apiserver.admission.plugins import Attributes
from mirror.embedded.apiserver.apimachinery.errors import Json, not_found
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.validation.metadata import is_well_formed, selects

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}"
"""Where configurations are stored."""
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of one configuration."""

    uid: str
    """Its configuration and its name: no other has the same."""
    body: Json

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def fails_open(self) -> bool:
        """Whether a call that fails is as good as a permission."""
        return self.body.get("failurePolicy") == "Ignore"

    @property
    def is_called_again(self) -> bool:
        """Whether it wants to see what others have changed after it."""
        return self.body.get("reinvocationPolicy") == "IfNeeded"

    @property
    def may_be_called_on_dry_run(self) -> bool:
        return self.body.get("sideEffects") in ("None", "NoneOnDryRun")

    @property
    def timeout_seconds(self) -> int:
        return int(self.body.get("timeoutSeconds", 10))

    @property
    def authorities(self) -> bytes:
        """Who may have signed its certificate, as PEM; empty: whom the system trusts."""
        return b64decode(self.body["clientConfig"].get("caBundle") or "")


def kind_for(hook: Webhook, attributes: Attributes, registry: Registry, storage: Storage) -> Kind | None:
    """The kind, in the version that the webhook accepts, as which it gets this request; None: it does not match.

    Raises:
        StatusError: 404, it selects by a namespace that is not there.
    """
    if attributes.kind.group == GROUP:
        return None  # a broken webhook must not keep its own configuration from being changed
    in_namespace = _is_in_its_namespaces(hook, attributes, storage)
    if in_namespace is False or not _is_its_object(hook, attributes):
        return None
    found = _by_rules(hook, attributes, registry)
    if found is not None and in_namespace is None:
        raise not_found("namespaces", "", attributes.around)
    return found


def _is_in_its_namespaces(hook: Webhook, attributes: Attributes, storage: Storage) -> bool | None:
    """None if there is no such namespace."""
    selector = hook.body.get("namespaceSelector") or {}
    if not attributes.around or not _says_something(selector):
        return True
    if attributes.is_of_namespaces and not attributes.subresource and attributes.body is not None:
        return _selects(selector, _labels(attributes.body))
    record = storage.get("namespaces", "", attributes.around)
    return None if record is None else _selects(selector, record.labels)


def _is_its_object(hook: Webhook, attributes: Attributes) -> bool:
    selector = hook.body.get("objectSelector") or {}
    if not _says_something(selector):
        return True
    bodies = (body for body in (attributes.body, attributes.old) if body is not None)
    return any(_selects(selector, _labels(body)) for body in bodies)


def _selects(selector: Json, labels: Mapping[str, str]) -> bool:
    return is_well_formed(selector) and selects(selector, labels)


def _says_something(selector: Json) -> bool:
    return bool(selector.get("matchLabels") or selector.get("matchExpressions"))


def _labels(body: Json) -> Mapping[str, str]:
    labels: Mapping[str, str] = body.get("metadata", {}).get("labels") or {}
    return labels


def _by_rules(hook: Webhook, attributes: Attributes, registry: Registry) -> Kind | None:
    rules = hook.body.get("rules") or ()
    if any(_meets(rule, attributes, attributes.kind) for rule in rules):
        return attributes.kind
    if hook.body.get("matchPolicy") != "Equivalent":
        return None
    others = [one for one in registry if one is not attributes.kind and one.stored_as == attributes.kind.stored_as]
    return next((one for rule in rules for one in others if _meets(rule, attributes, one)), None)


def _meets(rule: Json, attributes: Attributes, kind: Kind) -> bool:
    scope = rule.get("scope", _ANY)
    is_clusters = attributes.is_of_namespaces or not attributes.namespace
    return (
        (scope == _ANY or (scope == "Cluster") == is_clusters)
        and _has(rule.get("operations", ()), attributes.operation)
        and _has(rule.get("apiGroups", ()), kind.group)
        and _has(rule.get("apiVersions", ()), kind.version)
        and any(_is_resource(one, kind.plural, attributes.subresource) for one in rule.get("resources", ()))
    )


def _has(values: Iterable[str], value: str) -> bool:
    return any(one in (_ANY, value) for one in values)


def _is_resource(wanted: str, plural: str, subresource: str) -> bool:
    resource, _, part = wanted.partition("/")
    return resource in (_ANY, plural) and part in (_ANY, subresource)
