"""A model's own chat template: rendering it, and finding out what it takes.

Templates come from model repositories, so they run in a sandbox (:mod:`openjev_core.prompts.sandbox`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from attrs import frozen

from openjev_core.backends.protocol import ChatTemplate
from openjev_core.errors import StartupError
from openjev_core.prompts.bounds import TemplateRefusal, bounds_for
from openjev_core.prompts.counting import counted
from openjev_core.prompts.sandbox import BOUNDS, sandbox

Message = dict[str, Any]


@frozen
class Renderer:
    """A compiled chat template."""

    _source: str
    _template: jinja2.Template
    _special: Mapping[str, str]

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt text up to where the assistant's answer begins, thinking off.

        Raises:
            TemplateRefusal: The template raised, or does more than a template may.
        """
        # `enable_thinking` and `thinking` are the two names by which templates let it be switched off.
        variables = {
            "messages": messages,
            "tools": None,
            "documents": None,
            "add_generation_prompt": True,
            "enable_thinking": False,
            "thinking": False,
            **self._special,
            BOUNDS: bounds_for(messages, self._source),
        }
        try:
            return self._template.render(variables)
        except TemplateRefusal:
            raise
        except RecursionError as error:
            raise TemplateRefusal("the messages are nested too deep") from error
        except Exception as error:
            # Templates index and concatenate whatever they are given, so any exception is their way to say no.
            raise TemplateRefusal(str(error) or type(error).__name__) from error


def compile_template(template: ChatTemplate) -> Renderer:
    """Compile a chat template.

    Raises:
        StartupError: It is no valid Jinja.
    """
    try:
        compiled = counted(sandbox(), template.source)
    except RecursionError:
        raise StartupError(
            "the model's chat template is nested too deep to be compiled; choose another model"
        ) from None
    except Exception as error:
        # Templates come from model repositories. Python's compiler, to which Jinja hands its own code, refuses some
        # that Jinja takes: SyntaxError for 200 brackets in one another, MemoryError, ValueError for a null character.
        raise StartupError(f"the model's chat template is not valid Jinja: {error}; choose another model") from error
    return Renderer(template.source, compiled, {"bos_token": template.bos_token, "eos_token": template.eos_token})


@frozen(kw_only=True)
class Traits:
    """What a template can take.

    Attributes:
        takes_two_user_turns: A user turn may follow a user turn.
        takes_two_system_turns: A system turn may follow a system turn that stands first.
        takes_parts: A message's content may be an array of text parts.
        takes_null: A message's content may be null.
        shows_tool_calls: ``tool_calls`` of a message without words are written out.
        shows_calls_with_words: ``tool_calls`` and ``content`` of one message are both written out.
        knows_developer: The role ``developer`` has a form of its own.
        shows_reasoning: ``reasoning_content`` of a message without words is written out.
    """

    takes_two_user_turns: bool = True
    takes_two_system_turns: bool = True
    takes_parts: bool = True
    takes_null: bool = True
    shows_tool_calls: bool = True
    shows_calls_with_words: bool = True
    knows_developer: bool = True
    shows_reasoning: bool = True


def traits_of(renderer: Renderer) -> Traits:
    """What a template can take, found out by trying it on small chats."""
    first, second, third = "sentinel-one", "sentinel-two", "sentinel-three"

    def rendered(*messages: Message) -> str | None:
        try:
            return renderer.render(list(messages))
        except TemplateRefusal:
            return None

    def user(content: Any) -> Message:
        return {"role": "user", "content": content}

    def system(content: Any) -> Message:
        return {"role": "system", "content": content}

    def assistant(content: Any, **more: Any) -> Message:
        return {"role": "assistant", "content": content, **more}

    def shows(text: str | None, *words: str) -> bool:
        return text is not None and all(word in text for word in words)

    call = {"id": "call_1", "type": "function", "function": {"name": first, "arguments": {"key": third}}}
    # A template that knows strings only may write another value in Python's notation: what counts is the same text.
    in_parts, as_text = rendered(user([{"type": "text", "text": first}])), rendered(user(first))
    with_null, with_empty = (rendered(user(first), assistant(content), user(second)) for content in (None, ""))
    # A template that writes any role alike was not made for this one.
    developer, nobody = (rendered({"role": role, "content": first}, user(second)) for role in ("developer", "nobody"))
    return Traits(
        takes_two_user_turns=shows(rendered(user(first), user(second)), first, second),
        takes_two_system_turns=shows(rendered(*map(system, (first, second)), user(third)), first, second, third),
        takes_parts=in_parts is not None and in_parts == as_text,
        takes_null=with_null is not None and with_null == with_empty,
        shows_tool_calls=shows(rendered(user("x"), assistant("", tool_calls=[call]), user("x")), first, third),
        shows_calls_with_words=shows(
            rendered(user("x"), assistant(second, tool_calls=[call]), user("x")), first, second, third
        ),
        knows_developer=shows(developer, first) and str(developer).replace("developer", "nobody") != nobody,
        shows_reasoning=shows(rendered(user(first), assistant("", reasoning_content=third), user(second)), third),
    )
