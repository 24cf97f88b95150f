"""The installed distribution's name and version, and the package's folder."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

NAME = "serene-p4"  # `serene` is another project's on PyPI
PACKAGE = Path(__file__).resolve().parent


def version() -> str:
    """The installed version. Raises importlib.metadata.PackageNotFoundError in a checkout that was not installed."""
    return metadata.version(NAME)


def to_install(extra: str) -> str:
    """The command that installs the packages of an extra of pyproject.toml."""
    return f"pip install '{NAME}[{extra}]'"
