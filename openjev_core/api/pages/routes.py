"""The routes of the pages and of the files that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath

from openjev_core.api.dispatch import Handler, Route
from openjev_core.api.pages.asset import IMMUTABLE, REVALIDATE, Asset
from openjev_core.api.pages.installed import SCALAR, SWAGGER_UI, Vendored, find
from openjev_core.api.pages.nonce_page import NoncePage
from openjev_core.api.pages.policy import OWN, PLAYGROUND, REFERENCE, SWAGGER, page_headers


def page_routes() -> list[Route]:
    """A route per page, and one per file that a page loads. Paths in the pages are relative, for proxies' sake."""
    content = own_content()
    # Own files stand under a digest of them all, so that browsers may keep them for good and a page never mixes two
    # releases. Modules import each other by relative paths.
    digest = sha256(b"\0".join(b"%s\0%s" % (name.encode(), body) for name, body in content.items())).hexdigest()[:12]
    own = f"assets/{digest}"
    playground = static_page(filled(content["playground.html"], own=own), PLAYGROUND)
    return [
        Route("GET", "/playground", playground, keyed=False),
        *vendored_page("/", SCALAR, content, own),
        *vendored_page("/docs", SWAGGER_UI, content, own),
        *(file_route(f"/{own}/{name}", always(body)) for name, body in content.items() if not name.endswith(".html")),
    ]


def own_content() -> Mapping[str, bytes]:
    """The project's own files, by name."""
    folder = files("openjev_core.api.pages") / "content"
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=lambda file: file.name)}


def vendored_page(path: str, vendored: Vendored, content: Mapping[str, bytes], own: str) -> list[Route]:
    """A page around another package's program, and that program; or a page that says how to get it."""
    found = find(vendored)
    handler: Handler
    if found is None:
        handler = static_page(filled(content["missing.html"], own=own, package=vendored.distribution), OWN)
        return [Route("GET", path, handler, keyed=False)]
    html = filled(content[f"{vendored.name}.html"], own=own, vendored=found.folder)
    handler = NoncePage(html, REFERENCE) if vendored is SCALAR else static_page(html, SWAGGER)
    return [
        Route("GET", path, handler, keyed=False),
        *(file_route(f"/{found.folder}/{name}", file.read_bytes) for name, file in found.files.items()),
    ]


def static_page(html: bytes, policy: str) -> Asset:
    """The handler of a page that is the same for everyone."""
    return Asset(".html", always(html), caching=REVALIDATE, headers=page_headers(policy))


def file_route(path: str, read: Callable[[], bytes]) -> Route:
    """The route of a file whose path changes with its content."""
    return Route("GET", path, Asset(PurePath(path).suffix, read, caching=IMMUTABLE), keyed=False)


def filled(template: bytes, **values: str) -> bytes:
    """A template with its values in the place of ``{{ name }}``."""
    for name, value in values.items():
        template = template.replace(b"{{ %s }}" % name.encode(), value.encode())
    return template


def always(body: bytes) -> Callable[[], bytes]:
    """A reader of what has been read."""
    return lambda: body
