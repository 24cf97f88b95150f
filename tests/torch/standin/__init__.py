"""Makes PyTorch's device ``standin`` known, an accelerator in the host's memory (device.cpp). Compiled once, in
``build``, by the first process that imports this."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sysconfig
from pathlib import Path
from types import ModuleType

import torch
from torch.utils import backend_registration, cpp_extension

SOURCE = Path(__file__).with_name("device.cpp")
NAME = "serene_standin"


def _compiled() -> Path:
    digest = hashlib.blake2b(SOURCE.read_bytes() + torch.__version__.encode(), digest_size=8).hexdigest()
    built = Path(__file__).resolve().parents[3] / "build" / f"{NAME}-{digest}.so"
    if not built.exists():
        built.parent.mkdir(exist_ok=True)
        part = built.with_suffix(f".{os.getpid()}")
        includes = [f"-I{path}" for path in (*cpp_extension.include_paths(), sysconfig.get_paths()["include"])]
        libraries = [f"-L{path}" for path in cpp_extension.library_paths()]
        subprocess.run(
            ["g++", "-std=c++20", "-O0", "-w", "-fPIC", "-shared", f"-DTORCH_EXTENSION_NAME={NAME}", *includes,
             str(SOURCE), "-o", str(part), *libraries, "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        part.rename(built)
    return built


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(NAME, _compiled())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Standin(ModuleType):
    """What PyTorch asks of ``torch.standin``."""

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
fill_later = _module().fill_later
