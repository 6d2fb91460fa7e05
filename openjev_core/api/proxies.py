"""Who a request comes from, when it came through a proxy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from openjev_core.errors import SettingsError

Address = IPv4Address | IPv6Address


class TrustedProxies:
    """The proxies whose word on the client's address is taken.

    Args:
        addresses: Addresses and networks in CIDR notation.

    Raises:
        SettingsError: One is neither.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        for text in addresses:
            try:
                self._networks.append(ip_network(text))
            except ValueError:
                raise SettingsError(
                    f"OPENJEV_TRUSTED_PROXIES: expected addresses or networks such as 10.0.0.0/8, found {text!r}"
                ) from None

    def client(self, peer: str, headers: Mapping[bytes, bytes]) -> str:
        """The client's address: the peer's, or the last one in ``x-forwarded-for`` that is no trusted proxy's.

        Only a trusted peer's header is read, and only as far back as trusted proxies wrote it.
        """
        if not self._networks or not self._trusts(peer):
            return peer
        client = peer
        for hop in reversed(headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")):
            try:
                client = str(ip_address(hop.strip()))
            except ValueError:
                return client
            if not self._trusts(client):
                return client
        return client

    def _trusts(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return any(address.version == network.version and address in network for network in self._networks)
