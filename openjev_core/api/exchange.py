"""What is known of one request: its id, its path, who sent it, and how it ended."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

from attrs import define, field
from starlette.datastructures import Headers

from openjev_core.engine.evaluation import Evaluation
from openjev_core.engine.request import Request

SANE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)
WHOLE_URL = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)
ENCODED = re.compile(rb"%(?=2f|0a)", re.IGNORECASE)
ENTRY = re.compile(
    r"(?P<v4>[0-9.]+)(:[0-9]{1,5})?|\[(?P<bracketed>[0-9A-Fa-f:.]+)(%[^\]]*)?\](:[0-9]{1,5})?|(?P<plain>[0-9A-Fa-f:.]+)(%.*)?",
    re.DOTALL,
)


@define(kw_only=True, eq=False)
class Exchange:
    """What is known of a request. It is filled in while the request is answered; log, metrics and traces read it.

    Attributes:
        request_id: On the response, in the log and in traces.
        method: As the client sent it.
        path: Without the query; see :func:`path_of`.
        client: Address of the client, or of the proxy before it where proxies are not trusted.
        headers: The request's headers.
        started: ``time.perf_counter()`` when the request arrived.
        route: Path of the route that matched; ``other`` when none did.
        status: Status code of the response; ``None`` until its headers are sent.
        questions: Question id to name of its type, in request order; empty until the questions are structured.
        evaluation: What the engine answered.
        error: The reason why there was no answer.
        hung_up: True when the client went away before the response.
    """

    request_id: str
    method: str
    path: str
    client: str
    headers: Headers
    started: float
    route: str = "other"
    status: int | None = None
    questions: Mapping[str, str] = field(factory=dict)
    evaluation: Evaluation | None = None
    error: Exception | None = None
    hung_up: bool = False

    def note(self, request: Request) -> None:
        """Note the question types of a request that has been structured."""
        self.questions = request.types


def joined(headers: Headers, name: str) -> str:
    """The values of a header, joined by commas where it was sent several times; empty where it was not sent."""
    return ", ".join(headers.getlist(name))


def request_id_for(inbound: str) -> str:
    """The id of a request.

    Args:
        inbound: Value of its ``x-request-id`` header. It is taken where it can stand in a header and in a log line.
    """
    return inbound if SANE_ID.fullmatch(inbound) else "req_" + secrets.token_hex(16)


def path_of(raw_path: bytes) -> str:
    """The path of a request, decoded.

    Proxies are sent a whole URL, and HTTP has every server accept one: its path counts. An encoded slash separates
    nothing and an encoded line break ends nothing, so both stay encoded, or routes would take them for the real ones.

    Args:
        raw_path: Target of the request up to the query, as it was sent.
    """
    whole = WHOLE_URL.match(raw_path)
    path = raw_path if whole is None else raw_path[whole.end() :] or b"/"
    return unquote(ENCODED.sub(b"%25", path).decode("latin-1"))


class TrustedProxies:
    """The proxies whose ``x-forwarded-for`` is believed.

    Args:
        addresses: Addresses and networks in CIDR notation. The settings have checked them.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks = [network_of(text) for text in addresses]

    def client(self, peer: str, forwarded_for: str) -> str:
        """The client's address: the last one in the header that is no trusted proxy's, or else the peer's.

        The header is read only when the peer is trusted, and only as far back as trusted proxies wrote it.

        Args:
            peer: Address at the other end of the connection.
            forwarded_for: Value of the ``x-forwarded-for`` header; empty when there is none.
        """
        if not self._networks or not self._trusts(peer):
            return peer
        client = peer
        for hop in reversed(forwarded_for.split(",")):
            address = address_in(hop)
            if address is None:
                return client
            client = str(address)
            if not self._trusts(client):
                return client
        return client

    def _trusts(self, text: str) -> bool:
        address = address_in(text)
        return address is not None and any(address in network for network in self._networks)


def network_of(text: str) -> IPv4Network | IPv6Network:
    """The network that an address or a network in CIDR notation names; see :func:`address_in` of IPv4 as IPv6."""
    network = ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return network if mapped is None else IPv4Network((int(mapped), network.prefixlen - 96))


def address_in(hop: str) -> IPv4Address | IPv6Address | None:
    """The address in one entry of ``x-forwarded-for``; ``None`` where there is none.

    Some proxies write the port, too, and an IPv6 address in brackets. A socket for both versions shows IPv4 addresses
    as IPv6 ones; here they are IPv4 again. The zone of an IPv6 address means nothing on another machine, and may be any
    text: it is left out.

    Args:
        hop: ``192.0.2.7``, ``192.0.2.7:4711``, ``2001:db8::7`` or ``[2001:db8::7]:4711``.
    """
    found = ENTRY.fullmatch(hop.strip())
    if found is None:
        return None
    try:
        address = ip_address(found["v4"] or found["bracketed"] or found["plain"])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
