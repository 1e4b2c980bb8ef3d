"""Reviews as API servers send them, and what their answers make of a Job."""

from __future__ import annotations

import base64
import json
from typing import Any

from doubles.jobs import Body
from doubles.patching import apply_json_patch

from mirror.webhook import reviews
from mirror.webhook.reviews import Question, Verdict

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(found: Any, old: Any = None, **changes: Any) -> bytes:
    """As it is posted."""
    request = {
        "uid": UID,
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "requestKind": {"group": "batch", "version": "v1", "kind": "Job"},
        "namespace": "default",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "jane", "groups": []},
        "object": found,
        "oldObject": old,
        "dryRun": False,
        "options": {},
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | changes}
    return json.dumps(whole).encode()


def question(found: Body, old: Body | None = None) -> Question:
    return reviews.read(review(found, old))


def after(found: Body, verdict: Verdict) -> Body:
    """The Job with the answer's patch, by way of the wire."""
    response = json.loads(reviews.answer(UID, verdict))["response"]
    assert response["allowed"], response
    if "patch" not in response:
        return found
    assert response["patchType"] == "JSONPatch"
    patched: Body = apply_json_patch(found, json.loads(base64.b64decode(response["patch"])))
    return patched
