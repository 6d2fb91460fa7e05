"""The routes of the pages."""

from __future__ import annotations

from openjev_core.api.dispatch import Route, always
from openjev_core.api.exchange import Reply

LINKS = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>openjev</title>
<h1>openjev</h1>
<p>Typed questions about a state, answered with probabilities read from a language model's first token.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: the API as an OpenAPI document</li>
<li><code>POST /v1/systemone</code>: evaluate a request</li>
<li><code>GET /v1/models</code>, <code>GET /v1/limits</code>, <a href="/health">/health</a></li>
</ul>
</html>
"""

HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'"),
)


def page_routes() -> list[Route]:
    """A route per page."""
    page = always(Reply(200, LINKS.encode(), HEADERS))
    return [Route("GET", path, page, keyed=False) for path in ("/", "/docs")]
