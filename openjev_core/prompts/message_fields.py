"""The fields of messages, parts and calls in which programs keep something else than words for the model.

A field that is not known to be shown, and not known to say something about its message, may hold the words that decide.
So it is refused by its name, and never passed over.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

from openjev_core.errors import MAX_PROBLEMS, Problem

REASONING = (
    "reasoning_content",
    "reasoning",
    "thinking",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
    "thought",
    "thoughts",
)
"""Fields of a message that hold what a model thought before it spoke, by the names of several servers and proxies."""

UNSHOWN = (
    "attachment",
    "attachments",
    "experimental_attachments",
    "file",
    "files",
    "document",
    "documents",
    "image",
    "images",
    "image_url",
    "image_urls",
    "media",
    "video",
    "videos",
    "video_url",
    "audio_url",
    "toolInvocations",
)
"""Fields of a message that are refused even where it has no content: their words would not be those of a chat."""

ABOUT = frozenset(
    (  # noqa: SIM905 - a line for each would hide the groups
        # ids, and what they link to
        "id _id uuid message_id messageId item_id request_id run_id user_id call_id tool_call_id toolCallId "
        "tool_use_id parent_id parentId parentUuid childrenIds thread_id threadId conversation_id conversationId "
        "session_id sessionId "
        # times, kinds and states
        "created created_at createdAt updated_at updatedAt timestamp ts date time type object index name status state "
        "phase channel done partial prefix weight train end_turn is_error strict format example finish_reason "
        "finishReason stop_reason stopReason done_reason "
        # where it comes from, and what protocols add
        "model model_name modelName model_id modelId provider usage usage_metadata token_count logprobs annotations "
        "citations metadata response_metadata cache_control prompt_cache_breakpoint signature thought_signature "
        "encrypted_content extra_content provider_specific_fields provider_metadata providerMetadata providerOptions "
        "callProviderMetadata"
    ).split()
)
"""Fields that say something about a message, a part or a call, and hold none of its words."""

SECRET = frozenset({"data", "summary_index"})
"""Fields of a thought that no one can read."""


def unshown_problems(fields: Mapping[str, Any], shown: Collection[str]) -> list[Problem]:
    """Fields that hold something that would not reach the model; no more than are shown.

    Args:
        fields: Of a message, a part or a call.
        shown: Names of those that are shown, or that others look after.
    """
    msg = "does not reach the model: put its words into content, or leave the field out"
    unshown = (name for name, value in fields.items() if value and name not in shown and name not in ABOUT)
    return [Problem((name,), msg, "unsupported_content") for name in islice(unshown, MAX_PROBLEMS + 1)]


def thought_in(value: Any) -> str:
    """What a field of thoughts says, as one text: a text, or blocks of whatever shape without what is encrypted."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        value = [inner for name, inner in value.items() if name not in ABOUT and name not in SECRET]
    return "\n".join(filter(None, map(thought_in, value))) if isinstance(value, list) else ""
