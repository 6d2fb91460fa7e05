"""A GGUF's weights in another format of numbers. Also a command, ``python requantizing.py SOURCE TARGET``.

The command is for a process of its own: numpy and the work take memory that a server would keep, and whatever goes
wrong in there stays in there. It imports nothing of this project, so that it starts without it, and it ends when its
standard input does: with whoever wanted the file.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from pathlib import Path


def requantize(source: Path, target: Path) -> None:
    """Copy a GGUF of the Llama architecture, with its Q4_1 weights as Q8_0. Everything else stays as it is.

    A weight of Q4_1 is one of 16 steps of its block of 32; Q8_0 has 255 steps around zero for the same block, so what
    is lost is at most 0.4% of the block's largest weight.

    Raises:
        ImportError: The ``gguf`` package is not installed.
        OSError: A file cannot be read or written.
    """
    import gguf  # noqa: PLC0415 - of the extra `embedded`, with numpy behind it; needed once on a machine

    four, eight = gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0
    reader, writer = gguf.GGUFReader(source), gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        # The writer has its own of these.
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            element = field.types[-1] if field.types[0] is gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], element)
    for tensor in reader.tensors:
        shape, kind = tensor.data.shape, tensor.tensor_type
        if kind is four:
            shape = gguf.quant_shape_to_byte_shape(gguf.quant_shape_from_byte_shape(shape, four), eight)
            kind = eight
        size = math.prod(shape) * tensor.data.itemsize
        writer.add_tensor_info(tensor.name, shape, tensor.data.dtype, size, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    # One tensor after another: all of them would have to be in memory together.
    for tensor in reader.tensors:
        weights = tensor.data
        if tensor.tensor_type is four:
            weights = gguf.quants.quantize(gguf.quants.dequantize(weights, four), eight)
        writer.write_tensor_data(weights)
    writer.close()


def end_with_input() -> None:
    """End this process at the end of its standard input."""
    # Not through sys.stdin: Python's end waits for who reads there.
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_input, daemon=True).start()
    requantize(Path(sys.argv[1]), Path(sys.argv[2]))
