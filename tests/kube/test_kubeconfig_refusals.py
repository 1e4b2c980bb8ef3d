"""What is wrong with a kubeconfig, field by field and as a text; no refusal quotes it."""

from __future__ import annotations

import base64
import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from certificates import Pair, encrypted_key
from hypothesis import given
from hypothesis import strategies as st
from kubeconfigs import (
    AT_CLUSTER,
    AT_SERVER,
    AT_USER,
    AUTHORITY,
    CLIENT,
    EXEC,
    OTHER,
    SECRET,
    Change,
    beside_token,
    changed,
    cluster,
    encoded,
    good,
    refusal,
    top,
    user,
)

from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.settings.rules import ALLOW_NAMES


def named(plural: str, index: int, **fields: object) -> Change:
    return lambda config: config[plural][index].update(fields)


def without(plural: str) -> Change:
    return lambda config: config.pop(plural)


def doubled(plural: str) -> Change:
    return lambda config: config[plural].append(config[plural][-1])


def pem(pair: Pair, key: bytes) -> Change:
    return user(client_certificate_data=encoded(pair.certificate), client_key_data=encoded(key))


WRONG: dict[str, tuple[Change, str]] = {
    "another kind": (top(kind="Secret"), "kind"),
    "no current context": (without("current-context"), "current-context"),
    "an empty current context": (top(current_context=""), "current-context"),
    "a current context that is a number": (top(current_context=5), "current-context"),
    "a context that is not there": (top(current_context="west"), "current-context"),
    "no contexts": (without("contexts"), "current-context"),
    "contexts that are no list": (top(contexts={}), "contexts"),
    "a context that is a text": (top(contexts=["east"]), "contexts[0]"),
    "a context twice": (doubled("contexts"), "contexts[2].name"),
    "a context without cluster": (named("contexts", 1, context={"user": "robot"}), "contexts[1].context.cluster"),
    "a context without user": (named("contexts", 1, context={"cluster": "east"}), "contexts[1].context.user"),
    "a context of nothing": (named("contexts", 1, context=None), "contexts[1].context.cluster"),
    "a cluster that is not there": (named("clusters", 0, name="x"), "contexts[1].context.cluster"),
    "a cluster twice": (doubled("clusters"), "clusters[1].name"),
    "a cluster that is a list": (named("clusters", 0, cluster=[]), AT_CLUSTER),
    "a name that is a number": (named("clusters", 0, name=5), "clusters[0].name"),
    "a user that is not there": (named("users", 1, name="x"), "contexts[1].context.user"),
    "a user twice": (doubled("users"), "users[2].name"),
    "a user without credentials": (user(), AT_USER),
    "a user of nothing": (named("users", 1, user=None), AT_USER),
    "an unknown field of the user": (beside_token(bearerTokenFile="/x"), AT_USER),
    "a field in wrong letters": (beside_token(Exec={}), AT_USER),
    "an unknown field of the cluster": (cluster(insecure="yes"), AT_CLUSTER),
    "a server that is a number": (cluster(server=5), AT_SERVER),
    "a flag that is a text": (cluster(insecure_skip_tls_verify="false"), f"{AT_CLUSTER}.insecure-skip-tls-verify"),
    "no verification beside a CA": (cluster(insecure_skip_tls_verify=True), f"{AT_CLUSTER}.insecure-skip-tls-verify"),
    "a server name that is none": (cluster(tls_server_name="a b"), f"{AT_CLUSTER}.tls-server-name"),
    "a CA that is not base64": (cluster(certificate_authority_data="%"), f"{AT_CLUSTER}.certificate-authority-data"),
    "a CA with letters of elsewhere": (
        cluster(certificate_authority_data="ä"),
        f"{AT_CLUSTER}.certificate-authority-data",
    ),
    "a CA that is not PEM": (cluster(certificate_authority_data="eHh4"), f"{AT_CLUSTER}.certificate-authority-data"),
    "a CA that is a key": (
        cluster(certificate_authority_data=encoded(CLIENT.key)),
        f"{AT_CLUSTER}.certificate-authority-data",
    ),
    "a CA that is cut": (
        cluster(certificate_authority_data=encoded(AUTHORITY.pem[:200] + AUTHORITY.pem[-30:])),
        f"{AT_CLUSTER}.certificate-authority-data",
    ),
    "a relative CA file": (
        cluster(certificate_authority="x", certificate_authority_data=""),
        f"{AT_CLUSTER}.certificate-authority",
    ),
    "a proxy that is no URL": (cluster(proxy_url="proxy"), f"{AT_CLUSTER}.proxy-url"),
    "a SOCKS proxy": (cluster(proxy_url="socks5://proxy.example"), f"{AT_CLUSTER}.proxy-url"),
    "a proxy at the metadata service": (cluster(proxy_url="http://169.254.169.254"), f"{AT_CLUSTER}.proxy-url"),
    "a proxy with a password": (cluster(proxy_url="http://a:b@proxy.example"), f"{AT_CLUSTER}.proxy-url"),
    "a certificate without key": (
        user(client_certificate_data=encoded(CLIENT.certificate)),
        f"{AT_USER}.client-key-data",
    ),
    "a key without certificate": (user(client_key_data=encoded(CLIENT.key)), f"{AT_USER}.client-certificate-data"),
    "another's key": (pem(CLIENT, OTHER.key), f"{AT_USER}.client-certificate-data"),
    "an encrypted key": (pem(CLIENT, encrypted_key()), f"{AT_USER}.client-certificate-data"),
    "a key of junk": (pem(CLIENT, b"\x00\xff"), f"{AT_USER}.client-certificate-data"),
    "a token that is a number": (user(token=12345), f"{AT_USER}.token"),
    "a token with a line end": (user(token="a\r\nHost: x"), f"{AT_USER}.token"),
    "a token with letters of elsewhere": (user(token="tökén"), f"{AT_USER}.token"),
    "a relative token file": (user(tokenFile="../token"), f"{AT_USER}.tokenFile"),
    "a token beside a password": (beside_token(username="u", password="p"), f"{AT_USER}.username"),
    "a token beside a plugin": (beside_token(exec=EXEC), f"{AT_USER}.exec"),
    "a password without user": (user(password="p"), f"{AT_USER}.username"),
    "a user name with a colon": (user(username="a:b", password="p"), f"{AT_USER}.username"),
    "OIDC": (user(auth_provider={"name": "oidc"}), f"{AT_USER}.auth-provider"),
    "Google": (user(auth_provider={"name": "gcp", "config": {"cmd-path": "/bin/sh"}}), f"{AT_USER}.auth-provider"),
    "a plugin without command": (user(exec={**EXEC, "command": ""}), f"{AT_USER}.exec.command"),
    "a plugin at a relative path": (user(exec={**EXEC, "command": "./x"}), f"{AT_USER}.exec.command"),
    "a plugin of an old version": (
        user(exec={**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
        f"{AT_USER}.exec.apiVersion",
    ),
    "a plugin that wants a terminal": (
        user(exec={**EXEC, "interactiveMode": "Always"}),
        f"{AT_USER}.exec.interactiveMode",
    ),
    "a plugin with numbers for arguments": (user(exec={**EXEC, "args": [1]}), f"{AT_USER}.exec.args[0]"),
    "a plugin with a bad variable": (
        user(exec={**EXEC, "env": [{"name": "a=b", "value": "c"}]}),
        f"{AT_USER}.exec.env[0]",
    ),
    "a plugin with unknown fields": (user(exec={**EXEC, "shell": "x"}), f"{AT_USER}.exec"),
    "groups of nobody": (beside_token(as_groups=["system:masters"]), f"{AT_USER}.as"),
    "a user to act as with a line end": (beside_token(**{"as": "a\r\nX: y"}), f"{AT_USER}.as"),
    "groups that are a text": (beside_token(**{"as": "a", "as_groups": "b"}), f"{AT_USER}.as-groups"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_whatever_is_allowed(case: str) -> None:
    """Each refusal names its field and says what to do; none quotes the token."""
    change, field = WRONG[case]
    error = refusal(json.dumps(changed(change)).encode(), **dict.fromkeys(ALLOW_NAMES, True))
    assert error.field == field
    assert error.problem
    assert error.fix
    assert SECRET not in "".join(traceback.format_exception(error))


# The text itself

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
TEXTS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "kubeconfig"),
    "a comment": (b"# nothing\n", "kubeconfig"),
    "a list": (b"- a\n", "kubeconfig"),
    "a text": (SECRET.encode(), "kubeconfig"),
    "no YAML": (b"a: [", "kubeconfig"),
    "a tab": (b"a:\n\t- b", "kubeconfig"),
    "no YAML around a secret": (b"token: 's3cr3t-t0k3n\n - {", "kubeconfig"),
    "no UTF-8": (b"\xff\xfea", "kubeconfig"),
    "a null byte": (b"a: \0", "kubeconfig"),
    "two documents": (b"a: 1\n---\nb: 2\n", "kubeconfig"),
    "a bomb of aliases": (BOMB.encode(), "kubeconfig"),
    "an anchor": (b"kind: &k Config\n", "kubeconfig"),
    "a merge key": (b"<<: {kind: Config}\n", "kubeconfig"),
    "a tag that runs code": (b"!!python/object/apply:os.system [s3cr3t-t0k3n]", "kubeconfig"),
    "a tag of one's own": (b"kind: !s3cr3t-t0k3n Config\n", "kubeconfig"),
    "a key twice": (b"kind: Config\nkind: Config\n", "kind"),
    "a key twice, deeper": (b"users: [{user: {token: a, token: b}}]\n", "users[0].user.token"),
    "a secret for a key, twice": (b"s3cr3t-t0k3n: 1\ns3cr3t-t0k3n: 2\n", "kubeconfig"),
    "a key that is a number": (b"5: a\n", "kubeconfig"),
    "a key that is a list": (b"[a]: a\n", "kubeconfig"),
    "deep nesting": (b"[" * 500_000, "kubeconfig"),
    "deep nesting in blocks": (b"".join(b" " * n + b"- \n" for n in range(900)), "kubeconfig"),
    "too much": (b"#" * (2**20 + 1), "kubeconfig"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_that_is_no_plain_yaml_is_refused(case: str) -> None:
    """Nothing is built of it before it is known to be harmless, and nothing of it is quoted."""
    raw, field = TEXTS[case]
    error = refusal(raw)
    assert error.field == field
    assert SECRET not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes])
def test_what_was_encoded_twice_is_called_so(encode: Callable[[bytes], bytes]) -> None:
    """A Secret's data is base64 already; `kubectl create secret` encodes what it is given, and so do many templates."""
    text = b"apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: %s}}]\n" % SECRET.encode()
    assert str(refusal(encode(text))) == "kubeconfig: is base64, encoded twice; encode it once, or use stringData"
    assert refusal(encode(b"welcome, stranger")).problem == "is not a mapping"


@given(st.binary(max_size=300) | st.text(alphabet="{}[]:-&*!<#%'\"\\ \nab1", max_size=80).map(str.encode))
def test_junk_is_refused_and_nothing_else(raw: bytes) -> None:
    """Whatever bytes come, no other exception does."""
    with pytest.raises(KubeconfigRefused):
        check_kubeconfig(raw, {})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["east", "robot", "/x", "https://a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [
        ("current-context",),
        ("contexts",),
        ("clusters",),
        ("users",),
        ("contexts", 1),
        ("contexts", 1, "context"),
        ("contexts", 1, "context", "user"),
        ("clusters", 0, "cluster"),
        *(("clusters", 0, "cluster", key) for key in ("server", "certificate-authority-data", "proxy-url")),
        ("users", 1, "user"),
        *(
            ("users", 1, "user", key)
            for key in ("token", "exec", "as", "as-groups", "as-user-extra", "auth-provider", "client-key-data")
        ),
    ]
)


@given(PLACES, VALUES, st.booleans())
def test_near_misses_are_refused_or_read_and_nothing_else(place: tuple[Any, ...], value: object, allowed: bool) -> None:
    """A good kubeconfig with any JSON in one place."""
    config = good()
    target: Any = config
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    told = "nothing"
    try:
        check_kubeconfig(json.dumps(config).encode(), dict.fromkeys(ALLOW_NAMES, allowed))
    except KubeconfigRefused as error:
        told = str(error)
    assert told.isprintable()
