"""What a page may do, as headers: nothing but what it was made for."""

from __future__ import annotations

from openjev_core.api.exchange import Header

CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'"

OWN = f"{CLOSED}; style-src 'self'; img-src 'self'; connect-src 'self'"
"""The project's own pages need no more than files of this server."""

PLAYGROUND = f"{OWN}; require-trusted-types-for 'script'; trusted-types 'none'"
"""Text can only ever become text: with no Trusted Types policy allowed, the browser itself refuses every way of
turning a string into markup or code."""

SWAGGER = f"{CLOSED}; style-src 'self'; img-src 'self' data:; connect-src 'self'"
"""Swagger UI's own style sheet holds icons as data."""

REFERENCE = (
    f"{CLOSED}; style-src-elem 'self' 'nonce-{{{{ nonce }}}}'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'"
)
"""Scalar writes its theme into style elements, which take a nonce, and sizes things by style attributes, which
cannot."""


def page_headers(policy: str) -> tuple[Header, ...]:
    """The security headers of a page."""
    return (
        (b"content-security-policy", policy.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    )
