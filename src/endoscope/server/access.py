"""How a server can be reached, and what it takes: known before anything is imported that takes time."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass

EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Access:
    """How the server can be reached, and what it takes."""

    host: str = "127.0.0.1"
    token: str = ""  # empty: whoever reaches the server may ask, as in tests of the routes
    framed: bool = False  # a notebook, which has another origin, may show the page inside of it

    @classmethod
    def of_host(cls, host: str, *, framed: bool = False) -> Access:
        """A fresh token, on loopback too: every account of a shared machine can reach the port."""
        return cls(host, secrets.token_urlsafe(24), framed)


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    address = address_of(host)
    return address is not None and address.is_loopback


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
