"""Whether a chat template shows all of a chat.

Some templates drop messages that they have no form for, and some cut words out of a message. An answer about what is
left would be wrong without a sign of it, so such a chat is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from openjev_core.errors import Loc, RequestError
from openjev_core.prompts.template import Message


def shadow_of(messages: Sequence[Message], mark: str) -> tuple[list[Message], list[tuple[Loc, str]]]:
    """The messages with a word of its own in place of each text, and each text's path and word."""
    words: list[tuple[Loc, str]] = []

    def word_for(loc: Loc, text: str) -> str:
        if not text.strip():
            return text  # templates may treat empty text in a way of its own, and there is nothing to lose
        words.append((loc, f"word{len(words)}{mark}"))
        return words[-1][1]

    shadow = []
    for index, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, list):
            parts = [
                {**part, "text": word_for((index, "content", position), part["text"])}
                for position, part in enumerate(content)
            ]
            shadow.append({**message, "content": parts})
        elif isinstance(content, str):
            shadow.append({**message, "content": word_for((index,), content)})
        else:
            shadow.append(message)
    return shadow, words


def check_words(rendered: str, words: Sequence[tuple[Loc, str]], loc: Loc) -> None:
    """Refuse a chat of whose shadow a word is missing in the rendered text.

    Raises:
        RequestError: At the message or part that the template drops.
    """
    position = 0
    for inner, word in words:
        # From the one before on first: to search all of a long chat for each of its messages would take for ever.
        found = rendered.find(word, position)
        if found < 0 and word not in rendered:
            what = "message" if len(inner) == 1 else "part"
            msg = f"the model's chat template does not show this {what}, so it cannot be judged"
            raise RequestError.at((*loc, *inner), msg, "template_refusal")
        position = max(position, found)


def check_texts(rendered: str, messages: Sequence[Message], loc: Loc) -> None:
    """Refuse a chat of which the rendered text does not hold every text whole.

    Outer white space does not count, and a template may write a text as a JSON string.

    Raises:
        RequestError: At the message or part of which the template leaves something out.
    """
    position = 0
    for inner, text in texts_of(messages):
        found = find_text(rendered, text, position)
        if found < 0 and find_text(rendered, text, 0) < 0:  # a template may move the system message
            msg = "the model's chat template does not show this text whole, so it cannot be judged"
            raise RequestError.at((*loc, *inner), msg, "template_refusal")
        position = max(position, found)


def find_text(rendered: str, text: str, start: int) -> int:
    """Where a text stands in the rendered one from ``start`` on, as it is or as a JSON string; -1 when nowhere."""
    found = rendered.find(text, start)
    if found < 0:
        found = rendered.find(json.dumps(text, ensure_ascii=False)[1:-1], start)
    return found if found >= 0 else rendered.find(json.dumps(text)[1:-1], start)


def texts_of(messages: Sequence[Message]) -> Iterator[tuple[Loc, str]]:
    """Every text of a chat without its outer white space, with its path in the chat; empty ones left out."""
    for index, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, str) and content.strip():
            yield (index,), content.strip()
        elif isinstance(content, list):
            for position, part in enumerate(content):
                if part["text"].strip():
                    yield (index, "content", position), part["text"].strip()
