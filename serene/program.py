"""The compiled data plane: where p4c's output lies, and the sizes that Python takes from it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from serene.errors import SereneError, choices

BUILD = Path(__file__).resolve().parent.parent / "p4src" / "build"
VARIANTS = ("serene", "serene_jumbo")  # 320 lanes (MTU 1500), 896 lanes (jumbo frames)


class NoSuchProgram(SereneError):
    """No compiled program of that name, or one that is not Serene's."""


@dataclass(frozen=True)
class Program:
    """p4c's output for one variant, and its sizes: lanes a slot, slots, jobs, workers of a job."""

    name: str
    json_path: Path
    p4info_path: Path
    lanes: int
    slots: int
    max_jobs: int
    max_workers: int

    @classmethod
    def load(cls, variant: str | Path = "serene") -> Program:
        """A variant by name, or any build of Serene's program by the path of its JSON."""
        if str(variant) in VARIANTS:
            path = BUILD / f"{variant}.json"
        else:
            path = Path(variant)
            if path.suffix != ".json":
                raise NoSuchProgram(f"no program {str(variant)!r}; expected {choices(VARIANTS)}, or a path to a .json")
        p4info = path.with_suffix(".p4info.txtpb")
        try:
            program = json.loads(path.read_text())
            text = p4info.read_text()
            header = next(item for item in program["header_types"] if item["name"] == "values_t")
            registers = {item["name"].rpartition(".")[2]: item for item in program["register_arrays"]}
            slots = registers["base_of"]["size"]
            members = registers["seen_of"]["size"] // slots
            jobs = int(re.findall(r'alias: "policy".*?\n  size: (\d+)', text, re.DOTALL)[0])
        except OSError as error:
            raise NoSuchProgram(f"cannot read {error.filename}: {error.strerror}") from error
        except (ValueError, KeyError, StopIteration, IndexError, TypeError) as error:
            raise NoSuchProgram(f"{path} is not a build of Serene's data plane ({error})") from error
        lanes = sum(width for _, width, *_ in header["fields"]) // 32
        return cls(path.stem, path, p4info, lanes, slots, jobs, members)
