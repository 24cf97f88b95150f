"""The entry points `torch.backends` and `torch.distributed.backends`. PyTorch calls the first at the end of
`import torch`, and from 2.14 on the second when a program names a backend that it does not know.

An entry point that fails makes `import torch` fail, also for programs that have nothing to do with Serene. So this
module imports nothing but what comes with Python, and whatever is wrong with the rest becomes a warning.
"""

from __future__ import annotations

import contextlib
import warnings


def torch_backend() -> None:
    """Makes ``torch.distributed.init_process_group("serene")`` known."""
    try:
        import serene.torch  # noqa: F401  importing it registers the backend
    except Exception as error:
        with contextlib.suppress(Exception):  # where warnings are errors
            warnings.warn(
                f"the process group 'serene' is unavailable: import serene.torch failed: "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
