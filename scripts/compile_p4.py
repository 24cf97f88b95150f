"""Compiles the data plane: both variants, with p4c's output and a digest of their sources in p4src/build.

python scripts/compile_p4.py          # needs p4c-bm2-ss
python scripts/compile_p4.py --check  # needs nothing: does the output belong to the sources?
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "p4src"
BUILD = SOURCES / "build"
MAIN = "v1model/serene.p4"
VARIANTS = {"serene": 5, "serene_jumbo": 14}  # FIELDS: 2048-bit fields a packet carries
COMPILER = "p4c-bm2-ss"


def digest(variant: str) -> str:
    """SHA-256 over everything that shapes a variant's output: the sources that v1model uses, and FIELDS."""
    total = hashlib.sha256(f"FIELDS={VARIANTS[variant]}\n".encode())
    for folder in ("include", "v1model"):
        for path in sorted((SOURCES / folder).glob("*.p4")):
            total.update(f"{path.relative_to(SOURCES)}\n".encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def outdated() -> list[str]:
    """Variants whose committed output is not of the sources as they are."""
    return [
        variant
        for variant in VARIANTS
        if not (BUILD / f"{variant}.sha256").is_file()
        or (BUILD / f"{variant}.sha256").read_text().strip() != digest(variant)
    ]


def compile_all(compiler: str) -> None:
    for variant, fields in VARIANTS.items():
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
            names = [f"{variant}.json", f"{variant}.p4info.txtpb"]
            json, p4info = (Path(scratch, name) for name in names)
            # From p4src, so that the output names no path of this machine.
            subprocess.run(
                [compiler, "--target", "bmv2", "--arch", "v1model", f"-DFIELDS={fields}",
                 "--p4runtime-files", str(p4info), "-o", str(json), MAIN],
                cwd=SOURCES, check=True,
            )  # fmt: skip
            for name in names:
                Path(scratch, name).replace(BUILD / name)
        (BUILD / f"{variant}.sha256").write_text(digest(variant) + "\n")
        print(f"p4src/build/{variant}.json, {variant}.p4info.txtpb")


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        stale = outdated()
        if stale:
            print(f"error: p4src changed, the output of {', '.join(stale)} did not: run 'make p4'", file=sys.stderr)
        return 1 if stale else 0
    compiler = shutil.which(COMPILER)
    if compiler is None:
        print(f"error: {COMPILER} is not installed (p4lang's p4c, its BMv2 backend); p4src/build is as it was",
              file=sys.stderr)  # fmt: skip
        return 1
    try:
        compile_all(compiler)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
