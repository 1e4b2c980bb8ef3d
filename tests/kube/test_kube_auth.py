"""From kubeconfig files and pods to working clients."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from certificates import Authority
from wire import Clients, Observed, always, answer, serving

from mirror.kube import auth
from mirror.kube.auth import management_credentials, worker_credentials
from mirror.kube.connect import connect_management, connect_worker
from mirror.kube.errors import Unreachable
from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.requests import Request
from mirror.settings.schema import Limits

READ = Request("get", "GET", "/api", deadline_seconds=5.0)
PLUGIN_VERSION = "client.authentication.k8s.io/v1"


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def config(name: str, server: str, user: dict[str, Any] | None, **cluster: object) -> dict[str, Any]:
    context = {"cluster": name} | ({"user": name} if user is not None else {})
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": context}],
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": user}] if user is not None else [],
    }


def written(path: Path, content: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def authorization(path: str, context: str = "") -> str:
    headers = await (await management_credentials(path, context=context)).headers()
    return headers.get("Authorization", "")


# The management cluster's own file


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "u", "password": "p"}, "Basic " + encoded(b"u:p")),
        ({"tokenFile": "token"}, "Bearer from-file"),
        ({"token": "abc", "tokenFile": "token"}, "Bearer from-file"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c"}}}, "Bearer a.b.c"),
        ({}, ""),
        (None, ""),
    ],
    ids=["a token", "a password", "a token file", "a file beside a token", "OIDC", "nobody", "no user"],
)
async def test_the_operator_may_use_every_way_to_log_in(
    tmp_path: Path, user: dict[str, Any] | None, expected: str
) -> None:
    """Paths are relative to the file; http and this machine are fine, too."""
    (tmp_path / "token").write_text("from-file\n")
    path = written(tmp_path / "config", config("home", "http://localhost:8001", user))
    assert await authorization(path) == expected


async def test_a_login_that_kubectl_has_dropped_is_refused(tmp_path: Path) -> None:
    """kubectl removed the gcp provider in 1.26: its command is not run, and the plugin that replaces it is named."""
    user = {"auth-provider": {"name": "gcp", "config": {"cmd-path": "/bin/false", "access-token": "old"}}}
    with pytest.raises(KubeconfigRefused, match=r"auth-provider.*gke-gcloud-auth-plugin"):
        await authorization(written(tmp_path / "config", config("a", "https://a.example", user)))


async def test_a_plugin_of_the_operator_is_found_beside_the_file(tmp_path: Path) -> None:
    """A command with a slash is relative to the file, as for kubectl; others come from PATH."""
    script = tmp_path / "bin" / "plugin"
    script.parent.mkdir()
    credential = f'{{"apiVersion":"{PLUGIN_VERSION}","kind":"ExecCredential","status":{{"token":"abc"}}}}'
    script.write_text(f"#!/bin/sh\necho '{credential}'\n")
    script.chmod(0o700)
    user = {"exec": {"apiVersion": PLUGIN_VERSION, "command": "./bin/plugin"}}
    assert await authorization(written(tmp_path / "config", config("a", "https://a.example", user))) == "Bearer abc"


async def test_several_files_are_merged_and_a_context_is_chosen(tmp_path: Path) -> None:
    """As in KUBECONFIG: the last current context counts, and each file's paths are its own."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text("of-b")
    one = written(tmp_path / "a" / "config", config("a", "https://a.example", {"token": "of-a"}))
    two = written(tmp_path / "b" / "config", config("b", "https://b.example", {"tokenFile": "token"}))
    both = f"{one}:{two}:{tmp_path}/missing"
    assert (await authorization(both), await authorization(both, "a")) == ("Bearer of-b", "Bearer of-a")
    assert (await management_credentials(both, context="a")).endpoint.server == "https://a.example"


async def test_files_for_tls_are_read(authority: Authority, tmp_path: Path, clients: Clients) -> None:
    """A CA, a certificate and a key beside the kubeconfig; the server knows us by them."""
    server_tls = authority.server_context(authority.issue("s", "127.0.0.1"), tmp_path, ask_for_client=True)
    pair = authority.issue("admin")
    for name, content in {"ca.crt": authority.pem, "tls.crt": pair.certificate, "tls.key": pair.key}.items():
        (tmp_path / name).write_bytes(content)
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    async with serving(always(answer(200)), tls=server_tls) as server:
        path = written(tmp_path / "config", config("a", server.url, user, **{"certificate-authority": "ca.crt"}))
        client = await connect_management(path, limits=Limits(), observer=Observed())
        await client.send(READ)
        await client.close()
    assert client.name == "management"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: str(folder / "missing"),
        lambda folder: str(folder),
        lambda folder: written(folder / "config", "s3cr3t"),
        lambda folder: written(folder / "config", ["s3cr3t"]),
        lambda folder: written(folder / "config", {"users": [{"s3cr3t": "s3cr3t"}]}),
        lambda folder: written(folder / "config", {"users": "s3cr3t"}),
        lambda folder: written(folder / "config", {}),
        lambda folder: written(folder / "config", config("a", "s3cr3t", {"token": "s3cr3t"})),
        lambda folder: written(folder / "config", config("a", "https://a", {"token": "s3 cr3t"})),
        lambda folder: written(
            folder / "config", config("a", "https://a", {"client-certificate": "x", "client-key": "y"})
        ),
        lambda folder: written(folder / "config", config("a", "https://a", {}, **{"certificate-authority": "config"})),
        lambda folder: written(folder / "config", config("a", "https://a", {"auth-provider": {"name": "s3cr3t"}})),
        lambda folder: written(
            folder / "config", config("a", "https://a", {"auth-provider": {"name": "oidc", "config": {"id-token": ""}}})
        ),
        lambda folder: "",
    ],
    ids=[
        "a missing file",
        "a folder",
        "a text",
        "a list",
        "a user without name",
        "users that are no list",
        "an empty mapping",
        "a server of nonsense",
        "a token of nonsense",
        "files that are not there",
        "a CA that is none",
        "an unknown provider",
        "OIDC that would have to be renewed",
        "no file outside of a pod",
    ],
)
async def test_a_file_of_no_use_is_told_so(
    tmp_path: Path, change: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By field where there is one, and without quoting it."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigRefused) as caught:
        await management_credentials(change(tmp_path))
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value)).replace(str(tmp_path), "")
    assert caught.value.fix


async def test_no_yaml_is_told_without_quoting_it(tmp_path: Path) -> None:
    """Broken files are where secrets end up in error messages."""
    (tmp_path / "config").write_text("token: 's3cr3t\n  - {")
    with pytest.raises(KubeconfigRefused) as caught:
        await management_credentials(str(tmp_path / "config"))
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value)).replace(str(tmp_path), "")


async def test_the_file_is_not_rewritten(tmp_path: Path) -> None:
    """Comments and order are the operator's."""
    path = tmp_path / "config"
    text = "# mine\n" + yaml.safe_dump(config("a", "https://a.example", {"token": "abc"}))
    path.write_text(text)
    await authorization(str(path))
    assert path.read_text() == text


# In a pod


async def test_a_pod_uses_its_service_account(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet replaces the token's file; a 401 makes us read it at once."""
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    tls = authority.server_context(authority.issue("s", "127.0.0.1"), tmp_path)
    refused = answer(401, b'{"kind":"Status","code":401,"reason":"Unauthorized"}')
    async with serving(always(answer(200), refused, answer(200)), tls=tls) as server:
        monkeypatch.setattr(auth, "SERVICE_ACCOUNT", str(tmp_path))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        client = await connect_management("", limits=Limits(), observer=Observed())
        await client.send(READ)
        (tmp_path / "token").write_text("two\n")
        await client.send(READ)
        await client.close()
    assert [got.headers["authorization"] for got in server.received] == ["Bearer one", "Bearer one", "Bearer two"]


@pytest.mark.parametrize("lacking", ["token", "ca.crt"])
async def test_a_pod_without_a_service_account_is_told_so(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    """Its files may be missing: ``automountServiceAccountToken: false``."""
    (tmp_path / "token").write_text("one")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / lacking).unlink()
    monkeypatch.setattr(auth, "SERVICE_ACCOUNT", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(KubeconfigRefused, match="kubeconfig"):
        await management_credentials("")


# Workers


async def test_a_worker_s_client_says_who_it_is(authority: Authority, tmp_path: Path) -> None:
    """Token, certificate and impersonation together, over TLS, on this machine by opt-in."""
    tls = authority.server_context(authority.issue("s", "127.0.0.1"), tmp_path, ask_for_client=True)
    pair = authority.issue("robot")
    user = {
        "token": "abc",
        "client-certificate-data": encoded(pair.certificate),
        "client-key-data": encoded(pair.key),
        "as": "jane",
        "as-groups": ["a", "b"],
    }
    allow = {"loopback": True, "impersonation": True}
    async with serving(always(answer(200)), tls=tls) as server:
        raw = yaml.safe_dump(config("east", server.url, user, **{"certificate-authority-data": encoded(authority.pem)}))
        kubeconfig = check_kubeconfig(raw.encode(), allow)
        client = await connect_worker("east", kubeconfig, allow=allow, limits=Limits(), observer=Observed())
        await client.send(READ)
        await client.close()
    headers = server.received[0].headers
    assert (headers["authorization"], headers["impersonate-user"]) == ("Bearer abc", "jane")
    assert headers["impersonate-group"] == "a, b"
    assert (client.name, client.describe().limits.qps) == ("east", 200.0)


async def test_a_worker_s_name_must_not_lead_back_here(tmp_path: Path) -> None:
    """Judged by address when it connects, since a name can be pointed anywhere later."""
    allow = {"loopback": True, "http": True}
    async with serving(always(answer(200))) as server:
        raw = yaml.safe_dump(config("east", f"http://localhost:{server.port}", {"token": "abc"})).encode()
        kubeconfig = check_kubeconfig(raw, allow)
        for allowed in (allow, {"http": True}):
            client = await connect_worker("east", kubeconfig, allow=allowed, limits=Limits(), observer=Observed())
            if allowed is allow:
                await client.send(READ)
            else:
                with pytest.raises(Unreachable):
                    await client.send(READ)
            await client.close()


async def test_workers_leave_no_files_behind(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubeconfigs rotate for ever: neither temporary files nor open ones may pile up."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    counts = []
    for number in range(5):
        pair = authority.issue(f"robot-{number}")
        user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
        raw = yaml.safe_dump(
            config("e", "https://e.example", user, **{"certificate-authority-data": encoded(authority.pem)})
        )
        await worker_credentials(check_kubeconfig(raw.encode(), {}), {})
        counts.append(len(os.listdir("/proc/self/fd")))
    assert os.listdir(tmp_path) == []
    assert counts[1:] == counts[:1] * 4


@pytest.mark.parametrize(
    ("user", "allow", "expected"),
    [
        ({"username": "u", "password": "p"}, "basicAuth", "Basic " + encoded(b"u:p")),
        ({"tokenFile": "/FOLDER/token"}, "tokenFile", "Bearer from-file"),
        (
            {"exec": {"apiVersion": PLUGIN_VERSION, "command": sys.executable, "args": ["-S", "-c", "CODE"]}},
            "exec",
            "Bearer from-plugin",
        ),
    ],
    ids=["a password", "a token file", "a plugin"],
)
async def test_what_was_opted_in_works(tmp_path: Path, user: dict[str, Any], allow: str, expected: str) -> None:
    """An opt-in is of use only if what it allows is carried out."""
    (tmp_path / "token").write_text("from-file\n")
    credential = {"apiVersion": PLUGIN_VERSION, "kind": "ExecCredential", "status": {"token": "from-plugin"}}
    code = f"import json; print(json.dumps({credential}))"
    raw = yaml.safe_dump(config("east", "https://east.example", user))
    raw = raw.replace("/FOLDER", str(tmp_path)).replace("- CODE", f'- "{code}"')
    credentials = await worker_credentials(check_kubeconfig(raw.encode(), {allow: True}), {allow: True})
    assert (await credentials.headers())["Authorization"] == expected


async def test_a_file_that_vanished_is_told_by_its_field(tmp_path: Path) -> None:
    """Allowed, but not there."""
    raw = yaml.safe_dump(config("east", "https://e.example", {"token": "a"}, **{"certificate-authority": "/nowhere"}))
    kubeconfig = check_kubeconfig(raw.encode(), {"filePaths": True})
    with pytest.raises(KubeconfigRefused, match="certificate-authority"):
        await worker_credentials(kubeconfig, {})


@pytest.mark.slow
def test_the_library_is_imported_late() -> None:
    """It costs half a second and 60 MiB, which ``mirror version`` need not pay."""
    code = "import sys, mirror.kube.connect; sys.exit('kubernetes_asyncio' in sys.modules)"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0
