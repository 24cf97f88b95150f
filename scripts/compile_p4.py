"""Compiles all variants of the data plane for v1model into p4src/build, with digests of the sources and the output.

python scripts/compile_p4.py          # needs p4c-bm2-ss
python scripts/compile_p4.py --check  # compares the sources and the output with these digests; if p4c-bm2-ss is
                                      # installed, also compares the output with p4c's. Prints what it compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
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
    """The names of p4c's output files for a variant."""
    return [f"{variant}.json", f"{variant}.p4info.txtpb"]


def significant(text: str) -> str:
    """What p4c's output may depend on: it has line numbers, and the texts of single lines with their trailing comments.
    So comments on lines of their own become blank lines. A comment that continues on the next line stays, and so do all
    comments of a source with `/*`."""
    return text if "/*" in text else re.sub(r"^[ \t]*//.*(?<!\\)$", "", text, flags=re.MULTILINE)


def stamp(variant: str) -> str:
    """The text of a variant's .sha256 file: SHA-256 of the inputs (the significant text of the sources, the top file
    and FIELDS), and of the output."""
    main, fields = VARIANTS[variant]
    sources = hashlib.sha256(f"{main} FIELDS={fields}\n".encode())
    for folder in ("include", "v1model"):
        for path in sorted((SOURCES / folder).glob("*.p4")):
            sources.update(f"{path.relative_to(SOURCES)}\n".encode())
            sources.update(significant(path.read_text()).encode())
    written = hashlib.sha256()
    for name in output(variant):
        written.update(f"{name}\n".encode())
        written.update((BUILD / name).read_bytes())
    return f"sources {sources.hexdigest()}\noutput {written.hexdigest()}\n"


def stale(variant: str) -> str:
    """A text about files that are missing or have changed since p4c wrote a variant's output; empty if there are
    none."""
    files = [BUILD / f"{variant}.sha256", *(BUILD / name for name in output(variant))]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        return f"{' and '.join(missing)} of {variant} missing"
    recorded, expected = files[0].read_text().split("\n"), stamp(variant).split("\n")
    if recorded[0] != expected[0]:
        return f"the sources of {variant} have changed since it was compiled"
    return "" if recorded == expected else f"the output of {variant} has changed since it was compiled"


@contextlib.contextmanager
def compiled(compiler: str, variant: str, within: Path | None = None) -> Iterator[list[Path]]:
    """Compiles a variant. Yields its output files, which are deleted after the block unless they were moved. within:
    where to create a folder for them; None: where temporary files are. Raises CalledProcessError."""
    main, fields = VARIANTS[variant]
    with tempfile.TemporaryDirectory(dir=within) as scratch:
        json, p4info = (Path(scratch, name) for name in output(variant))
        # Run in p4src, so that the output contains no path of this machine. --Wdisable: the root does not use all
        # sizes.
        subprocess.run(
            [compiler, "--target", "bmv2", "--arch", "v1model", f"-DFIELDS={fields}", "--Wdisable=unused",
             "--p4runtime-files", str(p4info), "-o", str(json), main],
            cwd=SOURCES, check=True,
        )  # fmt: skip
        yield [json, p4info]


def compile_all(compiler: str) -> None:
    """Compiles every variant. A variant's output is replaced after all of it is written. Raises CalledProcessError."""
    for variant in VARIANTS:
        with compiled(compiler, variant, BUILD) as written:
            for path in written:
                path.replace(BUILD / path.name)
        (BUILD / f"{variant}.sha256").write_text(stamp(variant))
        print(f"p4src/build/{variant}.json, {variant}.p4info.txtpb")


def differing(compiler: str, variant: str) -> str:
    """A text about output of a variant that the compiler now writes differently; empty if there is none. Raises
    CalledProcessError."""
    with compiled(compiler, variant) as written:
        names = [path.name for path in written if path.read_bytes() != (BUILD / path.name).read_bytes()]
    return f"{compiler} now writes a different {' and '.join(names)}" if names else ""


def check(compiler: str | None) -> int:
    """Compares digests, and the output if there is a compiler. Prints what it compared. Returns the exit status. Raises
    CalledProcessError."""
    found = [what for variant in VARIANTS if (what := stale(variant))]
    if compiler is not None and not found:
        found = [what for variant in VARIANTS if (what := differing(compiler, variant))]
    if found:
        print(f"error: p4src/build: {'; '.join(found)}: run 'make p4'", file=sys.stderr)
        return 1
    done = f"{compiler} writes the same output" if compiler else f"nothing was compiled: {COMPILER} is not installed"
    print(f"p4src/build: sources and output have the recorded digests; {done}")
    return 0


def main() -> int:
    compiler = shutil.which(COMPILER)
    try:
        if sys.argv[1:] == ["--check"]:
            return check(compiler)
        if compiler is None:
            print(f"error: {COMPILER} is not installed (p4lang's p4c, its BMv2 backend); p4src/build is unchanged",
                  file=sys.stderr)  # fmt: skip
            return 1
        compile_all(compiler)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
