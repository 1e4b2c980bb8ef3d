"""From a kubeconfig, or the pod we run in, to ``Credentials``: the only module that knows kubernetes_asyncio.

Used by ``connect``. What is taken from kubernetes_asyncio is how kubeconfig files are found and merged, how a user's
static credentials become a header, and the in-cluster convention. What is not (certificates, token files, plugins) is
done by ``tls`` and ``identities``: there the library leaves keys in temporary files, never reads a token again, and may
wait for a plugin for ever (docs/libraries.md). It is imported late, as that takes half a second.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from mirror.kube import tls
from mirror.kube.addresses import refuser
from mirror.kube.credentials import Credentials, Endpoint, Identity, IdentitySource, IdentityUnavailable
from mirror.kube.identities import Plugin, TokenFile
from mirror.kube.kubeconfig import Cluster, Kubeconfig, KubeconfigRefused, Policy, User, read_document
from mirror.model.failures import file_words

if TYPE_CHECKING:
    import ssl

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

_NOT_YET = Identity(renew_at=-math.inf, expires_at=-math.inf)
"""Makes the first request ask the source."""
_FILE_KEYS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


async def management_credentials(path: str, *, context: str = "") -> Credentials:
    """For the management cluster, whose kubeconfig is the operator's own.

    Args:
        path: one file or several, as in ``KUBECONFIG``; empty for the service account of our pod.
        context: another context than the current one.

    Raises:
        KubeconfigRefused: there is no such file, it is no kubeconfig, or it cannot be honoured.
    """
    if not path:
        return _service_account_credentials()
    kubeconfig = read_document(_merged(path, context), Policy({}, trusted=True))
    return await _credentials(kubeconfig, refuse_address=None)


async def worker_credentials(kubeconfig: Kubeconfig, allow: Mapping[str, bool]) -> Credentials:
    """For a worker, whose kubeconfig was checked; addresses are judged again when a connection is made.

    Raises:
        KubeconfigRefused: a file that it names does not load.
    """
    guard = refuser(allow_loopback=allow.get("loopback", False))
    return await _credentials(kubeconfig, refuse_address=guard)


def personal_credentials(kubeconfig: Kubeconfig) -> Credentials:
    """For a person's own kubeconfig, in a command that is over in a moment.

    As for the management cluster, but without kubernetes_asyncio: importing it takes longer than such a command.

    Raises:
        KubeconfigRefused: a file that it names does not load.
    """
    cluster, user = kubeconfig.cluster, kubeconfig.user
    endpoint = Endpoint(
        server=cluster.server,
        tls=_tls(cluster, user) if cluster.server.startswith("https://") else None,
        server_hostname=cluster.tls_server_name or None,
        proxy=cluster.proxy or None,
        compresses=cluster.compresses,
    )
    source = _source(cluster, user)
    if source is not None:
        return Credentials(endpoint, _NOT_YET, source=source, impersonation=user.impersonation)
    token = user.token or (_id_token(user.auth_provider) if user.auth_provider else "")
    authorization = f"Bearer {token}" if token else ""
    if not token and user.username:
        authorization = "Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
    certificate = user.certificate_pem or _content(user.certificate_file, "client-certificate")
    key = user.key_pem or _content(user.key_file, "client-key")
    identity = Identity(authorization=authorization, certificate_pem=certificate, key_pem=key)
    return Credentials(endpoint, identity, impersonation=user.impersonation)


async def _credentials(kubeconfig: Kubeconfig, *, refuse_address: Callable[[str], str | None] | None) -> Credentials:
    cluster, user = kubeconfig.cluster, kubeconfig.user
    loaded = await _load(cluster, user)
    endpoint = Endpoint(
        server=loaded.host,
        tls=_tls(cluster, user) if loaded.host.startswith("https://") else None,
        server_hostname=loaded.tls_server_name,
        proxy=loaded.proxy,
        refuse_address=refuse_address,
        compresses=cluster.compresses,
    )
    source = _source(cluster, user)
    identity = _NOT_YET if source is not None else Identity(authorization=loaded.api_key.get("BearerToken", ""))
    return Credentials(endpoint, identity, source=source, impersonation=user.impersonation)


async def _load(cluster: Cluster, user: User) -> Any:
    """A ``Configuration`` of our own, as the process-wide default would mix up clusters.

    It sees neither keys nor certificates nor files: those it would write to temporary files.
    """
    _have_a_home()
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException, load_kube_config_from_dict

    server: dict[str, object] = {"server": cluster.server, "insecure-skip-tls-verify": not cluster.verify}
    if cluster.tls_server_name:
        server["tls-server-name"] = cluster.tls_server_name
    if cluster.proxy:
        server["proxy-url"] = cluster.proxy
    who: dict[str, object] = {}
    if user.token or user.auth_provider:
        who["token"] = user.token or _id_token(user.auth_provider or {})
    elif user.username:
        who |= {"username": user.username, "password": user.password}
    configuration = Configuration()
    try:
        await load_kube_config_from_dict(_document(server, who), client_configuration=configuration)
    except ConfigException:
        raise KubeconfigRefused("kubeconfig", "cannot be used", "compare it with one that kubectl accepts") from None
    return configuration


def _document(cluster: Mapping[str, object], user: Mapping[str, object]) -> dict[str, object]:
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": dict(cluster)}],
        "users": [{"name": "it", "user": dict(user)}],
    }


def _source(cluster: Cluster, user: User) -> IdentitySource | None:
    if user.token_file:
        return TokenFile(user.token_file)
    if user.exec is not None:
        return Plugin(user.exec, cluster)
    return None


def _id_token(provider: Mapping[str, object]) -> str:
    """OIDC's token as it stands; once it has expired, requests are refused with 401.

    Renewing is left out on purpose: the library sends the client secret over a connection whose certificate it does not
    check, or fails (docs/libraries.md).
    """
    config = provider.get("config")
    token = config.get("id-token") if isinstance(config, Mapping) else None
    if provider.get("name") != "oidc" or not isinstance(token, str) or not token:
        fix = "use an exec plugin, such as kubelogin or gke-gcloud-auth-plugin, or a token"
        raise KubeconfigRefused("users[].user.auth-provider", "is not oidc with an id-token", fix)
    return token


def _service_account_credentials() -> Credentials:
    """The service account of the pod we run in."""
    _have_a_home()
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException, load_incluster_config

    token_file, ca_file = f"{SERVICE_ACCOUNT}/token", f"{SERVICE_ACCOUNT}/ca.crt"
    configuration = Configuration()
    try:
        load_incluster_config(configuration, token_filename=token_file, cert_filename=ca_file)
        identity = TokenFile(token_file).read()
    except (ConfigException, IdentityUnavailable) as error:
        problem = "is empty, and we do not run in a pod with a service account"
        raise KubeconfigRefused("kubeconfig", problem, "set kubeconfig to a file") from error
    endpoint = Endpoint(configuration.host, _tls(Cluster(configuration.host, ca_file=ca_file), User()))
    return Credentials(endpoint, identity, source=TokenFile(token_file))


def _tls(cluster: Cluster, user: User) -> ssl.SSLContext:
    """What a connection is checked by and presents."""
    ca_pem = cluster.ca_pem or _content(cluster.ca_file, "certificate-authority")
    certificate_pem = user.certificate_pem or _content(user.certificate_file, "client-certificate")
    key_pem = user.key_pem or _content(user.key_file, "client-key")
    try:
        context = tls.client_context(ca_pem=ca_pem, verify=cluster.verify)
        if certificate_pem:
            tls.load_client_certificate(context, certificate_pem, key_pem)
    except tls.BadCertificate as error:
        raise KubeconfigRefused("kubeconfig", f"names a certificate file that {error}", "give PEM files") from error
    return context


def _content(path: str, field: str) -> bytes:
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise KubeconfigRefused(field, f"names a file that cannot be read ({file_words(error)})", "check it") from error
    if not content:
        raise KubeconfigRefused(field, "names an empty file", "put the PEM there")
    return content


def _have_a_home() -> None:
    """kubernetes_asyncio cannot be imported by a user without a home, such as a container's bare number without HOME.

    It gets the one that container runtimes give to such users.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def _merged(path: str, context: str) -> dict[str, object]:
    """The files as one document, with the paths in them made absolute."""
    _have_a_home()
    from kubernetes_asyncio.config import ConfigException
    from kubernetes_asyncio.config.kube_config import KubeConfigMerger

    try:
        merged = KubeConfigMerger(path).config
        if merged is None:
            raise KubeconfigRefused("kubeconfig", "names no file that exists", "check the path in the settings")
        document = dict(merged.value)
        for plural in ("clusters", "contexts", "users"):
            document[plural] = [with_absolute_paths(item.value, item.path) for item in document[plural]]
    except (ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        # Not "from error": their texts quote the file, and a cause is shown in tracebacks.
        raise KubeconfigRefused("kubeconfig", f"cannot be read ({_why_unreadable(error)})", "check the file") from None
    if context:
        document["current-context"] = context
    return document


def _why_unreadable(error: Exception) -> str:
    """Why a kubeconfig cannot be read; nothing of what is in it."""
    match error:
        case OSError() | UnicodeError():
            return file_words(error)
        case yaml.YAMLError():
            return "not valid YAML"
    return "not a valid kubeconfig"


def with_absolute_paths(item: Mapping[str, Any], file: str) -> dict[str, Any]:
    """An entry of a kubeconfig whose relative paths are those from its file's folder."""
    folder = os.path.dirname(os.path.abspath(os.path.expanduser(file)))
    changed = dict(item)
    for part in ("cluster", "user"):
        if not isinstance(item.get(part), dict):
            continue
        content = dict(item[part])
        for key in _FILE_KEYS:
            if isinstance(content.get(key), str) and content[key]:
                content[key] = os.path.join(folder, content[key])
        plugin = content.get("exec")
        if isinstance(plugin, dict) and isinstance(plugin.get("command"), str) and "/" in plugin["command"]:
            content["exec"] = {**plugin, "command": os.path.join(folder, plugin["command"])}
        changed[part] = content
    return changed
