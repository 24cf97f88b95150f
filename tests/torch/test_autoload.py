"""`import torch` registers the process group, and works even if Serene's installation is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.commands import run

IS_THERE = "import torch.distributed as dist; print('serene' in dist.Backend.backend_list)"
BROKEN = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise {error}
sys.meta_path.insert(0, Broken())
"""


def python(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, *options, "-c", program, folder=Path("/"))


def test_import_torch_registers_the_process_group() -> None:
    done = python("import torch, sys; print('serene.torch' in sys.modules, 'httpx' in sys.modules); " + IS_THERE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True False\nTrue\n", "")


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14), reason="needs PyTorch 2.14, which looks for backends"
)
def test_process_group_is_found_when_a_program_names_it() -> None:
    """In programs that switch off what `import torch` loads by itself."""
    program = (
        "import os; os.environ['TORCH_DEVICE_BACKEND_AUTOLOAD'] = '0'\n"
        "import torch.distributed as dist\n"
        "print('serene' in dist.Backend.backend_list)\n"
        "dist.init_process_group('serene', store=dist.HashStore(), rank=0, world_size=1)\n"
        "print(dist.get_backend())"
    )
    done = python(program)
    assert (done.returncode, done.stdout) == (0, "False\nserene\n"), done.stderr


def test_broken_installation_does_not_break_torch() -> None:
    program = BROKEN.format(module="serene.torch", error="ValueError('odd')")
    program += "import torch; print(torch.ones(2).sum().item()); "
    done = python(program + IS_THERE)
    assert (done.returncode, done.stdout) == (0, "2.0\nFalse\n"), done.stderr
    assert "the process group 'serene' is unavailable" in done.stderr
    strict = python(program + IS_THERE, "-W", "error::RuntimeWarning")
    assert (strict.returncode, strict.stdout) == (0, "2.0\nFalse\n"), strict.stderr


def test_missing_group_dependency_fails_at_init_process_group() -> None:
    program = BROKEN.format(module="httpx", error="ImportError('no httpx')")
    program += (
        "import torch.distributed as dist\n"
        "dist.init_process_group('serene', store=dist.HashStore(), rank=0, world_size=1)"
    )
    done = python(program)
    assert done.returncode == 1
    assert "ImportError: no httpx" in done.stderr


def test_serene_torch_exports_its_public_names() -> None:
    import serene.torch

    assert {getattr(serene.torch, name).__name__ for name in serene.torch.__all__ if name != "BACKEND"} == {
        "CollectiveFailed", "DistributedOptimizer", "ErrorFeedback", "SwitchGroup", "mean_state",
        "mean_with_residual",
    }  # fmt: skip
    with pytest.raises(AttributeError, match="no attribute 'Reducer'"):
        serene.torch.Reducer  # noqa: B018
