"""What a worker's kubeconfig may contain: what is plain, and what needs an opt-in."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
import yaml
from kubeconfigs import (
    AT_CLUSTER,
    AT_USER,
    AUTHORITY,
    CLIENT,
    EXEC,
    SECRET,
    Change,
    beside_token,
    changed,
    check,
    cluster,
    encoded,
    good,
    refusal,
    user,
)

from mirror.kube.kubeconfig import ExecPlugin, Kubeconfig, check_kubeconfig
from mirror.settings.rules import ALLOW_NAMES

# What is good


def test_a_plain_kubeconfig_is_read() -> None:
    """A token and inline data; other contexts and users are not looked at."""
    found = check(good())
    assert (found.server, found.cluster.ca_pem, found.user.token) == (
        "https://east.example:6443",
        AUTHORITY.pem,
        SECRET,
    )


def test_json_is_yaml() -> None:
    """Tools write kubeconfigs as JSON, too."""
    assert check_kubeconfig(json.dumps(good()).encode(), {}) == check(good())


def test_a_certificate_is_enough() -> None:
    """Data that is folded over lines is fine, as for other clients."""
    folded = base64.encodebytes(CLIENT.certificate).decode()
    found = check(changed(user(client_certificate_data=folded, client_key_data=encoded(CLIENT.key))))
    assert (found.user.certificate_pem, found.user.key_pem) == (CLIENT.certificate, CLIENT.key)


def test_a_repr_shows_no_secret() -> None:
    """Whatever is logged by accident."""
    found = check(
        changed(beside_token(client_certificate_data=encoded(CLIENT.certificate), client_key_data=encoded(CLIENT.key)))
    )
    assert SECRET not in repr(found)
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://10.1.2.3", "https://10.1.2.3"),
        ("HTTPS://East.Example:443/", "https://East.Example:443"),
        ("https://east.example./", "https://east.example."),
        ("https://rancher.example/k8s/clusters/c-m-1/", "https://rancher.example/k8s/clusters/c-m-1"),
        ("https://[2001:DB8:0::1]:6443", "https://[2001:db8::1]:6443"),
        ("https://[fd12:3456::1]", "https://[fd12:3456::1]"),
        ("https://kubernetes.default.svc", "https://kubernetes.default.svc"),
    ],
)
def test_a_server_is_brought_into_its_plainest_form(written: str, read: str) -> None:
    """Put together anew, so that nobody reads another host in it than was judged."""
    assert check(changed(cluster(server=written))).server == read


def test_empty_fields_are_missing_fields() -> None:
    """Go clients write and read them so."""
    fields = {"tls-server-name": "", "insecure-skip-tls-verify": False, "certificate-authority": "", "proxy-url": ""}
    found = check(changed(lambda config: (cluster(**fields)(config), beside_token(tokenFile="", exec=None)(config))[0]))
    assert found == check(good())


# What needs an opt-in, and what is read with it

OPT_INS: dict[str, tuple[str, Change, str, Callable[[Kubeconfig], object], object]] = {
    "an exec plugin": (
        "exec",
        user(exec=EXEC),
        f"{AT_USER}.exec",
        lambda found: found.user.exec,
        ExecPlugin("aws", (SECRET,)),
    ),
    "a password": (
        "basicAuth",
        user(username="u", password=SECRET),
        f"{AT_USER}.username",
        lambda found: (found.user.username, found.user.password),
        ("u", SECRET),
    ),
    "a CA file": (
        "filePaths",
        cluster(certificate_authority="/x", certificate_authority_data=""),
        f"{AT_CLUSTER}.certificate-authority",
        lambda found: (found.cluster.ca_file, found.cluster.ca_pem),
        ("/x", b""),
    ),
    "a certificate file": (
        "filePaths",
        user(client_certificate="/c", client_key="/k"),
        f"{AT_USER}.client-certificate",
        lambda found: (found.user.certificate_file, found.user.key_file),
        ("/c", "/k"),
    ),
    "a key file": (
        "filePaths",
        user(client_certificate_data=encoded(CLIENT.certificate), client_key="/k"),
        f"{AT_USER}.client-key",
        lambda found: (found.user.certificate_pem, found.user.key_file),
        (CLIENT.certificate, "/k"),
    ),
    "a token file": (
        "tokenFile",
        user(tokenFile="/t"),
        f"{AT_USER}.tokenFile",
        lambda found: found.user.token_file,
        "/t",
    ),
    "a token file beside a token": (
        "tokenFile",
        beside_token(tokenFile="/t"),
        f"{AT_USER}.tokenFile",
        lambda found: (found.user.token, found.user.token_file),
        ("", "/t"),
    ),
    "http": (
        "http",
        cluster(server="http://east.example"),
        f"{AT_CLUSTER}.server",
        lambda found: found.server,
        "http://east.example",
    ),
    "no verification": (
        "insecureSkipTLSVerify",
        cluster(insecure_skip_tls_verify=True, certificate_authority_data=""),
        f"{AT_CLUSTER}.insecure-skip-tls-verify",
        lambda found: found.cluster.verify,
        False,
    ),
    "a proxy": (
        "proxyURL",
        cluster(proxy_url="http://proxy.example:3128"),
        f"{AT_CLUSTER}.proxy-url",
        lambda found: found.cluster.proxy,
        "http://proxy.example:3128",
    ),
    "another user": (
        "impersonation",
        beside_token(**{"as": "jane", "as_uid": "7", "as_groups": ["a", "b"], "as_user_extra": {"x/y": ["1", "2"]}}),
        f"{AT_USER}.as",
        lambda found: found.user.impersonation,
        (
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-x%2Fy", "1"),
            ("Impersonate-Extra-x%2Fy", "2"),
        ),
    ),
    "this machine": (
        "loopback",
        cluster(server="https://127.0.0.1:6443"),
        f"{AT_CLUSTER}.server",
        lambda found: found.server,
        "https://127.0.0.1:6443",
    ),
    "this machine by name": (
        "loopback",
        cluster(server="https://LocalHost.:6443"),
        f"{AT_CLUSTER}.server",
        lambda found: found.server,
        "https://LocalHost.:6443",
    ),
    "this machine in IPv6": (
        "loopback",
        cluster(server="https://[0:0::1]:6443"),
        f"{AT_CLUSTER}.server",
        lambda found: found.server,
        "https://[::1]:6443",
    ),
}


@pytest.mark.parametrize("case", OPT_INS)
def test_what_reaches_into_our_pod_needs_its_opt_in(case: str) -> None:
    """The field and the setting that allows it are named; every other opt-in together does not help."""
    name, change, field, _, _ = OPT_INS[case]
    others = {other: True for other in ALLOW_NAMES if other != name}
    for allow in ({}, others, {name: False}):
        error = refusal(yaml.safe_dump(changed(change)).encode(), **allow)
        assert error.field == field
        assert f"workers.allow.{name}: true" in error.fix
        assert SECRET not in str(error)


@pytest.mark.parametrize("case", OPT_INS)
def test_what_was_opted_in_is_honoured(case: str) -> None:
    """Each opt-in alone suffices."""
    name, change, _, what, expected = OPT_INS[case]
    assert what(check(changed(change), **{name: True})) == expected
