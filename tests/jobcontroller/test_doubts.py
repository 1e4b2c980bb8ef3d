"""Which failures of a create leave open whether there is a pod: each costs a look at all pods of the Job."""

from __future__ import annotations

import pytest

from mirror.jobcontroller.live_check import leaves_doubt
from mirror.kube.errors import BadAnswer, Forbidden, KubeError, OutcomeUnknown, ServerFailure, Unreachable

NOT_CALLED = (
    'Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post "https://x"'
)
DENIED = 'admission webhook "pods.example.com" denied the request: not today'


@pytest.mark.parametrize(
    ("error", "leaves"),
    [
        pytest.param(OutcomeUnknown("no answer within 15 s"), True, id="no answer"),
        pytest.param(BadAnswer("an answer that is not JSON"), True, id="an answer that says nothing"),
        pytest.param(ServerFailure(500, "InternalError", "etcdserver: request timed out"), True, id="storage"),
        pytest.param(ServerFailure(504, "Timeout", "request did not complete"), True, id="a timeout of the server's"),
        pytest.param(ServerFailure(500, "InternalError", NOT_CALLED), False, id="a webhook that is down"),
        pytest.param(ServerFailure(503, "", DENIED), False, id="a webhook that fails on purpose"),
        pytest.param(Forbidden(403, "Forbidden", "exceeded quota"), False, id="a refusal"),
        pytest.param(Unreachable("no connection"), False, id="nothing was sent"),
    ],
)
def test_only_what_may_have_been_carried_out_leaves_a_doubt(error: KubeError, leaves: bool) -> None:
    """Q2: webhooks are asked before anything is stored, and one that is down fails each create, of every Job."""
    assert leaves_doubt(error) is leaves
