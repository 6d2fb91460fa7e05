"""llama.cpp over HTTP: in this process through xllamacpp, or a llama-server that someone else runs."""

from openjev_core.backends.llamacpp.backend import LlamaCppBackend
from openjev_core.backends.llamacpp.demo_model import demo_model_path
from openjev_core.backends.llamacpp.opening import open_llamacpp
from openjev_core.backends.llamacpp.tokenizer import LlamaCppTokenizer

__all__ = ["LlamaCppBackend", "LlamaCppTokenizer", "demo_model_path", "open_llamacpp"]
