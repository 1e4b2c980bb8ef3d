"""A good kubeconfig, and ways to spoil it."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from certificates import Authority

from mirror.kube.kubeconfig import Kubeconfig, KubeconfigRefused, check_kubeconfig

SECRET = "s3cr3t-t0k3n"
Config = dict[str, Any]
Change = Callable[[Config], None]


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


AUTHORITY = Authority()
CLIENT = AUTHORITY.issue("client")
OTHER = AUTHORITY.issue("other")


def good() -> Config:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "east",
        "contexts": [
            {"name": "spare", "context": {"cluster": "spare", "user": "spare"}},
            {"name": "east", "context": {"cluster": "east", "user": "robot", "namespace": "x"}},
        ],
        "clusters": [
            {
                "name": "east",
                "cluster": {
                    "server": "https://east.example:6443",
                    "certificate-authority-data": encoded(AUTHORITY.pem),
                },
            }
        ],
        "users": [
            {"name": "admin", "user": {"exec": {"command": "not-looked-at"}}},
            {"name": "robot", "user": {"token": SECRET}},
        ],
    }


def check(config: object, **allow: bool) -> Kubeconfig:
    return check_kubeconfig(yaml.safe_dump(config).encode(), allow)


def refusal(raw: bytes, **allow: bool) -> KubeconfigRefused:
    with pytest.raises(KubeconfigRefused) as caught:
        check_kubeconfig(raw, allow)
    return caught.value


def cluster(**fields: object) -> Change:
    def change(config: Config) -> None:
        config["clusters"][0]["cluster"] |= {name.replace("_", "-"): value for name, value in fields.items()}

    return change


def user(**fields: object) -> Change:
    """Instead of the token."""

    def change(config: Config) -> None:
        config["users"][1]["user"] = {name.replace("_", "-"): value for name, value in fields.items()}

    return change


def beside_token(**fields: object) -> Change:
    return lambda config: user(token=SECRET, **fields)(config)


def top(**fields: object) -> Change:
    return lambda config: config.update({name.replace("_", "-"): value for name, value in fields.items()})


def changed(change: Change) -> Config:
    config = copy.deepcopy(good())
    change(config)
    return config


AT_CLUSTER = "clusters[0].cluster"
AT_SERVER = f"{AT_CLUSTER}.server"
AT_USER = "users[1].user"
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws", "args": [SECRET]}
