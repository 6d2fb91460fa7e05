"""Launch profiles: what SGLang needs to serve one model on one kind of machine, as one record each."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from openjev_core.errors import SettingsError
from openjev_core.settings import Settings


@frozen(kw_only=True)
class Profile:
    """How SGLang serves one model.

    Attributes:
        name: The value of ``OPENJEV_PROFILE`` that selects it.
        summary: One line for a person.
        model: Hugging Face name of the weights.
        revision: The revision that was tested; ``None`` for the newest.
        public_name: The model id that clients see.
        image: Container image that has SGLang, ``None`` where there is none.
        gpu: The accelerator that a deployment asks for.
        memory: Main memory that a deployment asks for, in MiB.
        flags: SGLang's flags, by name; a switch has ``None``. Context length, address, names and paths are not among
            them: they follow from the settings.
        environment: Variables for SGLang's process.
        preset: Settings that differ from the defaults. Flags and environment win over them.
    """

    name: str
    summary: str
    model: str
    revision: str | None = None
    public_name: str
    image: str | None = None
    gpu: str | None = None
    memory: int | None = None
    flags: Mapping[str, str | None] = field(factory=dict)
    environment: Mapping[str, str] = field(factory=dict)
    preset: Mapping[str, Any] = field(factory=dict)


QWEN36 = Profile(
    name="qwen36",
    summary="Qwen3.6-35B-A3B in NVFP4 on one B200",
    model="nvidia/Qwen3.6-35B-A3B-NVFP4",
    revision="1355db6a052410cfd62085d94b58866fd0f2c3c5",
    public_name="Qwen/Qwen3.6-35B-A3B",
    image="lmsysorg/sglang:v0.5.19-cu130",
    gpu="B200",
    memory=65_536,
    flags={
        "--attention-backend": "trtllm_mha",
        "--kv-cache-dtype": "fp8_e4m3",
        "--moe-runner-backend": "flashinfer_cutlass",
        "--mem-fraction-static": "0.8",
        # A hybrid model keeps the state of its linear layers at every 64th token: with this a warmed prefix serves.
        "--mamba-radix-cache-strategy": "extra_buffer",
        # Suffixes are short and vary in length: this captures the prefill of many lengths.
        "--cuda-graph-backend-prefill": "breakable",
        # The one output token comes out of the prefill; graphs for decoding would be captured for nothing.
        "--cuda-graph-max-bs-decode": "8",
        "--language-model-only": None,
    },
)

SMOLLM2_CPU = Profile(
    name="smollm2-cpu",
    summary="SmolLM2-135M in float32 on a CPU: shows the plumbing, answers poorly",
    model="HuggingFaceTB/SmolLM2-135M-Instruct",
    public_name="HuggingFaceTB/SmolLM2-135M-Instruct",
    flags={
        "--device": "cpu",
        "--attention-backend": "torch_native",
        "--sampling-backend": "pytorch",
        "--dtype": "float32",
        "--mem-fraction-static": "0.3",
        "--max-total-tokens": "16384",
        "--max-running-requests": "16",
        "--disable-overlap-schedule": None,
        "--disable-cuda-graph": None,
        "--sleep-on-idle": None,
    },
    environment={
        "SGLANG_USE_CPU_ENGINE": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "PASSIVE",
        # glibc would hand the large buffers of every pass back to the kernel and ask for them again.
        "MALLOC_MMAP_THRESHOLD_": "4000000000",
        "MALLOC_TRIM_THRESHOLD_": "8000000000",
        "MALLOC_TOP_PAD_": "268435456",
    },
    preset={"max_input_tokens": 2040},
)

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (QWEN36, SMOLLM2_CPU)}


def find_profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        SettingsError: There is none.
    """
    try:
        return PROFILES[name]
    except KeyError:
        close = difflib.get_close_matches(name, PROFILES, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise SettingsError(f"OPENJEV_PROFILE: expected one of {', '.join(PROFILES)}, found {name!r}{hint}") from None


def model_source(settings: Settings, profile: Profile) -> tuple[str, str | None]:
    """Weights and revision: the settings' own, or the profile's. A profile's revision goes with its model alone."""
    if settings.model is None or settings.model == profile.model:
        return profile.model, settings.revision or profile.revision
    return settings.model, settings.revision
