"""What an embedded control plane has its own of certificates: the names it serves under, and the authority it keeps.

A control plane with data keeps its authority there, so that kubeconfigs stay valid. How certificates are made is in
``serving/x509``. Not here: kubeconfigs.
"""

from __future__ import annotations

from datetime import datetime

from mirror.embedded.apiserver.storage import keys
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.serving.x509 import Authority, KeyPair

LOCAL_NAMES = ("127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_END = b"-----END CERTIFICATE-----\n"


def kept_authority(storage: Storage, name: str, *, now: datetime) -> Authority:
    """The authority that is kept with the data of a control plane; a new one if there is none."""
    saved = keys.kept(storage, "authority", lambda: Authority.new(name, now=now).saved)
    end = saved.index(_END) + len(_END)
    return Authority(KeyPair(saved[:end], saved[end:]), now=now)


def names_for(host: str) -> list[str]:
    """The names of a serving certificate for what listens on this host; empty: every interface."""
    return list(dict.fromkeys((*([host] if host not in ("", "0.0.0.0", "::") else []), *LOCAL_NAMES)))
