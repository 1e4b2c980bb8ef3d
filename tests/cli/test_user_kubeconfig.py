"""The user's own kubeconfig: found and merged as kubectl does it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirror.cli.user.cluster import proxy_for
from mirror.cli.user.kubeconfig import Merged, NoKubeconfig, paths, read


def write(path: Path, name: str, *, current: bool = True, **context: Any) -> str:
    """A kubeconfig with one context of this name."""
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [
                    {"name": name, "cluster": {"server": f"https://{name}", "certificate-authority": "ca.pem"}}
                ],
                "users": [{"name": name, "user": {"tokenFile": "token"}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
                **({"current-context": name} if current else {}),
            }
        )
    )
    return str(path)


def merged(*files: str, context: str = "") -> Merged:
    found = read(files, context, must_exist=True)
    assert found is not None
    return found


def test_files_are_looked_for_where_kubectl_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option, else every file of KUBECONFIG, else the one at home."""
    monkeypatch.setenv("HOME", "/home/ann")

    assert paths("x", {"KUBECONFIG": "y"}) == ("x",)
    assert paths("", {"KUBECONFIG": f"y{os.pathsep}{os.pathsep}z"}) == ("y", "z")
    assert paths("", {}) == ("/home/ann/.kube/config",)


def test_of_several_files_the_first_wins(tmp_path: Path) -> None:
    """Current context and entries of one name; files that are not there are passed over."""
    one = write(tmp_path / "one", "a", namespace="first")
    other = write(tmp_path / "two", "b", namespace="second")
    again = write(tmp_path / "three", "a", namespace="third")

    found = merged(str(tmp_path / "none"), one, other, again)
    assert (found.context, found.namespace, found.contexts) == ("a", "first", ["a", "b"])
    assert merged(one, other, context="b").namespace == "second"


def test_paths_are_those_beside_the_file_that_names_them(tmp_path: Path) -> None:
    """Wherever the command is run."""
    found = merged(write(tmp_path / "one", "a"))

    assert found.document["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "ca.pem")
    assert found.document["users"][0]["user"]["tokenFile"] == str(tmp_path / "token")


BAD = {
    "no YAML": ("{", "not YAML"),
    "no mapping": ("[1, 2]", "not a kubeconfig"),
    "an entry without a name": ("{contexts: [{context: {}}]}", "contexts contains an entry without a name"),
    "no current context": ("{contexts: [{name: a, context: {}}]}", "the kubeconfig has no current context"),
    "an unknown context": ("{current-context: b, contexts: [{name: a}]}", "context b not found in .*; available: a"),
}


@pytest.mark.parametrize(("content", "text"), BAD.values(), ids=BAD)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, content: str, text: str) -> None:
    """With the file's name, and nothing of its content."""
    (tmp_path / "it").write_text(content)

    with pytest.raises(NoKubeconfig, match=text):
        merged(str(tmp_path / "it"))


def test_no_file_at_all_is_an_error_unless_we_may_be_in_a_pod(tmp_path: Path) -> None:
    """In a pod its service account counts."""
    assert read([str(tmp_path / "none")], "", must_exist=False) is None
    with pytest.raises(NoKubeconfig, match="no such file"):
        read([str(tmp_path / "none")], "", must_exist=True)


PROXIES = {
    "none": ({}, "https://api.example.com:6443", ""),
    "one for https": ({"HTTPS_PROXY": "http://p:1"}, "https://api.example.com:6443", "http://p:1"),
    "one for http only": ({"http_proxy": "http://p:1"}, "https://api.example.com", ""),
    "an exception": ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example.com"}, "https://api.example.com:6443", ""),
    "this machine": ({"HTTPS_PROXY": "http://p:1"}, "https://127.0.0.1:6443", ""),
    "this machine by name": ({"HTTPS_PROXY": "http://p:1"}, "https://localhost", ""),
}


@pytest.mark.parametrize(("environment", "url", "proxy"), PROXIES.values(), ids=PROXIES)
def test_the_environments_proxy_is_used_as_kubectl_uses_it(
    environment: dict[str, str], url: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for this machine, nor for what ``NO_PROXY`` names."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert proxy_for(url) == proxy
