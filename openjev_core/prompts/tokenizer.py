"""The tokenizer of a Hugging Face model, through the ``tokenizers`` library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from tokenizers import Tokenizer as HfTokenizer

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.errors import StartupError
from openjev_core.prompts.pieces import Pieces, pieces_of

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
MAX_FILE = 256 * 2**20
"""Bytes of one of them. The largest tokenizer.json of a model has some 35 MB."""


@frozen
class PlainTokenizer:
    """A tokenizer in two forms: as its model has it, and one that knows no control or added token.

    The library's ``encode_special_tokens`` covers tokens marked special only. Tokens such as ``<think>`` are added
    without that mark, so the plain form is built without any added token.
    """

    _plain: HfTokenizer
    _whole: HfTokenizer
    _pieces: Pieces | None
    control_tokens: Mapping[str, int]
    vocab_size: int

    def encode(self, text: str, *, control: bool = False) -> list[int]:
        """Token ids; see :class:`~openjev_core.backends.protocol.Tokenizer`."""
        if self._pieces is not None and not control:
            return self._pieces.encode(text)
        # A batch of one: the fast form, which leaves out each token's place in the text, exists for batches alone.
        form = self._whole if control else self._plain
        ids: list[int] = form.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``."""
        text: str = self._whole.decode(list(ids), skip_special_tokens=False)
        return text


def load_tokenizer(source: str, revision: str | None = None) -> tuple[PlainTokenizer, ChatTemplate]:
    """Load a model's tokenizer and chat template.

    Args:
        source: A directory that holds ``tokenizer.json``, or a Hugging Face name.
        revision: A revision of the latter.

    Raises:
        StartupError: They are not there, or cannot be read.
    """
    directory = tokenizer_directory(source, revision)
    definition = _read_json(directory / "tokenizer.json")
    config = _read_json(directory / "tokenizer_config.json") if (directory / "tokenizer_config.json").exists() else {}
    return tokenizer_from(definition), _chat_template(directory, config)


def tokenizer_directory(source: str, revision: str | None = None) -> Path:
    """The local directory of a model's tokenizer: ``source`` itself, or what is fetched from the model hub.

    Raises:
        StartupError: It is no directory and cannot be fetched.
    """
    try:
        is_directory = Path(source).is_dir()
    except OSError as error:
        raise StartupError(f"model: cannot read {source[:200]!r}: {error.strerror}") from None
    return Path(source) if is_directory else _download(source, revision)


def tokenizer_from(definition: Mapping[str, Any]) -> PlainTokenizer:
    """Build both forms from the content of a ``tokenizer.json``."""
    added = definition.get("added_tokens") or []
    plain = {**definition, "added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    whole = {**definition, "truncation": None, "padding": None}
    try:
        whole_form = HfTokenizer.from_str(json.dumps(whole))
        plain_form = HfTokenizer.from_str(json.dumps(plain))
    except Exception as error:
        raise StartupError(f"tokenizer.json cannot be read by the tokenizers library: {error}") from error
    return PlainTokenizer(
        plain_form,
        whole_form,
        pieces_of(plain, plain_form),
        {token["content"]: token["id"] for token in added},
        # Ids need not be dense: the vocabulary ends after the highest one.
        max(whole_form.get_vocab(with_added_tokens=True).values()) + 1,
    )


def _chat_template(directory: Path, config: Mapping[str, Any]) -> ChatTemplate:
    path = directory / "chat_template.jinja"
    if path.exists():
        try:
            source = _read(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise StartupError(f"{path} is no UTF-8: {error.reason} at byte {error.start}") from None
    else:
        source = _template_in(config.get("chat_template"), directory)
    return ChatTemplate(source, _token_text(config.get("bos_token")), _token_text(config.get("eos_token")))


def _template_in(value: Any, directory: Path) -> str:
    """The template in the field ``chat_template`` of a config: text, or a list of named templates."""
    if value is None:
        raise StartupError(
            f"{directory.name}: no chat template, neither chat_template.jinja nor one in tokenizer_config.json; "
            "openjev needs an instruction-tuned model that has one"
        )
    if isinstance(value, list):
        named = [item for item in value if isinstance(item, dict) and item.get("name") == "default"]
        value = named[0].get("template") if named else None
    if not isinstance(value, str):
        raise StartupError(
            f"{directory / 'tokenizer_config.json'}: chat_template: expected text, or a list of objects with name and "
            "template, one of them named default"
        )
    return value


def _token_text(token: Any) -> str:
    if isinstance(token, Mapping):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_read(path))
    except RecursionError:
        raise StartupError(
            f"{path} is nested too deep to be read; download it again, or choose another model"
        ) from None
    except ValueError as error:
        raise StartupError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise StartupError(f"{path} holds no JSON object")
    return content


def _read(path: Path) -> bytes:
    """The bytes of a model's file. A pipe or a device could be read for ever, so only plain files are."""
    if not path.is_file():
        fault = "is no plain file" if path.exists() else "is missing"
        raise StartupError(f"{path} {fault}; name a directory or Hugging Face model that has it")
    try:
        if path.stat().st_size > MAX_FILE:
            raise StartupError(f"{path} has {path.stat().st_size} bytes; at most {MAX_FILE} are read")
        return path.read_bytes()
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error.strerror}") from None


def _download(source: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import, and needed for Hub names alone

    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:
        at = f" at revision {revision}" if revision else ""
        raise StartupError(
            f"the tokenizer of {source!r}{at} is no local directory and could not be fetched from the model hub: "
            f"{type(error).__name__}: {error}; name a directory with tokenizer.json and chat_template.jinja by --model"
        ) from error
