"""Models from the Hugging Face Hub, whose client is scripted here."""

from __future__ import annotations

import httpx
import pytest
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from openjev_core.backends.llamacpp import hub
from openjev_core.backends.llamacpp.model_file import find_model
from openjev_core.errors import StartupError

FILES = ["README.md", "m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "m-F16.gguf", "mmproj-F16.gguf", "sub/m-Q4_K.gguf"]
RESPONSE = httpx.Response(404, request=httpx.Request("GET", "http://hub"))


class ScriptedHub:
    """What the Hub answers, and what it was asked."""

    def __init__(self, monkeypatch, tmp_path):
        self.files, self.error, self.listing_error, self.asked = FILES, None, None, []
        self.folder = tmp_path
        monkeypatch.setattr(hub, "HfApi", lambda: self)
        monkeypatch.setattr(hub, "hf_hub_download", self.hf_hub_download)
        monkeypatch.setattr(hub, "snapshot_download", self.snapshot_download)

    def list_repo_files(self, repo, *, revision):
        if self.listing_error:
            raise self.listing_error
        return self.files

    def hf_hub_download(self, repo, file, *, revision, tqdm_class):
        if self.error:
            raise self.error
        self.asked.append((repo, file, revision))
        bar = tqdm_class(total=1000, unit="B", desc=file)
        for _ in range(100):
            bar.update(10)
        bar.close()
        return str(self.folder / file)

    def snapshot_download(self, repo, *, revision, local_files_only):
        assert local_files_only
        if not any(self.folder.iterdir()):
            raise LocalEntryNotFoundError("nothing cached")
        return str(self.folder)


@pytest.fixture
def scripted(monkeypatch, tmp_path):
    return ScriptedHub(monkeypatch, tmp_path)


def find(model, revision=None, progress=lambda _: None):
    return find_model(model, revision, progress)


@pytest.mark.parametrize(
    ("model", "file"),
    [
        ("acme/judge-GGUF", "m-Q8_0.gguf"),
        ("acme/judge-GGUF:q2_k", "m-Q2_K.gguf"),
        ("acme/judge-GGUF:Q4_K", "sub/m-Q4_K.gguf"),
        ("acme/judge-GGUF/sub/other.gguf", "sub/other.gguf"),
    ],
)
def test_a_name_means_one_file_of_a_repository(scripted, model, file):
    found = find(model, "abc123")
    assert [("acme/judge-GGUF", file, "abc123")] == scripted.asked
    assert (scripted.folder / file, "acme/judge-GGUF", False) == (found.path, found.public_name, found.demo)


def test_the_only_file_needs_no_choice(scripted):
    scripted.files = ["m-IQ3_XXS.gguf"]
    find("acme/judge")
    assert [("acme/judge", "m-IQ3_XXS.gguf", None)] == scripted.asked


def test_all_parts_of_a_split_model_are_downloaded(scripted):
    scripted.files = [f"m-Q8_0-0000{n}-of-00003.gguf" for n in (3, 2, 1)]
    found = find("acme/judge")
    assert [f"m-Q8_0-0000{n}-of-00003.gguf" for n in (1, 2, 3)] == [file for _, file, _ in scripted.asked]
    assert "m-Q8_0-00001-of-00003.gguf" == found.path.name


def test_a_download_reports_in_lines_and_draws_nothing(scripted, capfd):
    said = []
    find("acme/judge:Q8_0", "main", said.append)
    assert "looking for m-Q8_0.gguf of acme/judge at revision main" == said[0]
    assert [f"downloading m-Q8_0.gguf: {percent}% of 0 MB" for percent in range(0, 101, 5)][-1] == said[-1]
    assert len(said) <= 22
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize(
    ("files", "model", "complaint"),
    [
        (["README.md", "model.safetensors"], "acme/judge", "has no .gguf file; llama.cpp needs one"),
        (["a-IQ2.gguf", "b-IQ3.gguf"], "acme/judge", "several and none of the usual ones.*a-IQ2.gguf, b-IQ3.gguf"),
        (FILES, "acme/judge:Q5_K_M", "none that matches 'Q5_K_M'.*acme/judge/FILE.gguf.*m-Q2_K.gguf"),
        ([f"{n:02}.gguf" for n in range(25)], "acme/judge:Q8_0", "19.gguf and 5 more"),
    ],
)
def test_a_choice_that_cannot_be_made_lists_what_there_is(scripted, files, model, complaint):
    scripted.files = files
    with pytest.raises(StartupError, match=complaint):
        find(model)


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (
            RepositoryNotFoundError("x", response=RESPONSE),
            "there is no Hugging Face repository acme/judge, or it is private",
        ),
        (GatedRepoError("x", response=RESPONSE), "is gated: accept its terms.*HF_TOKEN"),
        (RevisionNotFoundError("x", response=RESPONSE), "revision: .*has no revision 'v9'"),
        (EntryNotFoundError("x"), "has no file 'm-Q8_0.gguf'"),
        (
            LocalEntryNotFoundError("x"),
            "the Hugging Face Hub cannot be reached, and acme/judge at revision v9 is not in",
        ),
        (HfHubHTTPError("429 Too Many Requests", response=RESPONSE), "downloading from .* failed: 429 Too Many"),
        (httpx.ConnectError("no route"), "downloading from .* failed: no route"),
        (OSError(28, "No space left on device"), "failed: .*No space left on device"),
    ],
)
def test_a_failed_download_says_what_is_missing(scripted, error, complaint):
    scripted.error = error
    with pytest.raises(StartupError, match=complaint):
        find("acme/judge:Q8_0", "v9")


@pytest.mark.parametrize("error", [OfflineModeIsEnabled("off"), httpx.ConnectError("no route")])
def test_without_a_network_the_cache_is_listed(scripted, error):
    scripted.listing_error = error
    (scripted.folder / "m-Q8_0.gguf").touch()
    find("acme/judge")
    assert [("acme/judge", "m-Q8_0.gguf", None)] == scripted.asked


def test_without_a_network_and_a_cache_it_says_so(scripted):
    scripted.listing_error = httpx.ConnectError("no route")
    with pytest.raises(StartupError, match="cannot be reached, and acme/judge is not in its cache"):
        find("acme/judge")
