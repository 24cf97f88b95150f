"""The compiled data plane: where p4c's output lies, and the sizes that Python takes from it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from serene.errors import SereneError, choices

_HERE = Path(__file__).resolve().parent
# In the repository, or inside the package in a wheel.
BUILD = next((path for path in (_HERE.parent / "p4src" / "build", _HERE / "p4") if path.is_dir()), _HERE / "p4")
VARIANTS = ("serene", "serene_jumbo")  # 320 lanes (MTU 1500), 896 lanes (jumbo frames)
TREE = ("serene_leaf", "serene_root")  # the two levels of a tree of switches; neither is of use alone


class NoSuchProgram(SereneError):
    """There is no compiled program of that name, or it is not Serene's."""


@dataclass(frozen=True)
class Program:
    """p4c's output for one variant, and its sizes: lanes a slot, slots, jobs, workers a job.

    ``config_path``: the file that the switch is given, which for BMv2 and the embedded switch is p4c's JSON.
    ``counted_workers``: how many places for each job the counters by worker have. A root's workers are leaves.
    """

    name: str
    config_path: Path
    p4info_path: Path
    lanes: int
    slots: int
    max_jobs: int
    max_workers: int
    counted_workers: int

    @classmethod
    def load(cls, variant: str | Path = "serene") -> Program:
        """Loads a variant by name, or any build of Serene's program by its JSON's path, which needs its P4Info beside
        it: mine.json and mine.p4info.txtpb."""
        path = BUILD / f"{variant}.json" if str(variant) in VARIANTS else Path(variant)
        if not path.suffix:
            raise NoSuchProgram(f"no program {str(variant)!r}; expected {choices(VARIANTS)}, or a path to a .json")
        p4info = path.with_suffix(".p4info.txtpb")
        try:
            with path.open("rb"):  # read when a switch is given it
                text = p4info.read_text()
            if path.suffix == ".json":
                headers = json.loads(path.read_text())["header_types"]
                next(item for item in headers if item["name"] == "values_t")
            sizes = {name: int(size) for name, size in re.findall(_SIZED, text, re.DOTALL)}
            slots, jobs = sizes["base_of"], sizes["policy"]
            return cls(
                path.stem, path, p4info, _lanes(text), slots, jobs, (sizes.get("seen_of") or sizes["rack_of"]) // slots,
                sizes["contributions"] // jobs,
            )  # fmt: skip
        except OSError as error:
            raise NoSuchProgram(f"cannot read {error.filename}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, StopIteration, ZeroDivisionError, RecursionError) as error:
            raise NoSuchProgram(f"{path} is not a build of Serene's data plane ({error})") from error

    @classmethod
    def tree(cls) -> tuple[Program, Program]:
        """The programs of a tree's leaves and root. Neither is a variant, since neither is of use alone."""
        leaf, root = (cls.load(BUILD / f"{name}.json") for name in TREE)
        return leaf, root


# Matches a register, table or counter of a P4Info text, and its size.
_SIZED = r'alias: "(\w+)"\n  }\n(?:(?!alias:).)*?\n  size: (\d+)'


def _lanes(p4info: str) -> int:
    """Lanes a slot, by the registers of its sums: each of 64 lanes in v1model, of a lane and its snapshot on Tofino."""
    wide = re.findall(r'alias: "sum_\d+".*?bitwidth: (\d+)', p4info, re.DOTALL)
    return sum(int(bits) // 32 for bits in wide) or len(re.findall(r'alias: "lanes_of_\d+"', p4info))
