"""Where a worker's kubeconfig may lead us: hosts in all their spellings, and URLs that are not plain."""

from __future__ import annotations

import json

import pytest
import yaml
from kubeconfigs import (
    AT_SERVER,
    changed,
    cluster,
    refusal,
)

from mirror.settings.rules import ALLOW_NAMES

# What is always refused

HOSTS = [
    "169.254.169.254",
    "169.254.1.1",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fe80::1%eth0]",
    "[febf::1]",
    "[fd00:ec2::254]",
    "[fd00:0ec2:0::23]",
    "[fd20:ce::254]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "metadata",
    "instance-data",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.01",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "0.1.2.3",
    "[::]",
    "[::ffff:0.0.0.0]",
    "224.0.0.1",
    "255.255.255.255",
    "[ff02::1]",
    "１２７.0.0.1",
    "ⓛocalhost",
    "east.exa mple",
    "-east.example",
    "east..example",
    "e" * 64 + ".example",
    "[::1",
    "[1::2::3]",
    "%6c%6f%63%61%6c",
]


@pytest.mark.parametrize("host", HOSTS)
def test_some_hosts_are_refused_whatever_is_allowed(host: str) -> None:
    """Metadata services, link-local and unspecified addresses in all their spellings, and what is no host."""
    raw = yaml.safe_dump(changed(cluster(server=f"https://{host}:6443/")), allow_unicode=True).encode()
    assert refusal(raw, **dict.fromkeys(ALLOW_NAMES, True)).field == AT_SERVER


@pytest.mark.parametrize(
    "host", ["[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "127.9.9.9", "a.localhost"]
)
def test_loopback_is_found_in_every_wrapping(host: str) -> None:
    """An IPv4 address within an IPv6 one leads to the same machine."""
    raw = yaml.safe_dump(changed(cluster(server=f"https://{host}"))).encode()
    assert "workers.allow.loopback" in refusal(raw).fix


SERVERS = {
    "nothing": "",
    "no scheme": "east.example:6443",
    "no scheme, a path": "//east.example",
    "another scheme": "ftp://east.example",
    "a unix socket": "unix:///run/x",
    "a user": "https://admin@east.example",
    "a user and password": "https://admin:pw@east.example",
    "a user that looks like a host": "https://east.example@169.254.169.254",
    "a backslash": "https://east.example\\@x",
    "another backslash": "https://east.example\\.evil.example",
    "a query": "https://east.example/?a=b",
    "a fragment": "https://east.example/#a",
    "no host": "https://",
    "no host, a port": "https://:6443",
    "port 0": "https://east.example:0",
    "port 65536": "https://east.example:65536",
    "a port of letters": "https://east.example:https",
    "two ports": "https://east.example:1:2",
    "a parent": "https://east.example/a/../b",
    "an empty part": "https://east.example/a//b",
    "an escape": "https://east.example/%2e%2e/",
    "a space": "https://east.example/a b",
    "a leading space": " https://east.example",
    "a line end": "https://east.example\n",
    "a tab": "https://east\t.example",
    "a null": "https://east.example\0",
}


@pytest.mark.parametrize("case", SERVERS)
def test_a_server_that_is_not_plain_is_refused(case: str) -> None:
    """Anything that two parsers could read differently."""
    raw = json.dumps(changed(cluster(server=SERVERS[case]))).encode()
    assert refusal(raw, **dict.fromkeys(ALLOW_NAMES, True)).field == AT_SERVER
