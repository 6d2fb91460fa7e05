"""Who a request comes from, when it came through a proxy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address


class TrustedProxies:
    """The proxies whose word on the client's address is taken.

    Args:
        addresses: Addresses and networks in CIDR notation, as the settings have checked them.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(text) for text in addresses]

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
