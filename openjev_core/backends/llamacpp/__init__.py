"""llama.cpp over HTTP: in this process through xllamacpp, or a llama-server that someone else runs."""

from openjev_core.backends.llamacpp.backend import LlamaCppBackend
from openjev_core.backends.llamacpp.model import open_llamacpp
from openjev_core.backends.llamacpp.model_file import demo_model_path
from openjev_core.backends.llamacpp.tokenizer import LlamaCppTokenizer

__all__ = ["LlamaCppBackend", "LlamaCppTokenizer", "demo_model_path", "open_llamacpp"]
