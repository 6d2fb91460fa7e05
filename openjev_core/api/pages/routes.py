"""The pages, the files that they are made of, and what a browser lets them do: nothing but what they were made for."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path, PurePath

from attrs import frozen
from starlette.requests import Request
from starlette.responses import Response

from openjev_core.api.pages.asset import IMMUTABLE, MEDIA_TYPES, REVALIDATE, Asset
from openjev_core.api.responses import NO_SNIFFING

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


@frozen
class Vendored:
    """A program for browsers that another Python package holds. The package is read as data and never imported.

    Attributes:
        name: In this server's paths.
        distribution: The Python package.
        files: Their paths inside the package's distribution.
    """

    name: str
    distribution: str
    files: tuple[str, ...]


SCALAR = Vendored("scalar", "flask-openapi-scalar", ("flask_openapi_scalar/templates/scalar/js/scalar.standalone.js",))
SWAGGER_UI = Vendored(
    "swagger-ui",
    "flask-swagger-ui",
    ("flask_swagger_ui/dist/swagger-ui-bundle.js", "flask_swagger_ui/dist/swagger-ui.css"),
)


@frozen
class Installed:
    """A vendored program that is installed.

    Attributes:
        folder: Where this server offers it; changes with its version.
        files: File name to path.
    """

    folder: str
    files: Mapping[str, Path]


class NoncePage:
    """An HTML page whose style elements are made at run time: a fresh nonce each time, in the page and in its policy.

    Args:
        html: The page, with ``{{ nonce }}`` where the nonce goes.
        policy: Its content security policy, with ``{{ nonce }}`` likewise.
    """

    def __init__(self, html: bytes, policy: str) -> None:
        self._html = html
        self._policy = policy

    async def response(self, _request: Request) -> Response:
        """The page. A nonce that is used twice is none, so browsers must not keep it."""
        nonce = secrets.token_urlsafe(18)
        headers = {
            "content-type": MEDIA_TYPES[".html"],
            "cache-control": "no-store",
            **NO_SNIFFING,
            **page_headers(self._policy.replace("{{ nonce }}", nonce)),
        }
        return Response(self._html.replace(b"{{ nonce }}", nonce.encode()), headers=headers)


Page = Asset | NoncePage


def page_routes() -> dict[str, Page]:
    """Path to page, and to each file that a page loads. Paths in the pages are relative, for proxies' sake."""
    content = own_content()
    # Own files stand under a digest of them all, so that browsers may keep them for good and a page never mixes two
    # releases. Modules import each other by relative paths.
    digest = sha256(b"\0".join(b"%s\0%s" % (name.encode(), body) for name, body in content.items())).hexdigest()[:12]
    own = f"assets/{digest}"
    return {
        "/playground": static_page(filled(content["playground.html"], own=own), PLAYGROUND),
        **vendored_page("/", SCALAR, content, own),
        **vendored_page("/docs", SWAGGER_UI, content, own),
        **{
            f"/{own}/{name}": asset_file(name, always(body))
            for name, body in content.items()
            if not name.endswith(".html")
        },
    }


def own_content() -> Mapping[str, bytes]:
    """The project's own files, by name."""
    folder = files("openjev_core.api.pages") / "content"
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir(), key=lambda file: file.name)}


def vendored_page(path: str, vendored: Vendored, content: Mapping[str, bytes], own: str) -> dict[str, Page]:
    """A page around another package's program, and that program; or a page that says how to get it."""
    found = find(vendored)
    if found is None:
        html = filled(content["missing.html"], own=own, package=vendored.distribution)
        return {path: static_page(html, OWN)}
    html = filled(content[f"{vendored.name}.html"], own=own, vendored=found.folder)
    page = NoncePage(html, REFERENCE) if vendored is SCALAR else static_page(html, SWAGGER)
    return {
        path: page,
        **{f"/{found.folder}/{name}": asset_file(name, place.read_bytes) for name, place in found.files.items()},
    }


def find(vendored: Vendored) -> Installed | None:
    """Where its files are; ``None`` when the package, or one of the files, is not installed."""
    try:
        package = distribution(vendored.distribution)
    except PackageNotFoundError:
        return None
    paths = [Path(str(package.locate_file(file))) for file in vendored.files]
    if not all(path.is_file() for path in paths):
        return None
    return Installed(f"assets/{vendored.name}-{package.version}", {path.name: path for path in paths})


def static_page(html: bytes, policy: str) -> Asset:
    """A page that is the same for everyone."""
    return Asset(".html", always(html), caching=REVALIDATE, headers=page_headers(policy))


def asset_file(name: str, read: Callable[[], bytes]) -> Asset:
    """A file whose path changes with its content."""
    return Asset(PurePath(name).suffix, read, caching=IMMUTABLE)


def page_headers(policy: str) -> dict[str, str]:
    """The security headers of a page."""
    return {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }


def filled(template: bytes, **values: str) -> bytes:
    """A template with its values in the place of ``{{ name }}``."""
    for name, value in values.items():
        template = template.replace(b"{{ %s }}" % name.encode(), value.encode())
    return template


def always(body: bytes) -> Callable[[], bytes]:
    """A reader of what has been read."""
    return lambda: body
