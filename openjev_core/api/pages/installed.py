"""Files that other installed packages hold, read as data: the packages are never imported."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from attrs import frozen


@frozen
class Vendored:
    """A program for browsers that a Python package holds.

    Attributes:
        name: In this server's paths.
        distribution: The Python package.
        files: Their paths inside the package's distribution.
    """

    name: str
    distribution: str
    files: tuple[str, ...]


@frozen
class Found:
    """An installed one.

    Attributes:
        folder: Where this server offers it; changes with its version.
        files: File name to path.
    """

    folder: str
    files: dict[str, Path]


SCALAR = Vendored("scalar", "flask-openapi-scalar", ("flask_openapi_scalar/templates/scalar/js/scalar.standalone.js",))
SWAGGER_UI = Vendored(
    "swagger-ui",
    "flask-swagger-ui",
    ("flask_swagger_ui/dist/swagger-ui-bundle.js", "flask_swagger_ui/dist/swagger-ui.css"),
)


def find(vendored: Vendored) -> Found | None:
    """Where its files are; ``None`` when the package, or one of the files, is not installed."""
    try:
        package = distribution(vendored.distribution)
    except PackageNotFoundError:
        return None
    paths = [Path(str(package.locate_file(file))) for file in vendored.files]
    if not all(path.is_file() for path in paths):
        return None
    return Found(f"assets/{vendored.name}-{package.version}", {path.name: path for path in paths})
