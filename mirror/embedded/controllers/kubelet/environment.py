"""The variables of a container: literal, or from the pod, ConfigMaps and Secrets; and ``$(NAME)`` in texts."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.controllers.client import Api, Json
from mirror.embedded.controllers.kubelet.runtime import CannotStart, NotYet
from mirror.kube.errors import NotFound
from mirror.kube.resources import CONFIGMAPS, SECRETS, Resource

_MISSING = "CreateContainerConfigError"
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_NO_LIMIT = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}


class Environment:
    """Finds the variables of containers; ConfigMaps and Secrets are read when they are needed, as a kubelet does."""

    def __init__(self, api: Api, room: Mapping[str, str]) -> None:
        """``room``: what the node has; a container without limits may use all of it."""
        self._api = api
        self._room = room

    async def of(self, pod: Json, container: Json, given: Mapping[str, str]) -> dict[str, str]:
        """All variables, those of ``given`` first.

        Raises:
            NotYet: an object or a key is missing.
            CannotStart: it needs something that is not available here.
            KubeError: something could not be read.
        """
        found = dict(given)
        namespace = pod["metadata"]["namespace"]
        for source in container.get("envFrom") or ():
            prefix = source.get("prefix") or ""
            for kind, resource in (("configMapRef", CONFIGMAPS), ("secretRef", SECRETS)):
                if source.get(kind) is not None:
                    values = await self._values(resource, namespace, source[kind])
                    found |= {prefix + name: value for name, value in (values or {}).items()}
        for variable in container.get("env") or ():
            value = await self._value(pod, container, variable, found)
            if value is not None:
                found[variable["name"]] = value
        return found

    async def _value(self, pod: Json, container: Json, variable: Json, known: Mapping[str, str]) -> str | None:
        """One variable's value; None: it is optional, and not there."""
        source = variable.get("valueFrom")
        if source is None:
            return expanded(variable.get("value") or "", known)
        if "fieldRef" in source:
            return field_of(pod, source["fieldRef"].get("fieldPath") or "")
        if "resourceFieldRef" in source:
            return self._resource(pod, container, source["resourceFieldRef"])
        for kind, resource in (("configMapKeyRef", CONFIGMAPS), ("secretKeyRef", SECRETS)):
            if kind in source:
                return await self._key(resource, pod["metadata"]["namespace"], source[kind])
        raise CannotStart(f"variable {variable['name']}: its source is not supported here")

    async def _key(self, resource: Resource, namespace: str, reference: Json) -> str | None:
        values = await self._values(resource, namespace, reference)
        key, name = reference.get("key") or "", reference.get("name") or ""
        if values is None or (key not in values and reference.get("optional")):
            return None
        if key not in values:
            raise NotYet(_MISSING, f"couldn't find key {key} in {resource.kind} {namespace}/{name}")
        return values[key]

    async def _values(self, resource: Resource, namespace: str, reference: Json) -> dict[str, str] | None:
        """The data of an object; None: it is optional, and not there."""
        name = reference.get("name") or ""
        try:
            body = await self._api.get(resource, name, namespace=namespace)
        except NotFound:
            if reference.get("optional"):
                return None
            raise NotYet(_MISSING, f"{resource.kind.lower()} {quoted(name)} not found") from None
        return dict(_texts(body, is_secret=resource is SECRETS))

    def _resource(self, pod: Json, container: Json, reference: Json) -> str:
        """``limits.memory`` and its like, in units of the divisor, rounded up."""
        name = reference.get("containerName") or container["name"]
        other = next((one for one in pod["spec"].get("containers") or () if one["name"] == name), container)
        which, _, what = str(reference.get("resource") or "").partition(".")
        resources = other.get("resources") or {}
        amount = (resources.get(which) or {}).get(what)
        if amount is None:
            amount = self._room.get(what, _NO_LIMIT.get(what, "0")) if which == "limits" else "0"
        value, unit = quantities.of(amount), quantities.of(reference.get("divisor") or "1")
        if value is None or unit is None or not unit.nano:
            unit, value = quantities.Quantity(10**9, "1"), value or quantities.Quantity(0, "0")
        return str(-(-value.nano // unit.nano))


def field_of(pod: Json, path: str) -> str:
    """What a ``fieldRef`` names; what there is not is empty.

    Raises:
        CannotStart: no such field can be named.
    """
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        return str((meta.get(keyed[1]) or {}).get(keyed[2], ""))
    found: dict[str, Any] = {
        "metadata.name": meta.get("name"),
        "metadata.namespace": meta.get("namespace"),
        "metadata.uid": meta.get("uid"),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.hostIP": status.get("hostIP"),
        "status.podIP": status.get("podIP"),
        "status.hostIPs": status.get("hostIP"),
        "status.podIPs": status.get("podIP"),
        "metadata.labels": _listed(meta.get("labels") or {}),
        "metadata.annotations": _listed(meta.get("annotations") or {}),
    }
    if path not in found:
        raise CannotStart(f"unsupported fieldPath: {path}")
    return str(found[path] or "")


def _listed(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={quoted(value)}" for name, value in sorted(values.items()))


def _texts(body: Json, *, is_secret: bool) -> Iterator[tuple[str, str]]:
    for name, value in (body.get("data") or {}).items():
        if not is_secret:
            yield name, str(value)
            continue
        try:
            yield name, base64.b64decode(value).decode(errors="surrogateescape")
        except (binascii.Error, ValueError):
            continue


# ``$(NAME)`` in commands, arguments and values of variables, as Kubernetes replaces it; pure.


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with variables in place; ``$$`` is a dollar, and what is not known stays as it is."""
    found: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0 and dollar + 1 < len(text):
        found.append(text[position:dollar])
        follower = text[dollar + 1]
        close = text.find(")", dollar) if follower == "(" else -1
        if close >= 0:
            name = text[dollar + 2 : close]
            found.append(variables.get(name, f"$({name})"))
            position = close + 1
        else:
            found.append("$" if follower == "$" else f"${follower}")
            position = dollar + 2
    return "".join(found) + text[position:]
