"""Which folders a wheel has: the packages, and as `serene/p4` what p4c made of `p4src`; pyproject.toml has the rest.

They keep their names in it. Another name for a folder (``package_dir``) would not change what the sources import.
"""

from setuptools import find_packages, setup

OURS = ("serene", "controller", "workers", "topologies", "experiments")

setup(
    packages=[*find_packages(include=[pattern for name in OURS for pattern in (name, f"{name}.*")]), "serene.p4"],
    package_dir={"serene.p4": "p4src/build"},
)
