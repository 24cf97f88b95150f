"""The entry points `torch.backends` and `torch.distributed.backends`. The first is called at the end of `import torch`.
From version 2.14 on, PyTorch calls the second when a program names an unknown backend.

If an entry point fails, `import torch` fails, even in programs that do not use Serene. So this module imports only
Python's standard library, and any other error becomes a warning.
"""

from __future__ import annotations

import contextlib
import warnings


def torch_backend() -> None:
    """Registers the backend of ``torch.distributed.init_process_group("serene")``."""
    try:
        import serene.torch  # noqa: F401  importing it registers the backend
    except Exception as error:
        with contextlib.suppress(Exception):  # if warnings are errors
            warnings.warn(
                f"the process group 'serene' is unavailable: import serene.torch failed: "
                f"{type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
