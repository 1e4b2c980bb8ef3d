"""Service accounts. Their tokens are made by ``actions.tokens``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin

_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccounts(Builtin):
    """Of the Secrets that one lists, only the names are kept."""

    struct = "ServiceAccount"
    columns = (printers.NAME, printers.AGE)

    def prepare_create(self, body: Json, context: Context) -> Json:
        return _clean(super().prepare_create(body, context))

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        return _clean(super().prepare_update(new, old, context))

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        if old is not None and _MOUNTABLE in old["metadata"].get("annotations", {}):
            return ()
        if _MOUNTABLE not in new["metadata"].get("annotations", {}):
            return ()
        advice = "prefer separate namespaces to isolate access to mounted secrets"
        return (f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; {advice}",)

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], printers.age(body, now)]


def _clean(body: Json) -> Json:
    if "secrets" in body:
        body["secrets"] = [{"name": one["name"]} if "name" in one else {} for one in body["secrets"]]
    return body


def kind() -> Kind:
    """``v1`` ``serviceaccounts``."""
    return Kind(
        "", "v1", "ServiceAccount", "serviceaccounts", ServiceAccounts(), singular="serviceaccount", short_names=("sa",)
    )
