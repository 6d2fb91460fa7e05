"""Whose word on the client's address is taken."""

from __future__ import annotations

import pytest

from openjev_core.api.exchange import TrustedProxies


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "client"),
    [
        ((), "10.0.0.1", "1.2.3.4", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "1.2.3.4", "1.2.3.4"),
        (("10.0.0.1",), "10.0.0.2", "1.2.3.4", "10.0.0.2"),
        (("10.0.0.0/8",), "10.9.9.9", "6.6.6.6, 1.2.3.4", "1.2.3.4"),
        (("10.0.0.0/8",), "10.9.9.9", "6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"),
        (("10.0.0.0/8",), "10.9.9.9", "10.1.1.1", "10.1.1.1"),
        (("10.0.0.0/8",), "10.9.9.9", "", "10.9.9.9"),
        (("10.0.0.0/8",), "10.9.9.9", "6.6.6.6, evil\nline, 10.1.1.1", "10.1.1.1"),
        (("::1",), "::1", "2001:db8::7", "2001:db8::7"),
        (("::1",), "::1", "fe80::1%" + "z" * 20_000, "fe80::1"),
        (("::1",), "127.0.0.1", "1.2.3.4", "127.0.0.1"),
        (("10.0.0.0/8",), "unknown", "1.2.3.4", "unknown"),
    ],
)
def test_the_client_is_the_last_hop_that_no_trusted_proxy_vouches_for_itself(trusted, peer, forwarded, client):
    assert client == TrustedProxies(trusted).client(peer, forwarded)
