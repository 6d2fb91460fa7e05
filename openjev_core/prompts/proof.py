"""What is checked of a model's tokenizer and template at start.

Prefix and suffixes are tokenized apart, and user text apart from control tokens. Both are right only where the real
tokenizer ends a token at those places anyway, which depends on the model: so it is tried, once, at start.
"""

from __future__ import annotations

from openjev_core.errors import StartupError
from openjev_core.prompts.chat import Prefix, PromptWriter

# One line each would hide that these are one list of awkward beginnings.
OPENINGS = (
    "What is asked?", "is it so", "(a) or (b)?", '"Quoted" words', "'tis", "…and then", "1984 was", "42",
    "-1 or +1", "$5", "#tag", "@name", "/path", "\\n", "*bold*", "_under_", "`code`", "{json}", '{"a":1}', "[1,2]",
    "<tag>", "<|im_end|>", "</think>", "é accent", "\u0301combining",
    "ünïcode", "Ärger", "中文问题", "日本語", "한국어",
    "বাংলা প্রশ্ন", "हिन्दी", "العربية", "עברית", "ไทย", "🙂 emoji", "👩‍👩‍👧 family", "\u200bzero width", "\u00a0nbsp",
    "A: option", "Options:", "Answer:", "x", "I", "",
)  # fmt: skip


def prove(writer: PromptWriter) -> Prefix:
    """Check the seam and the control tokens on the real tokenizer.

    Returns:
        The prefix of a small state, whose ending every prompt of a plain state shares.

    Raises:
        StartupError: Tokenizing in parts does not give what tokenizing the whole gives.
    """
    for state in ("A state.", [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]):
        prefix = writer.write(state)
        encode = writer.tokenizer.encode
        before = _last_plain(writer, prefix.text)
        for opening in OPENINGS:
            if encode(f"{before} {opening}") != encode(before) + encode(f" {opening}"):
                raise StartupError(
                    f"this model's tokenizer does not end a token before a question such as {opening!r}, so prompts "
                    "cannot be shared between questions; choose another model"
                )
        reference = writer.tokenizer.encode(prefix.text, control=True)
        if list(prefix.ids) != reference:
            raise StartupError(
                "this model's tokenizer reads a rendered chat differently when user text and control tokens are "
                f"tokenized apart ({len(prefix.ids)} tokens against {len(reference)}); choose another model"
            )
    # All in one text: Gemma has 6,300 of them, and a tokenizer behind HTTP takes 2 ms a call.
    spelled = frozenset(writer.tokenizer.encode("\n".join(writer.control.ids)))
    for text, token in writer.control.ids.items():
        if token in spelled:
            raise StartupError(f"the control token {text!r} cannot be kept out of user text; choose another model")
    return writer.write("A state.")


def _last_plain(writer: PromptWriter, text: str) -> str:
    pieces = [piece for piece in writer.control.cut(text, "\0") if isinstance(piece, str)]
    return pieces[-1]
