"""GGUF files from the Hugging Face Hub: choosing one of a repository, and downloading it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]  # documented, but not in its __all__

from openjev_core.errors import StartupError

PREFERRED = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M")
"""Which of several quantizations to take. Q8_0 is first: it loses next to nothing, and a CPU prefills it fastest."""
PART = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)
REPORT_EVERY = 5
"""Percent."""


def download(
    repo: str, file: str | None, quant: str | None, revision: str | None, progress: Callable[[str], None]
) -> Path:
    """The path of one model of a repository; of a split model, the first part's. Downloads what the cache lacks.

    Args:
        repo: ``ORG/REPO``.
        file: A file in it, or ``None`` to choose by ``quant``, or by ``PREFERRED`` without.
        quant: Part of the file's name, such as ``Q8_0``.
        revision: Branch, tag or commit.
        progress: Takes lines for a person.

    Raises:
        StartupError: The repository, the revision, the file or the network is missing; says which.
    """
    name = repo if revision is None else f"{repo} at revision {revision}"
    try:
        file = file or choose(gguf_files(repo, revision), quant, name)
        progress(f"looking for {file} of {name}")
        paths = [
            Path(hf_hub_download(repo, part, revision=revision, tqdm_class=reporting(progress, part)))
            for part in parts(file)
        ]
    except LocalEntryNotFoundError:
        raise StartupError(offline(name)) from None
    except GatedRepoError:
        raise StartupError(
            f"model: the Hugging Face repository {name} is gated: accept its terms on its page, "
            "and set HF_TOKEN to a token that may read it"
        ) from None
    except RepositoryNotFoundError:
        raise StartupError(
            f"model: there is no Hugging Face repository {repo}, or it is private (set HF_TOKEN then)"
        ) from None
    except RevisionNotFoundError:
        raise StartupError(f"revision: the Hugging Face repository {repo} has no revision {revision!r}") from None
    except EntryNotFoundError:
        raise StartupError(f"model: the Hugging Face repository {name} has no file {file!r}") from None
    except (HfHubHTTPError, httpx.HTTPError, OSError) as error:
        raise StartupError(f"model: downloading from {name} failed: {error}") from None
    return paths[0]


def gguf_files(repo: str, revision: str | None) -> list[str]:
    """The names of the repository's GGUF files; of those in the cache, when the Hub cannot be reached."""
    try:
        found: Iterable[str] = HfApi().list_repo_files(repo, revision=revision)
    except (httpx.TransportError, OfflineModeIsEnabled):
        folder = Path(snapshot_download(repo, revision=revision, local_files_only=True))
        found = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return sorted(name for name in found if name.lower().endswith(".gguf") and "mmproj" not in name.lower())


def choose(files: Sequence[str], quant: str | None, name: str) -> str:
    """The name of the file to load.

    Raises:
        StartupError: There is none, or there are several and none is preferred.
    """
    if not files:
        raise StartupError(
            f"model: the Hugging Face repository {name} has no .gguf file; llama.cpp needs one. "
            "Repositories that have are often named ...-GGUF"
        )
    firsts = [file for file in files if (part := PART.search(file)) is None or int(part["number"]) == 1]
    for wanted in [quant] if quant is not None else PREFERRED:
        matching = [file for file in firsts if contains(file, wanted)]
        if matching:
            return min(matching, key=len)
    if quant is None and len(firsts) == 1:
        return firsts[0]
    listed = ", ".join(firsts[:20]) + (f" and {len(firsts) - 20} more" if len(firsts) > 20 else "")  # noqa: PLR2004
    missing = "several and none of the usual ones" if quant is None else f"none that matches {quant!r}"
    raise StartupError(
        f"model: of the .gguf files of the Hugging Face repository {name}, {missing}; "
        f"name one as {name.split(maxsplit=1)[0]}/FILE.gguf: {listed}"
    )


def contains(file: str, quant: str) -> bool:
    """Whether the file's name has ``quant`` as a whole word: ``Q4_K_M`` does not have ``Q4_K``."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(quant)}(?![A-Za-z0-9_])", file, re.IGNORECASE) is not None


def parts(file: str) -> list[str]:
    """The names of all parts of a split model; ``file`` alone when the model is not split."""
    part = PART.search(file)
    if part is None:
        return [file]
    count = int(part["count"])
    return [f"{file[: part.start()]}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]


def reporting(progress: Callable[[str], None], file: str) -> type[tqdm]:
    """A progress bar class that reports in lines and draws nothing."""

    class Reporting(tqdm):
        reported = -REPORT_EVERY

        def __init__(self, *args: Any, **options: Any) -> None:
            # Without a terminal the bar would switch itself off, and with one it would end in an empty line there.
            super().__init__(*args, **{**options, "disable": False, "file": io.StringIO()})  # type: ignore[no-untyped-call]

        def display(self, *_: Any, **__: Any) -> None:
            """Report when another :data:`REPORT_EVERY` percent are there."""
            if not self.total:
                return
            percent = int(100 * self.n / self.total)
            if percent >= self.reported + REPORT_EVERY:
                self.reported = percent - percent % REPORT_EVERY
                progress(f"downloading {file}: {percent}% of {self.total / 1e6:.0f} MB")

    return Reporting


def offline(name: str) -> str:
    """The message for a machine without a network."""
    return (
        f"model: the Hugging Face Hub cannot be reached, and {name} is not in its cache on this machine: check the "
        "network and HF_HUB_OFFLINE, or give the path of a .gguf file"
    )
