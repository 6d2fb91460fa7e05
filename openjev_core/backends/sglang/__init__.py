"""SGLang over HTTP: warm a prefix once, fan its branches out, survive what the server does."""

from openjev_core.backends.sglang.backend import SGLangBackend
from openjev_core.backends.sglang.opening import open_sglang

__all__ = ["SGLangBackend", "open_sglang"]
