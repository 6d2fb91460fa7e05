"""openjev: typed questions about a state, answered with probabilities read from a model's first output token.

What stands here is public: the plugin contract, the engine for library use, and the errors.
"""

from __future__ import annotations

from openjev_core.errors import InvalidQuestion, OpenJevError, RequestError
from openjev_core.observation import FinishedEvaluation
from openjev_core.plugins.hookspecs import hookimpl
from openjev_core.question import (
    CONTRACT_VERSION,
    Content,
    Distribution,
    Option,
    QuestionType,
    Readout,
    content_text,
    standard_suffix,
)

__all__ = [
    "CONTRACT_VERSION",
    "Content",
    "Distribution",
    "FinishedEvaluation",
    "InvalidQuestion",
    "OpenJevError",
    "Option",
    "QuestionType",
    "Readout",
    "RequestError",
    "content_text",
    "hookimpl",
    "standard_suffix",
]
