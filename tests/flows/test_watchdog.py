"""No input of 3 MiB or less holds the manager's one loop for a quarter of a second of CPU (D29).

Each case is made of an input and of what the manager does with it in one turn of the loop. What is refused is fine; so
is what goes to a thread. A generator that knows the shapes of Jobs, statuses, reviews and kubeconfigs makes them large:
in values up to the bound on those, in texts up to 3 MiB. Times are CPU time, the best of three. A few of
each kind are in the quick run, all of them in the slow one.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from doubles.jobs import job as job_body

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.access.request_parsing import Asked, read
from mirror.controllers import observing, requesting
from mirror.controllers.sources import indexes_of
from mirror.decide.snapshot import Memory
from mirror.kinds.asking import state
from mirror.kinds.base import BadAnnotation, MirrorTransform
from mirror.kinds.batch_job.status import next_status
from mirror.kinds.registry import BUILT_IN, JOB
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object, Partial, decode_object
from mirror.kube.watch import decode_event
from mirror.model import names
from mirror.page import query
from mirror.webhook import reviews
from mirror.webhook.mutating import mutate
from mirror.webhook.reviews import BadReview
from mirror.webhook.validating import validate
from mirror.workers.spec import read_spec
from mirror.workers.tokens import token_of, with_token

Json = dict[str, Any]
TRANSFORM = MirrorTransform(origin="o")
INDEXES = indexes_of(JOB)
BOUNDS = Bounds()
MOST_SECONDS = 0.25
MOST_BYTES = 3 * 2**20
MOST_VALUES = 49_000
REFUSED = (KubeError, BadReview, StatusError, ValueError, RecursionError)


@pytest.fixture(autouse=True)
def frozen(frozen_again: None) -> Iterator[None]:
    """What was there before is out of the collector's sight, as in a manager (``app``): other tests leave a lot."""
    gc.freeze()
    yield
    gc.unfreeze()


def hold_of(work: Callable[[], object]) -> float:
    """CPU seconds of one turn of the loop."""
    best = float("inf")
    for _ in range(5):  # others on the machine only ever make it longer
        began = time.thread_time()
        with contextlib.suppress(*REFUSED):
            work()
        best = min(best, time.thread_time() - began)
        if best < MOST_SECONDS:
            break
    return best


def filled(make: Callable[[int], object], values_each: int) -> list[object]:
    """As many as the bound on values allows, within 3 MiB."""
    items, size = [], 0
    for number in range(MOST_VALUES // values_each):
        one = make(number)
        size += len(repr(one)) + 2  # as long as its JSON, and ten times as quick
        if size > MOST_BYTES - 4096:
            break
        items.append(one)
    return items


def specs() -> Iterator[tuple[str, Json]]:
    """Parts of a Job that may be long, made long; by name."""
    many = filled(lambda number: {"name": f"c{number}", "image": "i"}, 4)
    for field in ("containers", "initContainers"):
        yield field, {"pod": {field: many}}
    texts = filled(lambda number: f"value {number}", 1)
    yield "args", {"pod": {"containers": [{"name": "c", "image": "i", "args": texts}]}}
    env = filled(lambda number: {"name": f"V{number}", "value": "x" * 40}, 4)
    yield "env", {"pod": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    yield "volumes", {"pod": {"volumes": filled(lambda n: {"name": f"v{n}", "secret": {"secretName": f"s{n}"}}, 6)}}
    yield "tolerations", {"pod": {"tolerations": filled(lambda n: {"key": f"t{n}", "operator": "Exists"}, 4)}}
    yield "gates", {"pod": {"schedulingGates": filled(lambda n: {"name": f"example.com/g{n}"}, 3)}}
    yield "rules", {"spec": {"podFailurePolicy": {"rules": filled(lambda n: {"name": f"n{n}"}, 3)}}}
    yield (
        "exit codes",
        {
            "spec": {
                "podFailurePolicy": {"rules": [{"action": "Count", "onExitCodes": {"values": list(range(48_000))}}]}
            }
        },
    )
    yield (
        "success",
        {"spec": {"successPolicy": {"rules": [{"succeededIndexes": ",".join(str(2 * n) for n in range(200_000))}]}}},
    )
    yield (
        "expressions",
        {"spec": {"manualSelector": True, "selector": {"matchExpressions": filled(lambda n: {"key": f"k{n}"}, 3)}}},
    )
    plain = {f"k{number}": "v" for number in range(48_000)}
    yield "labels", {"metadata": {"labels": plain}}
    yield "annotations", {"metadata": {"annotations": plain}}
    yield "pod's labels", {"template": {"labels": plain}}
    yield "node selector", {"pod": {"nodeSelector": plain}}
    yield "finalizers", {"metadata": {"finalizers": [f"example.com/f{number}" for number in range(40_000)]}}
    yield "owners", {"metadata": {"ownerReferences": filled(lambda n: {"kind": "A", "name": f"o{n}", "uid": "u"}, 4)}}
    yield "unknown fields", {"spec": plain}
    yield "deep", {"spec": {"x": nested(12_000)}}
    for name, text in (("escapes", '\\"' * 350_000), ("brackets", '{["' * 300_000), ("wide", "\u20ac" * 400_000)):
        yield f"a text of {name}", {"pod": {"containers": [{"name": "c", "image": "i", "args": [text]}]}}
    for name, text in hostile_annotations():
        yield name, {"metadata": {"annotations": text}}
    quotes = {"annotations": {names.RULE_NAMES: '"' * 200_000}}
    yield "too many values behind quotes", {"metadata": quotes, "spec": {"unknown": list(range(60_000))}}


def hostile_annotations() -> Iterator[tuple[str, Json]]:
    for name, text in {
        "parts": ",".join("a" for _ in range(120_000)),
        "4096 characters of parts": ",".join("a" for _ in range(2_000)),
        "one long key": "a-" * 2_000 + "!",
        "spaces": "a" + " " * 4_000 + "in",
        "values": "a in (" + ",".join("v" for _ in range(2_000)) + ")",
        "dots": "a." * 2_000 + "/",
    }.items():
        yield f"a selector: {name}", {names.WORKER_SELECTOR: text}
    given = json.dumps({str(number): f"n{number}" for number in range(12_000)})
    yield "rule names", {names.RULE_NAMES: given}
    yield "a number of a million digits", {names.RULE_NAMES: '{"' + "9" * 1_000_000 + '":"x"}'}


def nested(depth: int) -> object:
    found: object = 1
    for _ in range(min(depth, 900)):
        found = [found]
    return found


def body_of(parts: Json) -> Json:
    body = job_body("train")
    body["metadata"] |= {"uid": "u-1", "resourceVersion": "7"} | parts.get("metadata", {})
    body["spec"]["template"]["spec"] |= parts.get("pod", {})
    body["spec"]["template"]["metadata"] = parts.get("template", {})
    body["spec"] |= parts.get("spec", {})
    return body


def statuses() -> Iterator[tuple[str, Json]]:
    """What a worker may say of a Job."""
    conditions = filled(lambda n: {"type": f"T{n}", "status": "True", "reason": "R", "message": "m" * 30}, 5)
    yield "conditions", {"conditions": conditions}
    same = filled(lambda n: {"type": "Failed", "status": "True", "reason": "R", "message": "m" * 30}, 5)
    yield "the same condition", {"conditions": same}
    yield "long messages", {"conditions": [{"type": "Failed", "status": "True", "message": "\n\x1b" * 300_000}]}
    yield "uncounted", {"uncountedTerminatedPods": {"succeeded": [f"uid-{number}" for number in range(48_000)]}}
    odd = ",".join(str(2 * number) for number in range(200_000))
    yield "indexes", {"completedIndexes": odd, "failedIndexes": odd}
    yield "backwards", {"completedIndexes": ",".join(str(100_000 - number) for number in range(100_000))}
    yield "ranges", {"completedIndexes": ",".join(f"{3 * n}-{3 * n + 1}" for n in range(150_000))}
    yield "a range of digits", {"completedIndexes": "9" * 1_000_000, "failedIndexes": "0-" + "9" * 100_000}
    yield "commas", {"completedIndexes": "," * 2_000_000}
    yield "unknown", {f"k{number}": number for number in range(48_000)}
    yield "times", {"startTime": "2" * 1_000_000, "completionTime": "2026-01-01T00:00:00." + "0" * 1_000_000 + "Z"}
    yield "numbers", {"active": 10**4000, "ready": -1, "succeeded": 1e308}


def encoded(body: object) -> bytes:
    raw = json.dumps(body, ensure_ascii=False).encode()
    assert len(raw) <= MOST_BYTES, len(raw)
    return raw


QUICK = {
    *("containers", "labels", "a text of escapes", "too many values behind quotes"),
    *("conditions", "indexes"),
    *("begins without end", "items"),
}


def chosen(cases: Json) -> list[Any]:
    """All names, those that are not quick marked as slow."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in cases]


SPECS = dict(specs())
STATUSES = dict(statuses())


@pytest.mark.slow
@pytest.mark.parametrize("name", chosen(SPECS))
def test_no_source_holds_the_loop(name: str) -> None:
    """What the manager does when a source comes, is looked at, is sent, and is compared with its mirror."""
    raw = encoded(body_of(SPECS[name]))
    line = b'{"type":"ADDED","object":' + raw + b"}"
    assert hold_of(lambda: decode_event(line)) < MOST_SECONDS
    found = decode_event(line).object
    if isinstance(found, Partial):
        return

    def arrive() -> None:
        fresh = decode_object(raw)
        JOB.managed_by(fresh)
        state(JOB, fresh)
        for index in INDEXES.values():
            index(fresh)

    def look() -> None:
        observing.source_of(JOB, found)
        with contextlib.suppress(BadAnnotation):
            requesting.placement_request_of(JOB, found, Memory(uid="u-1"))

    assert hold_of(arrive) < MOST_SECONDS
    assert hold_of(look) < MOST_SECONDS
    assert (
        hold_of(lambda: msgspec.json.encode(JOB.mirror_body(found, namespace="n", transform=TRANSFORM))) < MOST_SECONDS
    )
    mirror = decode_object(encoded(JOB.mirror_body(found, namespace="n", transform=TRANSFORM)))
    assert hold_of(lambda: JOB.changes(found, mirror, transform=TRANSFORM)) < MOST_SECONDS


@pytest.mark.parametrize("name", chosen(STATUSES))
def test_no_status_of_a_worker_holds_the_loop(name: str) -> None:
    """Nor does what is made of it."""
    indexed = {"completionMode": "Indexed", "completions": 100_000, "parallelism": 10}
    source = observing.source_of(JOB, decode_object(encoded(body_of({"spec": indexed}))))
    raw = encoded(body_of({"spec": indexed}) | {"status": STATUSES[name]})
    line = b'{"type":"MODIFIED","object":' + raw + b"}"
    assert hold_of(lambda: decode_event(line)) < MOST_SECONDS
    found: Object
    try:
        found = decode_event(line).object
    except KubeError:
        return
    assert hold_of(lambda: (state(JOB, found), JOB.summary(found))) < MOST_SECONDS
    assert hold_of(lambda: next_status(source.stored, found.status_dict(), now=datetime.now(UTC))) < MOST_SECONDS
    assert hold_of(lambda: observing.source_of(JOB, found)) < MOST_SECONDS


@pytest.mark.parametrize("operation", ["CREATE", pytest.param("UPDATE", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", chosen(SPECS))
def test_no_review_holds_the_loop(name: str, operation: str) -> None:
    """Whoever reaches the webhook's address can send one."""
    body = body_of(SPECS[name])
    request = {
        "uid": "1",
        "operation": operation,
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "namespace": "default",
        "object": body,
    }
    raw = json.dumps({"apiVersion": reviews.API_VERSION, "kind": "AdmissionReview", "request": request}).encode()
    raw = raw[:-2] + (b',"oldObject":{"metadata":{"name":"train"},"spec":{}}}}' if operation == "UPDATE" else b"}}")

    def answer() -> None:
        question = reviews.read(raw)
        reviews.answer(question.uid, mutate(question, "example.com/other"))
        reviews.answer(question.uid, validate(question, names.DEFAULT_MANAGED_BY))

    assert hold_of(answer) < MOST_SECONDS


def kubeconfigs() -> Iterator[tuple[str, bytes]]:
    def document(authority: bytes = b"", more: str = "") -> bytes:
        data = f"    certificate-authority-data: {base64.b64encode(authority).decode()}\n" if authority else ""
        return (
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\n"
            f"clusters:\n- name: k\n  cluster:\n    server: https://w.example.com\n{data}"
            f"users:\n- name: u\n  user: {{token: t}}\n{more}"
        ).encode()

    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    yield "begins without end", document(begin * 25_000)
    yield "ends without begin", document(end * 25_000)
    yield "empty certificates", document((begin + b"\n" + end + b"\n") * 12_000)
    yield "text around", document(b"-" * 700_000)
    yield "base 60", document(more="x: 1" + ":1" * 500_000 + "\n")
    yield "base 60 with a fraction", document(more="x: 1" + ":1" * 500_000 + ".5\n")
    yield "binary", document(more="x: 0b" + "1" * 1_000_000 + "\n")
    yield "underscores", document(more="x: 1" + "_" * 1_000_000 + "\n")
    yield "digits", document(more="x: " + "9" * 1_000_000 + "\n")
    yield "a fraction", document(more="x: 1." + "9" * 1_000_000 + "\n")
    yield "items", document(more="x:\n" + "- a\n" * 250_000)
    yield "empty lists", document(more="x: [" + "[]," * 330_000 + "]\n")
    yield "keys", document(more="x:\n" + "".join(f"  k{number}: 1\n" for number in range(70_000)))
    yield "times", document(more="x:\n" + "- 2001-12-14t21:59:43.10-05:00\n" * 30_000)
    yield "nested", document(more="x: " + "[" * 500_000)
    yield "a comment", document(more="#" * 1_000_000)
    yield "spaces", document(more="x:" + " " * 1_000_000 + "\n")
    yield "quotes", document(more='x: "' + "\\u0041" * 150_000 + '"\n')
    yield (
        "contexts",
        document(more="").replace(
            b"contexts:\n",
            b"contexts:\n" + b"".join(b"- {name: c%d, context: {cluster: k}}\n" % n for n in range(20_000)),
        ),
    )


KUBECONFIGS = dict(kubeconfigs())


@pytest.mark.parametrize("name", chosen(KUBECONFIGS))
def test_no_kubeconfig_holds_the_loop(name: str) -> None:
    """Who writes the Secrets of workers is an operator, and may be wrong."""
    raw = KUBECONFIGS[name]
    metadata = {"name": "east", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    secret = decode_object(encoded({"metadata": metadata, "data": {"kubeconfig": base64.b64encode(raw).decode()}}))
    assert hold_of(lambda: token_of(read_spec(secret).kubeconfig)) < MOST_SECONDS
    assert hold_of(lambda: with_token(raw, "other")) < 2 * MOST_SECONDS  # reads it four times, once in a token's life


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_request_of_a_user_or_a_reader_of_the_page_holds_the_loop(seed: int) -> None:
    """Addresses are bounded to 16 KiB by the server; longer ones do not come so far."""
    chance = random.Random(seed)
    pieces = ["/", "%2f", "%", "&", "=", "v1", "namespaces", "jobs", "a", "\u20ac", "+", "limit=9", "continue=", "\x00"]
    address = "/v1/" + "".join(chance.choice(pieces) for _ in range(16_000))[:16_000]
    text = "?" + "&".join(chance.choice(("a=b", "limit=" + "9" * 4000, "tailLines=1")) for _ in range(3_000))
    for target in (address, "/v1/jobs" + text[:16_000]):
        asked = Asked("GET", target, {"authorization": "Bearer " + "x" * 8_000}, "127.0.0.1")
        assert hold_of(lambda asked=asked: read(asked, BUILT_IN, BOUNDS)) < MOST_SECONDS
    values = dict.fromkeys(("state", "namespace", "worker", "text", "page"), "x" * 16000)
    assert hold_of(lambda: query.parse(values).address()) < MOST_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_no_random_mixture_holds_the_loop(seed: int) -> None:
    """Several parts at once, together within the bounds."""
    chance = random.Random(seed)
    parts: Json = {}
    for name in chance.sample(list(SPECS), 3):
        for place, value in SPECS[name].items():
            parts[place] = parts.get(place, {}) | value
    raw = json.dumps(body_of(parts) | {"status": STATUSES[chance.choice(list(STATUSES))]}).encode()[:MOST_BYTES]
    line = b'{"type":"MODIFIED","object":' + raw + b"}"
    assert hold_of(lambda: decode_event(line)) < MOST_SECONDS
    with contextlib.suppress(KubeError):
        found = decode_event(line).object
        if not isinstance(found, Partial):
            assert hold_of(lambda: observing.source_of(JOB, found)) < MOST_SECONDS
            assert hold_of(lambda: JOB.changes(found, found, transform=TRANSFORM)) < MOST_SECONDS
