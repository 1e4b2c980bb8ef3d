"""A kubeconfig's user: who we say we are. Part of ``kubeconfig``."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from mirror.kube import tls
from mirror.kube.kubeconfig_cluster import Cluster, require_file
from mirror.kube.kubeconfig_node import KubeconfigRefused, Node, Policy

_KEYS = frozenset(
    {
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
        "token",
        "tokenFile",
        "username",
        "password",
        "exec",
        "auth-provider",
        "as",
        "as-uid",
        "as-groups",
        "as-user-extra",
        "extensions",
    }
)
_EXEC_KEYS = frozenset({"command", "args", "env", "apiVersion", "installHint", "provideClusterInfo", "interactiveMode"})
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = _EXEC_VERSIONS[0]
    provide_cluster_info: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """Who we say we are: at most one of token, token file, password, plugin, provider; perhaps a certificate as well.

    Of a file and its data only one is set.
    """

    certificate_pem: bytes = field(default=b"", repr=False)
    certificate_file: str = ""
    key_pem: bytes = field(default=b"", repr=False)
    key_file: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    exec: ExecPlugin | None = None
    auth_provider: Mapping[str, object] | None = field(default=None, repr=False)
    """Only of the management cluster, whose file is the operator's own."""
    impersonation: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Header names and values."""


def read_user(node: Node, cluster: Cluster, policy: Policy) -> User:
    """Read and judge it; raises ``KubeconfigRefused``."""
    if not policy.trusted:
        node.only(_KEYS)
    _refuse_ambiguity(node)
    certificate_pem, certificate_file = _read_pem(node, "client-certificate", policy)
    key_pem, key_file = _read_pem(node, "client-key", policy)
    _check_pair(node, certificate_pem or certificate_file.encode(), key_pem or key_file.encode())
    if certificate_pem and key_pem:
        _check_certificate(node, certificate_pem, key_pem)
    token, token_file = _read_token(node, policy)
    username, password = _read_password(node, policy)
    user = User(
        certificate_pem,
        certificate_file,
        key_pem,
        key_file,
        token,
        token_file,
        username,
        password,
        _read_exec(node, policy) if node.has("exec") else None,
        _read_provider(node, policy),
        _read_impersonation(node, policy),
    )
    anonymous = not (certificate_pem or certificate_file or token or token_file or username or user.exec)
    if anonymous and not policy.trusted and cluster.server.startswith("https://"):
        raise KubeconfigRefused(node.path, "holds no credentials", "add a token or a client certificate")
    return user


def _refuse_ambiguity(node: Node) -> None:
    ways = [("tokenFile" if node.has("tokenFile") else "token") if node.has("token") or node.has("tokenFile") else ""]
    ways += [key for key in ("username", "exec", "auth-provider") if node.has(key)]
    ways = [way for way in ways if way]
    if len(ways) > 1:
        raise KubeconfigRefused(node.at(ways[1]), f"stands beside {ways[0]}: who are we?", "keep one of both")


def _read_pem(node: Node, key: str, policy: Policy) -> tuple[bytes, str]:
    """The data or, only without data, the file."""
    pem, file = node.data(f"{key}-data"), node.text(key)
    if pem or not file:
        return pem, ""
    require_file(node, key, policy)
    return b"", file


def _check_pair(node: Node, certificate: bytes, key: bytes) -> None:
    if bool(certificate) != bool(key):
        missing = "client-key-data" if certificate else "client-certificate-data"
        raise KubeconfigRefused(node.at(missing), "is missing", "give certificate and key together")


def _check_certificate(node: Node, certificate_pem: bytes, key_pem: bytes) -> None:
    try:
        tls.load_client_certificate(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate_pem, key_pem)
    except tls.BadCertificate as error:
        at = node.at("client-certificate-data")
        raise KubeconfigRefused(at, str(error), "encode the PEM files with `base64 -w0`") from error


def _read_token(node: Node, policy: Policy) -> tuple[str, str]:
    """The token or its file; the file wins, as in client-go."""
    token, file = node.text("token").strip(), node.text("tokenFile")
    if file:
        problem = "is a path to a file in our own pod"
        policy.require("tokenFile", node.at("tokenFile"), problem, f"put the token in {node.at('token')}")
        if not file.startswith("/"):
            raise KubeconfigRefused(node.at("tokenFile"), "is a relative path", "write an absolute path")
        return "", file
    if token and not _PRINTABLE.fullmatch(token):
        raise KubeconfigRefused(node.at("token"), "holds characters that no token has", "copy the token anew")
    return token, ""


def _read_password(node: Node, policy: Policy) -> tuple[str, str]:
    username, password = node.text("username"), node.text("password")
    if username or password:
        at = node.at("username" if username else "password")
        policy.require("basicAuth", at, "is basic authentication, which API servers dropped", "use a token")
        if not username or ":" in username:
            raise KubeconfigRefused(node.at("username"), "is missing, or holds a colon", "give both, without a colon")
    return username, password


def _read_exec(node: Node, policy: Policy) -> ExecPlugin:
    policy.require("exec", node.at("exec"), "runs a command in our own pod", "use a token or a client certificate")
    plugin = node.child("exec")
    if not policy.trusted:
        plugin.only(_EXEC_KEYS)
    command, version = plugin.text("command"), plugin.text("apiVersion")
    if not command or "\0" in command:
        raise KubeconfigRefused(plugin.at("command"), "is missing", "name the plugin's executable")
    if "/" in command and not command.startswith("/"):
        raise KubeconfigRefused(plugin.at("command"), "is a relative path", "write an absolute path, or a bare name")
    if version not in _EXEC_VERSIONS:
        raise KubeconfigRefused(plugin.at("apiVersion"), "is not supported", f"use {' or '.join(_EXEC_VERSIONS)}")
    if plugin.text("interactiveMode") == "Always":
        raise KubeconfigRefused(plugin.at("interactiveMode"), "is Always, but nobody is at a terminal", "use Never")
    env = tuple((item.text("name"), item.text("value")) for item in plugin.children("env"))
    for index, (name, value) in enumerate(env):
        if not name or "=" in name or "\0" in name + value:
            raise KubeconfigRefused(f"{plugin.at('env')}[{index}]", "is not a variable", "give name and value")
    args = plugin.texts("args")
    if any("\0" in arg for arg in args):
        raise KubeconfigRefused(plugin.at("args"), "holds a null character", "remove it")
    return ExecPlugin(command, args, env, version, plugin.flag("provideClusterInfo"))


def _read_provider(node: Node, policy: Policy) -> Mapping[str, object] | None:
    if not node.has("auth-provider"):
        return None
    if not policy.trusted:
        # Renewing such tokens means running a command that the file names (gcp), or sending a client secret over a
        # connection whose certificate nobody checked (oidc, docs/libraries.md): not even an opt-in makes that sound.
        fix = "use a token or a client certificate, or an exec plugin with workers.allow.exec: true"
        raise KubeconfigRefused(node.at("auth-provider"), "cannot be renewed safely, whatever is allowed", fix)
    return node.child("auth-provider").values


def _read_impersonation(node: Node, policy: Policy) -> tuple[tuple[str, str], ...]:
    given = [key for key in ("as", "as-uid", "as-groups", "as-user-extra") if node.has(key)]
    if not given:
        return ()
    policy.require("impersonation", node.at(given[0]), "acts as somebody else", "give that one's own credentials")
    if "as" not in given:
        raise KubeconfigRefused(node.at("as"), f"is missing beside {given[0]}", "name the user to act as")
    headers = [("Impersonate-User", node.text("as"))]
    if node.has("as-uid"):
        headers.append(("Impersonate-Uid", node.text("as-uid")))
    headers += [("Impersonate-Group", group) for group in node.texts("as-groups")]
    extra = node.child("as-user-extra")
    for key in extra.values:
        # Go cuts header names to what HTTP allows in the same way, and the server undoes it.
        name = "Impersonate-Extra-" + quote(key, safe="!#$&'*+-.^_`|~")
        headers += [(name, value) for value in extra.texts(key)]
    for name, value in headers:
        if not _HEADER_VALUE.fullmatch(value):
            raise KubeconfigRefused(node.at("as"), f"cannot be sent as {name.split('-Extra-')[0]}", "use plain text")
    return tuple(headers)
