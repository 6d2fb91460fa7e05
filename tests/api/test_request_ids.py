"""Request ids: on every response, the client's own where it is sane."""

from __future__ import annotations

import pytest
from raw_http import exchange, post, request

from openjev_core.api.exchange import request_id_for


@pytest.mark.parametrize("inbound", ["abc", "req_1-2.3", "a/b:c+d=e@f", "x" * 128])
def test_a_sane_id_is_kept(server, inbound):
    reply = exchange(server, post(request(), headers=[f"X-Request-Id: {inbound}"]))
    assert inbound == reply.headers["x-typesafe-request-id"]


@pytest.mark.parametrize("inbound", ["", " ", "a b", "x" * 129, "é", "a\tb", "<script>", 'a"b', "%0d%0a"])
def test_another_is_replaced(server, inbound):
    reply = exchange(server, post(request(), headers=[f"X-Request-Id: {inbound}"]))
    assert reply.headers["x-typesafe-request-id"].startswith("req_")


def test_two_ids_are_none(server):
    reply = exchange(server, post(request(), headers=["X-Request-Id: a", "X-Request-Id: b"]))
    assert reply.headers["x-typesafe-request-id"].startswith("req_")


def test_each_request_gets_its_own():
    assert 1000 == len({request_id_for("") for _ in range(1000)})
