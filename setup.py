"""Which packages a wheel has, and from which folders. pyproject.toml has the rest.

All are parts of `serene`, so that none hides a user's own `controller` or `workers`. The repository's folders lie side
by side, and symbolic links in `serene` give them these names there. A wheel is made from the folders themselves,
because an archive may have lost the links.
"""

from setuptools import find_packages, setup

PARTS = ("controller", "experiments", "topologies", "workers")
OURS = [package for name in PARTS for package in find_packages(include=[name, f"{name}.*"])]

setup(
    packages=[
        *find_packages(include=["serene", "serene.*"], exclude=[f"serene.{name}*" for name in PARTS]),
        *[f"serene.{package}" for package in OURS],
        "serene.p4",  # what p4c made of p4src
    ],
    package_dir={"serene.p4": "p4src/build", **{f"serene.{name}": name for name in PARTS}},
)
