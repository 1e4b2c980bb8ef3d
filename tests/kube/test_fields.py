"""What a server says of its fields (D17)."""

from __future__ import annotations

import msgspec
import pytest

from mirror.batch import rule_names
from mirror.kube.errors import BadAnswer, Forbidden, KubeError, NotServed, Unreachable
from mirror.kube.fields import stores_field
from mirror.kube.requests import Request
from mirror.telemetry.logs import get_log


class Server:
    """Answers with this document, or not."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.asked: list[str] = []

    async def send(self, request: Request) -> bytes:
        self.asked.append(request.path)
        if isinstance(self._answer, KubeError):
            raise self._answer
        return self._answer if isinstance(self._answer, bytes) else msgspec.json.encode(self._answer)


def document(*fields: str) -> dict[str, object]:
    """As a real one, but for all that nobody reads."""
    rule = {"type": "object", "required": ["action"], "properties": {field: {"type": "string"} for field in fields}}
    schemas = {"io.k8s.api.batch.v1.PodFailurePolicyRule": rule, "io.k8s.api.batch.v1.Job": {"type": "object"}}
    return {"openapi": "3.0.0", "paths": {}, "components": {"schemas": schemas, "securitySchemes": {}}}


@pytest.mark.parametrize(
    ("answer", "knows"),
    [
        pytest.param(document("action", "name", "onExitCodes"), True, id="it stores the name"),
        pytest.param(document("action", "onExitCodes"), False, id="Kubernetes 1.36 does not"),
        pytest.param({"components": {"schemas": {}}}, False, id="no such policy"),
        pytest.param({}, False, id="an empty document"),
        pytest.param({"components": {"schemas": {rule_names.FIELD[1]: []}}}, False, id="another form of the policy"),
        pytest.param(b"<html>", False, id="a page"),
        pytest.param(b'{"components": 7}', False, id="another form"),
        pytest.param(NotServed(404, "NotFound", "no"), False, id="it has no such document"),
        pytest.param(Forbidden(403, "Forbidden", "no"), False, id="we may not ask"),
        pytest.param(Unreachable("refused"), False, id="it is away"),
        pytest.param(BadAnswer("html"), False, id="something else answers"),
    ],
)
async def test_a_server_knows_the_names_of_rules_if_it_says_so(answer: object, knows: bool) -> None:
    """One request; whatever goes wrong means no."""
    server = Server(answer)
    assert await stores_field(server, *rule_names.FIELD, log=get_log("test")) is knows
    assert server.asked == ["/openapi/v3/apis/batch/v1"]
