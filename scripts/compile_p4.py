"""Compiles all variants of the data plane for v1model into p4src/build, with digests of the sources and the output.

python scripts/compile_p4.py          # needs p4c-bm2-ss
python scripts/compile_p4.py --check  # do the sources and the output still have those digests? And, where p4c-bm2-ss is
                                      # installed, does it make the same output again? Says which of the two it did.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "p4src"
BUILD = SOURCES / "build"
# The top file, and FIELDS: how many 2048-bit fields (64 lanes each) a packet carries.
VARIANTS = {
    "serene": ("v1model/serene.p4", 5),
    "serene_jumbo": ("v1model/serene.p4", 14),
    "serene_leaf": ("v1model/serene_leaf.p4", 5),
    "serene_root": ("v1model/serene_root.p4", 5),
}
COMPILER = "p4c-bm2-ss"


def output(variant: str) -> list[str]:
    """The names of the files that p4c writes for a variant."""
    return [f"{variant}.json", f"{variant}.p4info.txtpb"]


def stamp(variant: str) -> str:
    """The text of a variant's .sha256 file: SHA-256 of what its output follows from (the sources, the top file and
    FIELDS), and of the output."""
    main, fields = VARIANTS[variant]
    sources = hashlib.sha256(f"{main} FIELDS={fields}\n".encode())
    for folder in ("include", "v1model"):
        for path in sorted((SOURCES / folder).glob("*.p4")):
            sources.update(f"{path.relative_to(SOURCES)}\n".encode())
            sources.update(path.read_bytes())
    written = hashlib.sha256()
    for name in output(variant):
        written.update(f"{name}\n".encode())
        written.update((BUILD / name).read_bytes())
    return f"sources {sources.hexdigest()}\noutput {written.hexdigest()}\n"


def stale(variant: str) -> str:
    """What is missing, or has changed since p4c wrote a variant's output; empty if nothing has."""
    files = [BUILD / f"{variant}.sha256", *(BUILD / name for name in output(variant))]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        return f"{' and '.join(missing)} of {variant} missing"
    recorded, expected = files[0].read_text().split("\n"), stamp(variant).split("\n")
    if recorded[0] != expected[0]:
        return f"the sources of {variant} changed, its output did not"
    return "" if recorded == expected else f"the output of {variant} is not as the compiler wrote it"


@contextlib.contextmanager
def compiled(compiler: str, variant: str, within: Path | None = None) -> Iterator[list[Path]]:
    """Compiles a variant. Yields the files of its output, which are deleted after the block unless they were moved.
    within: where to make a folder for them, None for where temporary files go. Raises CalledProcessError."""
    main, fields = VARIANTS[variant]
    with tempfile.TemporaryDirectory(dir=within) as scratch:
        json, p4info = (Path(scratch, name) for name in output(variant))
        # From p4src, so that the output names no path of this machine. --Wdisable: the root does not use all sizes.
        subprocess.run(
            [compiler, "--target", "bmv2", "--arch", "v1model", f"-DFIELDS={fields}", "--Wdisable=unused",
             "--p4runtime-files", str(p4info), "-o", str(json), main],
            cwd=SOURCES, check=True,
        )  # fmt: skip
        yield [json, p4info]


def compile_all(compiler: str) -> None:
    """Compiles every variant, and replaces its output once all of it is written. Raises CalledProcessError."""
    for variant in VARIANTS:
        with compiled(compiler, variant, BUILD) as written:
            for path in written:
                path.replace(BUILD / path.name)
        (BUILD / f"{variant}.sha256").write_text(stamp(variant))
        print(f"p4src/build/{variant}.json, {variant}.p4info.txtpb")


def differing(compiler: str, variant: str) -> str:
    """The output of a variant that the compiler now makes otherwise; empty if none. Raises CalledProcessError."""
    with compiled(compiler, variant) as written:
        names = [path.name for path in written if path.read_bytes() != (BUILD / path.name).read_bytes()]
    return f"{' and '.join(names)} of {variant} not as {compiler} makes it now" if names else ""


def check(compiler: str | None) -> int:
    """Compares digests, and compiles where there is a compiler; prints what was done. Returns the exit status. Raises
    CalledProcessError."""
    found = [what for variant in VARIANTS if (what := stale(variant))]
    if compiler is not None and not found:
        found = [what for variant in VARIANTS if (what := differing(compiler, variant))]
    if found:
        print(f"error: p4src/build: {'; '.join(found)}: run 'make p4'", file=sys.stderr)
        return 1
    done = f"{compiler} makes this output again" if compiler else f"nothing was compiled: {COMPILER} is not installed"
    print(f"p4src/build: sources and output have the digests that were recorded; {done}")
    return 0


def main() -> int:
    compiler = shutil.which(COMPILER)
    try:
        if sys.argv[1:] == ["--check"]:
            return check(compiler)
        if compiler is None:
            print(f"error: {COMPILER} is not installed (p4lang's p4c, its BMv2 backend); p4src/build is as it was",
                  file=sys.stderr)  # fmt: skip
            return 1
        compile_all(compiler)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
