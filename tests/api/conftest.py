"""A server for tests that change nothing about it, and the smallest valid request."""

from __future__ import annotations

import ssl

import pytest
import trustme
from live_server import live_server


@pytest.fixture(scope="session")
def server():
    """One live server for all tests that only send it requests."""
    with live_server(max_body_bytes=1024 * 1024, body_timeout=1.0) as running:
        yield running


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """The TLS settings of a server, and an SSL context that trusts it."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for index, part in enumerate(issued.cert_chain_pems):
        part.write_to_path(folder / "cert.pem", append=index > 0)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return {"certfile": str(folder / "cert.pem"), "keyfile": str(folder / "key.pem")}, context
