"""Much at once, large things, and bytes that make no sense. Nothing of it harms the server or others."""

from __future__ import annotations

import asyncio
import json
from random import Random

from tests.contract.answer import Answer, Wrong
from tests.contract.api import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML, Api
from tests.contract.case import Group

cases = Group("limits")
_BYTES_CASES = 120
_WORDS = (
    b"configmaps", b"jobs", b"a", b"..", b".", b"%2e%2e", b"%00", b"%ff", b"namespaces", b"status", b"api",
    b"apis", b"v1", b"batch", b"*", b"\\", b"%2F", b"watch", b"proxy", b"~", b"default", b"$", b"%20", b"%C3%A9",
)  # fmt: skip
_QUERIES = (
    "watch=1&timeoutSeconds=0", "limit=-9", "limit=99999999999999999999", "continue=%00", "resourceVersion=-1",
    "labelSelector=%ff", "fieldSelector=,,", "timeoutSeconds=1&watch=yes", "dryRun=%00", "fieldManager=%ff",
    "pretty=", "=", "&&&", "%", "fieldValidation=%ff", "gracePeriodSeconds=x", "propagationPolicy=%00",
)  # fmt: skip


@cases.case
async def writers_with_versions_lose_nothing(api: Api) -> None:
    """Eight count up one number, forty times in all; every conflict is tried again."""
    await api.post("configmaps", {"metadata": {"name": "a"}, "data": {"n": "0"}})

    async def count() -> None:
        done = 0
        while done < 5:
            body = (await api.get("configmaps/a")).ok()
            body["data"]["n"] = str(int(body["data"]["n"]) + 1)
            answer = await api.put("configmaps/a", body)
            if answer.status == 409:
                continue
            answer.ok()
            done += 1

    async with asyncio.TaskGroup() as scope:
        for number in range(8):
            scope.create_task(count(), name=f"counting {number}")
    assert (await api.get("configmaps/a")).ok()["data"]["n"] == "40"


@cases.case
async def patches_of_different_fields_all_count(api: Api) -> None:
    await api.post("configmaps", {"metadata": {"name": "a"}})
    async with asyncio.TaskGroup() as scope:
        for number in range(20):
            scope.create_task(api.patch("configmaps/a", {"data": {f"k{number}": "v"}}), name=f"patch {number}")
    assert len((await api.get("configmaps/a")).ok()["data"]) == 20


@cases.case
async def one_of_many_creators_wins(api: Api) -> None:
    answers = await asyncio.gather(*(api.post("configmaps", {"metadata": {"name": "a"}}) for _ in range(10)))
    assert sorted(one.status for one in answers) == [201, *[409] * 9]


@cases.case
async def one_of_many_deleters_wins(api: Api) -> None:
    await api.post("configmaps", {"metadata": {"name": "a"}})
    answers = await asyncio.gather(*(api.delete("configmaps/a") for _ in range(10)))
    assert sorted(one.status for one in answers) == [200, *[404] * 9]


@cases.case
async def generated_names_differ(api: Api) -> None:
    answers = await asyncio.gather(*(api.post("configmaps", {"metadata": {"generateName": "x-"}}) for _ in range(50)))
    assert len({one.ok(201)["metadata"]["name"] for one in answers}) == 50


@cases.case
async def two_hundred_objects_come_in_pages(api: Api) -> None:
    async def create(numbers: range) -> None:
        for number in numbers:
            (await api.post("configmaps", {"metadata": {"name": f"n{number:03}"}})).ok(201)

    async with asyncio.TaskGroup() as scope:
        for start in range(0, 200, 25):
            scope.create_task(create(range(start, start + 25)), name=f"create {start}")
    seen: list[str] = []
    page: dict[str, str] = {}
    versions = set()
    while True:
        more = f"&continue={page['continue']}" if page else ""
        body = (await api.get(f"configmaps?limit=37{more}")).ok()
        seen += [one["metadata"]["name"] for one in body["items"]]
        page = body["metadata"]
        versions.add(page["resourceVersion"])
        if not page.get("continue"):
            break
        assert body["metadata"]["remainingItemCount"] == 200 - len(seen)
    assert seen == [f"n{number:03}" for number in range(200)]
    assert len(versions) == 1, "every page is of the version of the first"


@cases.case
async def a_config_map_has_at_most_a_mebibyte(api: Api) -> None:
    fits = {"metadata": {"name": "a"}, "data": {"k": "x" * (1 << 20)}}
    (await api.post("configmaps", fits)).ok(201)
    answer = await api.post("configmaps", {"metadata": {"name": "b"}, "data": {"k": "x" * ((1 << 20) + 1)}})
    message = 'ConfigMap "b" is invalid: []: Too long: may not be more than 1048576 bytes'
    answer.refused(422, "Invalid", message)


@cases.case
async def a_secret_has_at_most_a_mebibyte(api: Api) -> None:
    answer = await api.post("secrets", {"metadata": {"name": "b"}, "stringData": {"k": "x" * ((1 << 20) + 1)}})
    answer.refused(422, "Invalid", 'Secret "b" is invalid: data: Too long: may not be more than 1048576 bytes')


@cases.case
async def annotations_have_at_most_a_quarter_of_that(api: Api) -> None:
    answer = await api.post("configmaps", {"metadata": {"name": "a", "annotations": {"k": "x" * (1 << 18)}}})
    message = 'ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes'
    answer.refused(422, "Invalid", message)


@cases.case
async def a_body_has_at_most_three_mebibytes(api: Api) -> None:
    body = b'{"metadata":{"name":"a"}}' + b" " * (3 << 20)
    answer = await api.post("configmaps", body)
    message = "Request entity too large: limit is 3145728"
    answer.refused(413, "RequestEntityTooLarge", message)


@cases.case
async def a_json_patch_has_at_most_ten_thousand_operations(api: Api) -> None:
    await api.post("configmaps", {"metadata": {"name": "a"}})
    patch = [{"op": "test", "path": "/metadata/name", "value": "a"}] * 10_001
    answer = await api.patch("configmaps/a", patch, JSON_PATCH)
    message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    answer.refused(413, "RequestEntityTooLarge", message)


@cases.case
async def copies_in_a_json_patch_do_not_explode(api: Api) -> None:
    await api.post("configmaps", {"metadata": {"name": "a"}, "data": {"k": "x" * 100_000}})
    patch = [{"op": "copy", "from": "/data", "path": "/metadata/annotations"}] * 60
    answer = await api.patch("configmaps/a", patch, JSON_PATCH)
    assert 400 <= answer.status < 500, answer.status
    assert answer.body["kind"] == "Status"


@cases.case
async def depth_without_end_is_refused(api: Api) -> None:
    for body in (
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"metadata":{"name":"a"},"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    ):
        answer = await api.post("configmaps", body)
        assert 400 <= answer.status < 500, answer.status
        assert answer.body["kind"] == "Status"


@cases.case
async def depth_without_end_in_yaml_is_refused(api: Api) -> None:
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n".encode() for n in range(9)
    )
    for body in (bomb, b"[" * 20_000, b"{a: " * 5_000):
        answer = await api.post("configmaps", body, content=YAML)
        assert 400 <= answer.status < 500, answer.status


@cases.case
async def long_paths_and_queries_are_answered(api: Api) -> None:
    for target in (f"configmaps/{'a' * 4000}", f"configmaps?labelSelector={'a,' * 2000}a", f"/{'x/' * 2000}"):
        answer = await api.get(target)
        assert answer.status in (200, 400, 404, 414, 431), answer.status


@cases.case
async def any_bytes_on_any_path_get_an_answer(api: Api) -> None:
    """Never a trace, never nothing; and the server goes on. Broken escapes are left to HTTP itself."""
    random = Random(api.namespace[-6:])
    await api.post("configmaps", {"metadata": {"name": "a"}})
    for _ in range(_BYTES_CASES):
        method = random.choice(("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"))
        answer = await api.send(
            method, _target(random), _body(random), content=_content(random), headers=_headers(random)
        )
        _is_sane(answer)
    assert (await api.get("configmaps/a")).status in (200, 404)  # one of them may have deleted it


@cases.case
async def any_body_for_an_object_gets_an_answer(api: Api) -> None:
    random = Random(api.namespace[-6:] + "x")
    await api.post("configmaps", {"metadata": {"name": "a"}})
    for _ in range(_BYTES_CASES):
        method, target = random.choice(
            (("POST", "configmaps"), ("PUT", "configmaps/a"), ("PATCH", "configmaps/a?fieldManager=x"))
        )
        _is_sane(await api.send(method, target, _body(random), content=_content(random)))
    assert (await api.get("configmaps/a")).status in (200, 404)


def _is_sane(answer: Answer) -> None:
    if not 200 <= answer.status < 600:
        raise Wrong(f"{answer.request}: {answer.status}")
    if answer.status >= 400 and answer.text and not answer.request.startswith("HEAD"):
        is_text = not answer.header("content-type").startswith("application/json")
        if not is_text and answer.body.get("kind") != "Status":
            raise Wrong(f"{answer.request}: {answer.text[:300]}")
    for word in ("Traceback", "goroutine ", 'File "'):
        if word in answer.text:
            raise Wrong(f"{answer.request}: {answer.text[:500]}")


def _target(random: Random) -> str:
    parts = [random.choice(_WORDS).decode() for _ in range(random.randint(0, 6))]
    if random.random() < 0.4:
        return "configmaps/" + "/".join(parts[:2]) + _query(random)
    return (
        random.choice(("/", "/api/v1/", "/apis/batch/v1/", "/api/v1/namespaces/OURS/"))
        + "/".join(parts)
        + _query(random)
    )


def _query(random: Random) -> str:
    if random.random() < 0.5:
        return ""
    query = "&".join(random.choices(_QUERIES, k=random.randint(1, 3)))
    # A watch that nobody ends would be no answer.
    return f"?timeoutSeconds=1&{query}"


def _content(random: Random) -> str:
    return random.choice(
        (JSON, JSON, YAML, MERGE, JSON_PATCH, STRATEGIC, APPLY, "", "text/html", "a/b/c;;=", "application/cbor")
    )


def _headers(random: Random) -> dict[str, str]:
    return random.choice(
        ({}, {"accept": "nonsense"}, {"accept": "application/json;as=X;g=;v="}, {"content-encoding": "gzip"})
    )


def _body(random: Random) -> bytes | None:
    valid = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    text = bytearray(json.dumps(valid).encode())
    match random.randrange(5):
        case 0:
            return None
        case 1:
            return random.randbytes(random.randint(0, 200))
        case 2:
            for _ in range(random.randint(1, 5)):
                text[random.randrange(len(text))] = random.randrange(256)
            return bytes(text)
        case 3:
            start = random.randrange(len(text))
            return bytes(text[:start] + text[start + random.randint(1, 9) :])
        case _:
            values: tuple[object, ...] = (
                None,
                5,
                [],
                {},
                "x",
                [[]],
                {"metadata": None},
                {"metadata": {"name": []}},
                {"kind": []},
                -1e400,
            )
            return json.dumps(random.choice(values)).encode()
