"""Webhooks that fail, are slow or say nonsense: what that does to a request, by their policy."""

from __future__ import annotations

import asyncio
import base64
from functools import partial

from tests.contract.api import JSON_PATCH, Api
from tests.contract.case import Group
from tests.contract.hooks import MUTATING, NAME, VALIDATING, configure, patching, serving

cases = Group("webhook failures")

CM = {"metadata": {"name": "a"}, "data": {"k": "v"}}


@cases.case
async def a_patch_that_does_not_apply_fails(api: Api) -> None:
    async with serving(patching({"op": "remove", "path": "/data/none"})) as hook:
        await configure(api, hook, MUTATING)
        answer = await api.post("configmaps", CM)
    assert answer.status == 500, answer.text
    assert answer.body["reason"] == "InternalError", answer.text


@cases.case
async def a_patch_of_an_unknown_type_fails(api: Api) -> None:
    patch = base64.b64encode(b"{}").decode()
    async with serving(lambda request: {"allowed": True, "patchType": "Merge", "patch": patch}) as hook:
        await configure(api, hook, MUTATING)
        answer = await api.post("configmaps", CM)
    assert answer.status == 500
    assert answer.body["message"].startswith(f'Internal error occurred: failed calling webhook "{NAME}": '), answer.text


@cases.case
async def a_webhook_that_fails_refuses(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        hook.http_status = 503
        answer = await api.post("configmaps", CM)
    message = (
        f'failed calling webhook "{NAME}": failed to call webhook: the server is currently unable to handle the request'
    )
    answer.refused(500, "InternalError", f"Internal error occurred: {message}", [("", "", message)])


@cases.case
async def a_webhook_that_fails_is_ignored_if_that_is_its_policy(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook, failurePolicy="Ignore")
        hook.http_status = 503
        (await api.post("configmaps", CM)).ok(201)
        assert len(hook.requests) == 1


@cases.case
async def a_webhook_that_is_gone_refuses(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
    answer = await api.post("configmaps", CM)
    assert answer.status == 500
    assert answer.body["message"].startswith(
        f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook: Post "{hook.url}'
    ), answer.text


@cases.case
async def a_webhook_that_is_gone_is_ignored_if_that_is_its_policy(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook, failurePolicy="Ignore")
    (await api.post("configmaps", CM)).ok(201)


@cases.case
async def a_webhook_that_is_slow_refuses_in_time(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook, timeoutSeconds=1)
        hook.delay_seconds = 60
        began = asyncio.get_running_loop().time()
        answer = await api.post("configmaps", CM)
        assert asyncio.get_running_loop().time() - began < hook.delay_seconds / 2
    post = f'Post "{hook.url}?timeout=1s": '
    message = f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook: {post}'
    assert answer.status == 500
    assert answer.body["message"].startswith(message), answer.text
    assert answer.body["message"].endswith("context deadline exceeded"), answer.text


@cases.case
async def an_answer_that_is_none_refuses(api: Api) -> None:
    async with serving() as hook:
        await configure(api, hook)
        for raw in (b"nonsense", b"{}", b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'):
            hook.raw = raw
            answer = await api.post("configmaps", CM)
            assert answer.status == 500, answer.text
            assert answer.body["message"].startswith(f'Internal error occurred: failed calling webhook "{NAME}": ')


@cases.case
async def an_answer_to_something_else_refuses(api: Api) -> None:
    async with serving(lambda request: {"allowed": True, "uid": "other"}) as hook:
        await configure(api, hook)
        answer = await api.post("configmaps", CM)
    assert answer.status == 500, answer.text


@cases.case
async def a_webhook_whose_certificate_nobody_knows_refuses(api: Api) -> None:
    async with serving() as hook:
        other = base64.b64encode(b"").decode()
        await configure(api, hook)
        name = f"{VALIDATING}/OURS-v"
        await api.patch(
            name, [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other}], JSON_PATCH
        )
        ask = partial(api.post, "configmaps?dryRun=All", CM)
        answer = await api.repeat(ask, lambda answer: answer.status != 201)
    assert answer.status == 500
    start = f'Internal error occurred: failed calling webhook "{NAME}": failed to call webhook: Post "{hook.url}'
    assert answer.body["message"].startswith(start), answer.text
    assert "certificate" in answer.body["message"], answer.text
