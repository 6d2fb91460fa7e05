"""Fitted corrections to label logprobs: what a calibration file says and how it is applied.

Fitting is not done here; this module reads a file and knows the formula. For a readout of question type ``t`` with
``n`` options, an option's score is ``logprob / temperature + bias[label]``, and the probabilities are the softmax of
the scores (Guo et al. 2017, temperature scaling; a bias per label makes it vector scaling restricted to labels). Where
several orders are read, each is corrected, then they are averaged; so a fit holds for the orders that it was made with,
and likewise for logprobs with or without their prior divided out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from attrs import field, frozen

from openjev_core.errors import StartupError

FORMAT = 1

LEAST_TEMPERATURE = 0.001
"""Below it logprobs divided by it would no longer be numbers to tell apart; fits stay far above."""


@frozen(kw_only=True)
class Correction:
    """What was fitted for one question type, or for one number of options of it.

    Attributes:
        temperature: Divides the label logprobs; above 0.
        bias: Label text to what is added to its score, in nats; 0 for labels that are not named.
        rows: How many labelled readouts it was fitted on.
    """

    temperature: float
    bias: Mapping[str, float] = field(factory=dict)
    rows: int = 0


@frozen(kw_only=True)
class TypeCalibration:
    """The corrections of one question type.

    Attributes:
        prompt: Digest of the prompts that the type wrote when it was fitted.
        any: For every number of options that has no correction of its own.
        by_options: Number of options to its own correction.
    """

    prompt: str
    any: Correction
    by_options: Mapping[str, Correction] = field(factory=dict)

    def for_options(self, count: int) -> Correction:
        """The correction for a readout of ``count`` options."""
        return self.by_options.get(str(count), self.any)


@frozen(kw_only=True)
class Calibration:
    """A calibration file.

    Attributes:
        format: Of the file: 1.
        model: Public name of the model that it was fitted on.
        template: Digest of that model's chat template.
        orders: How many orders each readout was read in.
        prior: Whether the label prior was divided out first.
        types: Question type name to its corrections.
    """

    format: int
    model: str
    template: str
    orders: int | Literal["full"]
    prior: Literal["off", "contentless"]
    types: Mapping[str, TypeCalibration]


def read_calibration(path: str) -> Calibration:
    """Read a calibration file.

    Raises:
        StartupError: It is missing, is no calibration file, or holds a number that makes no sense.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise StartupError(f"OPENJEV_CALIBRATION: {path}: {error.strerror}; `openjev calibrate` writes one") from error
    try:
        calibration = msgspec.json.decode(content, type=Calibration)
    except msgspec.DecodeError as error:
        raise StartupError(f"OPENJEV_CALIBRATION: {path} is no calibration file: {error}") from error
    if calibration.format != FORMAT:
        raise StartupError(f"OPENJEV_CALIBRATION: {path} has format {calibration.format}; this openjev reads {FORMAT}")
    for name, entry in calibration.types.items():
        for correction in (entry.any, *entry.by_options.values()):
            numbers = (correction.temperature, *correction.bias.values())
            if correction.temperature < LEAST_TEMPERATURE or not all(map(math.isfinite, numbers)):
                least = f"a temperature below {LEAST_TEMPERATURE:g}"
                raise StartupError(
                    f"OPENJEV_CALIBRATION: {path}: a correction of {name!r} has {least} or a number that is not finite"
                )
    return calibration


def write_calibration(calibration: Calibration, path: str) -> None:
    """Write a calibration file, for people to read too.

    Raises:
        StartupError: It cannot be written.
    """
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n")
    except OSError as error:
        raise StartupError(f"{path}: cannot be written: {error.strerror or error}") from error


def digest(*parts: str) -> str:
    """Names texts that a calibration depends on."""
    # Each part's length stands before it, so that moving a border between parts changes the digest.
    framed = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(framed.encode("utf-8", "surrogatepass")).hexdigest()[:32]
