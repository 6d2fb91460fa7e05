"""Request ids: one's own, or the client's where it is sane."""

from __future__ import annotations

import re
import secrets

SANE = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


def request_id_for(inbound: bytes | None) -> str:
    """The id of a request: its ``x-request-id`` when that can stand in a header and a log line, else a new one."""
    if inbound is not None and SANE.fullmatch(inbound):
        return inbound.decode("ascii")
    return "req_" + secrets.token_hex(16)
