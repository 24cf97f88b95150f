"""Compiles the data plane: all variants, with p4c's output and digests of both in p4src/build.

python scripts/compile_p4.py          # needs p4c-bm2-ss
python scripts/compile_p4.py --check  # needs nothing: is the output of the sources, and as the compiler wrote it?
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
# Top file, and FIELDS: 2048-bit fields a packet carries.
VARIANTS = {
    "serene": ("v1model/serene.p4", 5),
    "serene_jumbo": ("v1model/serene.p4", 14),
    "serene_leaf": ("v1model/serene_leaf.p4", 5),
    "serene_root": ("v1model/serene_root.p4", 5),
}
COMPILER = "p4c-bm2-ss"


def output(variant: str) -> list[str]:
    """The names of what p4c writes."""
    return [f"{variant}.json", f"{variant}.p4info.txtpb"]


def stamp(variant: str) -> str:
    """SHA-256 over everything that shapes a variant's output, the sources that v1model uses, top file and FIELDS; and
    over the output itself."""
    main, fields = VARIANTS[variant]
    total = hashlib.sha256(f"{main} FIELDS={fields}\n".encode())
    for folder in ("include", "v1model"):
        for path in sorted((SOURCES / folder).glob("*.p4")):
            total.update(f"{path.relative_to(SOURCES)}\n".encode())
            total.update(path.read_bytes())
    written = hashlib.sha256()
    for name in output(variant):
        written.update(f"{name}\n".encode())
        written.update((BUILD / name).read_bytes())
    return f"sources {total.hexdigest()}\noutput {written.hexdigest()}\n"


def wrong(variant: str) -> str:
    """What has changed since p4c wrote a variant's output; empty if nothing has."""
    files = [BUILD / f"{variant}.sha256", *(BUILD / name for name in output(variant))]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        return f"{' and '.join(missing)} of {variant} missing"
    there, expected = files[0].read_text().split("\n"), stamp(variant).split("\n")
    if there[0] != expected[0]:
        return f"the sources of {variant} changed, its output did not"
    return "" if there == expected else f"the output of {variant} is not as the compiler wrote it"


def compile_all(compiler: str) -> None:
    for variant, (main, fields) in VARIANTS.items():
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
            names = output(variant)
            json, p4info = (Path(scratch, name) for name in names)
            # From p4src, so that the output names no path of this machine. The root uses some of the sizes only.
            subprocess.run(
                [compiler, "--target", "bmv2", "--arch", "v1model", f"-DFIELDS={fields}", "--Wdisable=unused",
                 "--p4runtime-files", str(p4info), "-o", str(json), main],
                cwd=SOURCES, check=True,
            )  # fmt: skip
            for name in names:
                Path(scratch, name).replace(BUILD / name)
        (BUILD / f"{variant}.sha256").write_text(stamp(variant))
        print(f"p4src/build/{variant}.json, {variant}.p4info.txtpb")


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        stale = [found for found in map(wrong, VARIANTS) if found]
        if stale:
            print(f"error: p4src/build: {'; '.join(stale)}: run 'make p4'", file=sys.stderr)
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
