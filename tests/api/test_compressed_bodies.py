"""Content codings: the limit counts what they expand to, and what a body expands to costs nothing until it is whole."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from live_server import live_server
from raw_http import exchange, post, request

from openjev_core.api import body
from openjev_core.api.body import decompressed
from openjev_core.errors import BodyTooLarge, MalformedBody

zstd = body.zstd
BODY = request(state="compressible " * 500)
MIB = 1024 * 1024

CODED = {
    "zstd": zstd.compress,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    " GZIP ": gzip.compress,
    "x-gzip": gzip.compress,
    "identity, zstd": zstd.compress,
    "identity": bytes,
    "": bytes,
}


@pytest.mark.parametrize("coding", CODED)
def test_a_coded_body_is_read(server, coding):
    reply = exchange(server, post(CODED[coding](BODY), headers=[f"Content-Encoding: {coding}"]))
    assert 200 == reply.status, reply.body


@pytest.mark.parametrize(
    "coding",
    ["br", "compress", "utf-8", "none", "aws-chunked", "gzip, zstd", "gzip, gzip", "zstd;q=1", "../../etc", "\xff"],
)
def test_another_coding_is_a_415_that_says_which_are_read(server, coding):
    reply = exchange(server, post(BODY, headers=[f"Content-Encoding: {coding}"]))
    assert 415 == reply.status
    assert "zstd, gzip, deflate, identity" in reply.json["detail"]["message"]


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:0], id="nothing"),
        pytest.param(lambda data: data[:1], id="one byte"),
        pytest.param(lambda data: data[:-1], id="cut by one"),
        pytest.param(lambda data: data[: len(data) // 2], id="cut in half"),
        pytest.param(lambda data: b"plain text" + data, id="other data"),
        pytest.param(lambda data: data + b"trailing data", id="trailing data"),
    ],
)
def test_corrupt_data_is_a_400(server, coding, damage):
    reply = exchange(server, post(damage(CODED[coding](BODY)), headers=[f"Content-Encoding: {coding}"]))
    assert 400 == reply.status, reply.body
    assert "malformed_body" == reply.json["detail"]["error_type"]


@pytest.fixture(scope="module")
def every_wire():
    """A server with agents' tools as well."""
    with live_server(mcp=True) as running:
        yield running


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions", "/mcp"])
def test_a_header_that_a_proxy_left_or_took_away_is_named(every_wire, path):
    """Some decompress a body and leave the header, some compress one and write none."""

    def said(data, *headers):
        reply = exchange(every_wire, post(data, path=path, headers=headers))
        assert 400 == reply.status
        return reply.json.get("detail", reply.json.get("error"))["message"]

    for coding in ("zstd", "gzip", "deflate"):
        assert f"the body is plain JSON, and its header says {coding}; leave Content-Encoding out" == said(
            b" \n" + BODY, f"Content-Encoding: {coding}"
        )
    for coding in ("zstd", "gzip"):
        assert f"the body is {coding} data, and no header says so; send Content-Encoding: {coding}" == said(
            CODED[coding](BODY)
        )


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_checksum_that_does_not_match_is_a_400(server, coding):
    coded = CODED[coding](BODY)
    reply = exchange(
        server, post(coded[:-5] + bytes([coded[-5] ^ 1]) + coded[-4:], headers=[f"Content-Encoding: {coding}"])
    )
    assert 400 == reply.status


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_several_members_are_one_body(server, coding):
    parts = [CODED[coding](part) for part in (BODY[:100], b"", BODY[100:])]
    assert 200 == exchange(server, post(b"".join(parts), headers=[f"Content-Encoding: {coding}"])).status


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_members_without_content_are_bounded_too(server, coding):
    reply = exchange(
        server, post(CODED[coding](b"") * 2000 + CODED[coding](BODY), headers=[f"Content-Encoding: {coding}"])
    )
    assert 400 == reply.status
    assert "64" in reply.json["detail"]["message"]


def deflated_gigabyte(wbits):
    """A gigabyte of zeros: one flushed mebibyte of deflate, a thousand times."""
    compressor = zlib.compressobj(9, wbits=wbits)
    start = compressor.compress(b"0") + compressor.flush(zlib.Z_FULL_FLUSH)
    block = compressor.compress(bytes(1024 * 1024)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return start + block * 1000


@pytest.fixture(scope="module")
def bombs():
    return {
        "zstd": zstd.compress(bytes(1024 * 1024)) * 1000,
        "gzip": deflated_gigabyte(31),
        "deflate": deflated_gigabyte(15),
    }


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_a_bomb_is_a_413(server, bombs, coding):
    reply = exchange(server, post(bombs[coding], headers=[f"Content-Encoding: {coding}"]))
    assert 413 == reply.status
    assert "after decompression" in reply.json["detail"]["message"]


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_a_bomb_costs_no_more_memory_than_the_limit(bombs, coding):
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            decompressed(bombs[coding], coding, 4 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MIB


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_the_limit_is_exact(coding):
    coded = CODED[coding](bytes(1000))
    assert bytes(1000) == decompressed(coded, coding, 1000)
    with pytest.raises(BodyTooLarge):
        decompressed(coded, coding, 999)


def test_the_limit_is_that_of_all_members_together():
    assert bytes(1000) == decompressed(gzip.compress(bytes(600)) + gzip.compress(bytes(400)), "gzip", 1000)
    with pytest.raises(BodyTooLarge):
        decompressed(gzip.compress(bytes(600)) + gzip.compress(bytes(401)), "gzip", 1000)


def test_a_zstd_window_that_would_take_much_memory_is_refused():
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.enable_long_distance_matching: 1}
    compressor = zstd.ZstdCompressor(options=options)
    data = compressor.compress(bytes(64)) + compressor.flush()
    with pytest.raises(MalformedBody):
        decompressed(data, "zstd", MIB)
