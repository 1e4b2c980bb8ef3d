"""What a refusal means, in words: who refused, and nothing of the object that a server may quote (D18, D22)."""

from __future__ import annotations

import pytest

from mirror.controllers.refusing import refusal_text
from mirror.kube.errors import ApiError, BadRequest, Cause, Forbidden, Invalid, NotFound, ServerFailure

QUOTA = (
    'jobs.batch "train" is forbidden: exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=3, '
)
POLICY = "jobs.batch \"train\" is forbidden: ValidatingAdmissionPolicy 'no-root' with binding 'all' denied request: "
GOING = 'things.example.com "a" is forbidden: create not allowed while custom resource definition is terminating'
FAILING = 'Internal error occurred: failed calling webhook "w": failed to call webhook: Post "https://h.ns.svc:443/": '
WEBHOOK = 'admission webhook "jobs.acme.io" denied the request'


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NotFound(404, "NotFound", 'namespaces "a" not found'), "the namespace does not exist"),
        (Forbidden(403, "Forbidden", 'jobs.batch is forbidden: User "u" cannot create'), "not allowed (403 Forbidden)"),
        (
            Forbidden(403, "Forbidden", 'jobs.batch is forbidden: User "u" cannot create resource "jobs" in API group'),
            "not allowed to create jobs (403 Forbidden)",
        ),
        (
            Forbidden(
                403,
                "Forbidden",
                'jobs.batch "j" is forbidden: unable to create new content in namespace a '
                "because it is being terminated",
            ),
            "the namespace is being deleted",
        ),
        (Forbidden(403, "Forbidden", GOING), "its CustomResourceDefinition is being deleted"),
        (
            Forbidden(403, "Forbidden", QUOTA + "limited: count/jobs.batch=3"),
            "quota exceeded: ResourceQuota few, requested count/jobs.batch=1 (403 Forbidden)",
        ),
        (
            Invalid(422, "Invalid", POLICY + "pods run\nas root", (Cause("", "", "pods run as root"),)),
            "denied by ValidatingAdmissionPolicy no-root: pods run\\nas root (422 Invalid)",
        ),
        (
            Forbidden(403, "Forbidden", WEBHOOK + ": image is not signed"),
            "denied by admission webhook jobs.acme.io: image is not signed (403 Forbidden)",
        ),
        (
            BadRequest(400, "", WEBHOOK + " without explanation"),
            "denied by admission webhook jobs.acme.io (400 refused)",
        ),
        (
            ServerFailure(
                500, "InternalError", 'Internal error occurred: failed calling webhook "w": Post "https://x"'
            ),
            "its admission webhook w fails (500 InternalError)",
        ),
        (
            ServerFailure(500, "InternalError", FAILING + "context deadline exceeded"),
            "its admission webhook w fails: no response in time (500 InternalError)",
        ),
        (
            ServerFailure(500, "InternalError", FAILING + "dial tcp 10.0.0.7:443: connect: connection refused"),
            "its admission webhook w fails: connection refused (500 InternalError)",
        ),
        (
            ServerFailure(500, "InternalError", FAILING + 'no endpoints available for service "hook"'),
            "its admission webhook w fails: its Service has no endpoints (500 InternalError)",
        ),
        (
            ServerFailure(
                500, "InternalError", 'failed calling webhook "w": failed to call webhook: service "h" not found'
            ),
            "its admission webhook w fails: its Service does not exist (500 InternalError)",
        ),
        (
            Invalid(422, "Invalid", "Job is invalid: {secret}", (Cause("spec.template", "FieldValueInvalid", "s"),)),
            "422 Invalid: spec.template: FieldValueInvalid",
        ),
        (
            Invalid(
                422,
                "Invalid",
                ' "" is invalid: patch: Invalid value: "[{\\"value\\":\\"secret\\"}]": strict decoding error: '
                'unknown field "spec.shape"',
                (Cause("patch", "FieldValueInvalid", "secret"),),
            ),
            'unknown field "spec.shape" (422 Invalid)',
        ),
        (Invalid(422, "Invalid", "secret", (Cause("", "", "secret"),)), "422 Invalid: the object is invalid"),
    ],
)
def test_who_refused_is_named(error: ApiError, text: str) -> None:
    """CR7: a definition that goes, a webhook that denies and one that is down are no missing permission."""
    assert refusal_text(error) == text


def test_what_a_policy_says_is_bounded() -> None:
    """Its message may hold the whole object."""
    assert len(refusal_text(Invalid(422, "Invalid", POLICY + "x" * 100_000))) < 300
