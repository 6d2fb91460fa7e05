"""The demo model in a format that llama.cpp computes faster, made once and kept.

It is shipped with weights of 4 bits in the format Q4_1, for which llama.cpp has no routine that multiplies several
tokens at once. The same weights written with 8 bits, Q8_0, have one: 1.6 times as many tokens a second, for a file of
145 MB instead of 93. Other models are taken as they are: what to trade for speed is for whoever chose them to say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from platformdirs import user_cache_path

NAME = "SmolLM2-135M-Instruct.Q8_0.gguf"
SIZE = 144_811_072
SHA256 = "4a197789e71f16d2a0c228684e98def3218e2e324488a5414d46605bf849023d"


def faster_demo_model(path: Path, progress: Callable[[str], None]) -> Path:
    """The demo model's faster form; made at the first call, which takes some seconds. Blocks.

    Args:
        path: The demo model as it is shipped, verified.
        progress: Takes lines for a person.

    Returns:
        ``path`` itself where the faster form cannot be made or kept; `progress` says why.
    """
    kept = user_cache_path("openjev", appauthor=False) / NAME
    try:
        if is_faster_demo_model(kept):
            return kept
        progress(f"writing the demo model in a faster format, once: {kept} (145 MB)")
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as folder:
            written = Path(folder) / NAME
            requantize(path, written)
            if not is_faster_demo_model(written):
                progress("taking the demo model as it is shipped, which is slower: the other did not come out right")
                return path
            written.replace(kept)
    except ImportError as error:
        progress(f"taking the demo model as it is shipped, which is slower: {error.name} is not installed")
    except OSError as error:
        progress(f"taking the demo model as it is shipped, which is slower: {error}")
    else:
        return kept
    return path


def is_faster_demo_model(path: Path) -> bool:
    """Whether a file is the faster form, byte for byte; takes 0.1 s where its size fits.

    Raises:
        OSError: It cannot be read.
    """
    if not path.is_file() or path.stat().st_size != SIZE:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def requantize(path: Path, written: Path) -> None:
    """Copy a GGUF of the Llama architecture, with its Q4_1 weights as Q8_0.

    Raises:
        ImportError: The ``gguf`` package is not installed.
        OSError: A file cannot be read or written.
    """
    import gguf  # noqa: PLC0415 - it is an extra, brings numpy, and is needed once

    four, eight = gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0
    source, target = gguf.GGUFReader(path), gguf.GGUFWriter(written, "llama")
    for field in source.fields.values():
        # The writer has its own of these.
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            element = field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
            target.add_key_value(field.name, field.contents(), field.types[0], element)
    for tensor in source.tensors:
        weights, kind = tensor.data, tensor.tensor_type
        if kind is four:
            weights, kind = gguf.quants.quantize(gguf.quants.dequantize(weights, four), eight), eight
        target.add_tensor(tensor.name, weights, raw_dtype=kind)
    target.write_header_to_file()
    target.write_kv_data_to_file()
    target.write_tensors_to_file()
    target.close()
