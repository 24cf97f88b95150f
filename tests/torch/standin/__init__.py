"""Makes PyTorch's device ``standin`` known, an accelerator in the host's memory (device.cpp). Compiled once for each
content, into the cache of compiled libraries."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from torch.utils import backend_registration, cpp_extension

from serene.native.cache import in_cache, safe_cache

SOURCE = Path(__file__).with_name("device.cpp")


def _compiled() -> Path:
    digest = hashlib.blake2b(SOURCE.read_bytes() + torch.__version__.encode(), digest_size=8).hexdigest()
    built = safe_cache() / f"serene-standin-{digest}.so"
    if not in_cache(built):
        part = built.with_suffix(f".{os.getpid()}")
        includes = [f"-I{path}" for path in cpp_extension.include_paths()]
        libraries = [f"-L{path}" for path in cpp_extension.library_paths()]
        subprocess.run(
            ["g++", "-std=c++20", "-O0", "-w", "-fPIC", "-shared", "-DAT_PER_OPERATOR_HEADERS", *includes, str(SOURCE),
             "-o", str(part), *libraries, "-lc10", "-ltorch_cpu"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        part.rename(built)
    return built


class _Standin(ModuleType):
    """The functions that PyTorch calls in ``torch.standin``."""

    is_available = staticmethod(lambda: True)
    is_initialized = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 1)
    current_device = staticmethod(lambda: 0)
    set_device = staticmethod(lambda device: None)
    _is_in_bad_fork = staticmethod(lambda: False)
    manual_seed_all = staticmethod(lambda seed: None)


backend_registration.rename_privateuse1_backend("standin")
torch._register_device_module("standin", _Standin("standin"))  # type: ignore[no-untyped-call]
backend_registration.generate_methods_for_privateuse1_backend()
_library = ctypes.CDLL(str(_compiled()))
_library.serene_fill_later.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_double]
_filled: list[Tensor] = []


def fill_later(values: Tensor, value: float, seconds: float) -> None:
    """Enqueues in the current stream: after so many seconds the values, float32 and contiguous, are ``value`` each."""
    _filled.append(values)  # stays in memory
    _library.serene_fill_later(values.data_ptr(), values.numel(), value, seconds)
