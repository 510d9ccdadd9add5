"""How a server can be reached, and what it takes: known before anything is imported that takes time."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from dataclasses import dataclass

EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Access:
    """How the server can be reached, and what it takes."""

    host: str = "127.0.0.1"
    token: str = ""  # empty: only this machine can ask, so nothing more is needed

    @classmethod
    def of_host(cls, host: str) -> Access:
        """A host that is not this machine's own loopback gets a fresh token."""
        return cls(host, "" if is_loopback(host) else secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a machine, so each server has its own name."""
        return "endoscope-" + hashlib.sha256(self.token.encode()).hexdigest()[:12]


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
