"""Where to look when a cluster cannot be reached, by what went wrong. Pure.

Used by the commands of users (``user.failures``) and of operators (``worker.operations``).
"""

from __future__ import annotations

from collections.abc import Sequence

Table = Sequence[tuple[str, str]]
"""What a text says, and what to do then; the first that fits."""

OF_CONNECTION: Table = (
    ("proxy", "check the proxy of the kubeconfig"),
    ("DNS", "check the host name in the kubeconfig, and DNS on this machine"),
    ("refused to connect", "the host name leads to an address that the manager does not use: correct the kubeconfig"),
    ("connection refused", "nothing listens there: check that the API server runs, and its port in the kubeconfig"),
    ("timed out", "no response: check that the API server runs, and that no firewall drops packets to it"),
    ("no route", "check the address in the kubeconfig, and routes and VPN on this machine"),
    ("network is", "check the network of this machine"),
    ("", "check that the API server runs, and that no firewall is between it and this machine"),
)
_OF_MANAGER: Table = (
    ("proxy", "check the proxy of the kubeconfig"),
    ("DNS", "check the address that the manager publishes (setting access.url), and DNS on this machine"),
    ("connection refused", "nothing listens there: check that the manager runs, and its Service"),
    ("", "check that the manager runs, its Service, and the address that it publishes (setting access.url)"),
)
_OF_ANYTHING: Table = (
    ("credential plugin", "see users[].user.exec in the kubeconfig, and run that command by hand"),
    ("does not speak TLS", "this port is not an API server's: check the server's address in the kubeconfig"),
    ("not yet valid", "compare the clocks of this machine and of the server: one of them is wrong"),
    ("has expired", "renew the API server's certificate (kubeadm certs renew)"),
    ("unknown authority", "the kubeconfig has the CA of another cluster, or the CA was replaced"),
    (
        "not valid for",
        "the server's address in the kubeconfig is not in the certificate: set tls-server-name, or use it",
    ),
    *OF_CONNECTION,
)


def first_fix(table: Table, what: str) -> str:
    """What to do about it; empty where nothing of the table fits."""
    return next((fix for part, fix in table if part in what), "")


def fix_of(what: str) -> str:
    """What to do about a cluster that cannot be reached for this reason."""
    return first_fix(_OF_ANYTHING, what)


def fix_of_manager(what: str) -> str:
    """The same of the manager's own address, which is no API server's and in no kubeconfig."""
    return first_fix(_OF_MANAGER, what)
