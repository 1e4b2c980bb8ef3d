"""The kinds by which users of a cluster tell of their webhooks (``admissionregistration.k8s.io/v1``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from mirror.batch.violations import Violation
from mirror.embedded.apiserver.admission.webhooks import GROUP
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.validation import metadata, webhooks

VERSION = "v1"
_TIMEOUT_SECONDS, _PORT = 10, 443


class Configurations(Builtin):
    """Mutating or validating ones."""

    is_namespaced = False
    has_generation = True
    allows_unconditional_update = False
    columns = (
        printers.NAME,
        Column(
            "Webhooks",
            "integer",
            description="Webhooks indicates the number of webhooks registered in this configuration",
        ),
        printers.AGE,
    )

    def __init__(self, struct: str, *, is_mutating: bool) -> None:
        self.struct = struct
        self._is_mutating = is_mutating

    def default(self, body: Json, context: Context) -> None:
        for webhook in body.get("webhooks") or ():
            webhook.setdefault("failurePolicy", "Fail")
            webhook.setdefault("matchPolicy", "Equivalent")
            webhook.setdefault("namespaceSelector", {})
            webhook.setdefault("objectSelector", {})
            webhook.setdefault("timeoutSeconds", _TIMEOUT_SECONDS)
            if self._is_mutating:
                webhook.setdefault("reinvocationPolicy", "Never")
            for rule in webhook.get("rules") or ():
                rule.setdefault("scope", "*")
            service = (webhook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", _PORT)

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new = super().prepare_update(new, old, context)
        if not same(new.get("webhooks"), old.get("webhooks")):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return new

    def check_meta(self, body: Json) -> Iterator[Violation]:
        yield from metadata.check_meta(body["metadata"], is_namespaced=False, is_core=False)

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [*self.check_meta(new), *self.check(new, context)]

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        yield from webhooks.check_webhooks(body.get("webhooks") or (), is_mutating=self._is_mutating)

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [body["metadata"]["name"], len(body.get("webhooks") or ()), printers.age(body, now)]


MUTATING = Kind(
    GROUP,
    VERSION,
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    Configurations("MutatingWebhookConfiguration", is_mutating=True),
    singular="mutatingwebhookconfiguration",
    categories=("api-extensions",),
    is_namespaced=False,
)
VALIDATING = Kind(
    GROUP,
    VERSION,
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    Configurations("ValidatingWebhookConfiguration", is_mutating=False),
    singular="validatingwebhookconfiguration",
    categories=("api-extensions",),
    is_namespaced=False,
)


def kinds() -> list[Kind]:
    """Both."""
    return [MUTATING, VALIDATING]
