"""The compiled data plane: the paths of p4c's output, and the sizes that Python reads from it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from serene.errors import SereneError, choices
from serene.slots import NotBySlot, SlotState, check_number, resized, resized_p4info

_HERE = Path(__file__).resolve().parent
# In the repository, or inside the package in a wheel.
BUILD = next((path for path in (_HERE.parent / "p4src" / "build", _HERE / "p4") if path.is_dir()), _HERE / "p4")
VARIANTS = PLAIN, JUMBO = "serene", "serene_jumbo"  # 320 lanes (MTU 1500), 896 lanes (jumbo frames)
TREE = ("serene_leaf", "serene_root")  # the two levels of a tree of switches; they work only together


class NoSuchProgram(SereneError):
    """There is no compiled program with that name, or it is not Serene's."""


@dataclass(frozen=True)
class Program:
    """p4c's output for one variant, and its sizes: lanes a slot, slots, jobs, workers a job.

    ``config_path``, ``p4info_path``: the files as the compiler wrote them; for BMv2 and the embedded switch the former
    is p4c's JSON. A switch gets `config` and `p4info`, which have ``slots`` slots. ``counted_workers``: number of cells
    that per-worker counters have for each job. A root's workers are leaves.
    """

    name: str
    config_path: Path
    p4info_path: Path
    lanes: int
    slots: int
    max_jobs: int
    max_workers: int
    counted_workers: int
    bytes_per_slot: int | None = None  # of a switch's state; None if the compiled program does not have that number
    level: str | None = None  # "leaf" or "root": its level in a tree of switches; None for a program of one switch
    resized: bool = False  # whether ``slots`` differs from the number that it was compiled with

    def with_slots(self, slots: int) -> Program:
        """The same program with another number of slots. Raises NotBySlot, or NoSuchProgram if the program is not in
        JSON: then its sizes are fixed."""
        check_number(slots)
        if slots == self.slots:
            return self
        if not self._is_json:
            raise NoSuchProgram(
                f"{slots} slots: {self.config_path.name} was compiled with {self.slots}. Only programs for BMv2 or "
                "the embedded switch can change it"
            )
        resized_p4info(self.p4info_path.read_text(), self._state, slots)  # raises if slots cannot be counted
        return replace(self, slots=slots, resized=True)

    @property
    def path(self) -> str:
        """What another process passes to `load`, also in another folder."""
        return str(self.config_path.absolute())

    @property
    def _is_json(self) -> bool:
        return self.config_path.suffix == ".json"

    @property
    def _state(self) -> SlotState:
        return SlotState.of(json.loads(self.config_path.read_text()))

    @property
    def config(self) -> bytes:
        """The program in the form that a switch gets."""
        compiled = self.config_path.read_bytes()
        return resized(compiled, self.slots) if self.resized else compiled

    @property
    def p4info(self) -> str:
        """The P4Info text that belongs to `config`."""
        text = self.p4info_path.read_text()
        return resized_p4info(text, self._state, self.slots) if self.resized else text

    @classmethod
    def load(cls, variant: str | Path = "serene") -> Program:
        """Loads a variant by its name, or any build of Serene's program by its JSON's path. The P4Info has to be beside
        it: mine.json and mine.p4info.txtpb."""
        path = BUILD / f"{variant}.json" if str(variant) in VARIANTS else Path(variant)
        if not path.suffix:
            raise NoSuchProgram(f"no program {str(variant)!r}; expected {choices(VARIANTS)}, or a path to a .json")
        p4info = path.with_suffix(".p4info.txtpb")
        try:
            return _loaded(path, p4info, tuple(_identity(file) for file in (path, p4info)))
        except OSError as error:
            raise NoSuchProgram(f"cannot read {error.filename}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, StopIteration, ZeroDivisionError, RecursionError, NotBySlot) as error:
            raise NoSuchProgram(f"{path} is not a build of Serene's data plane ({error})") from error

    @classmethod
    def tree(cls, slots: int | None = None) -> tuple[Program, Program]:
        """The programs of a tree's leaves and root. They work only together, so neither is a variant. slots: by default
        the number that they were compiled with."""
        leaf, root = (cls.load(BUILD / f"{name}.json") for name in TREE)
        return (leaf, root) if slots is None else (leaf.with_slots(slots), root.with_slots(slots))


def _identity(file: Path) -> tuple[int, ...]:
    """Differs from that of any other file, and from the file's own before a change."""
    now = file.stat()
    return now.st_dev, now.st_ino, now.st_ctime_ns, now.st_size


@lru_cache(maxsize=16)
def _loaded(path: Path, p4info: Path, _files: tuple[tuple[int, ...], ...]) -> Program:
    """Cached, since the JSON of a program takes 0.2 s to parse. _files: their `_identity`. Raises OSError, and others
    for a file that is no such program."""
    with path.open("rb"):  # only checked here; it is read when a switch gets it
        text = p4info.read_text()
    kept = None
    if path.suffix == ".json":
        compiled = json.loads(path.read_text())
        next(item for item in compiled["header_types"] if item["name"] == "values_t")
        kept = SlotState.of(compiled).bytes_per_slot
    sizes = {name: int(size) for name, size in re.findall(_SIZED, text, re.DOTALL)}
    slots, jobs = sizes["base_of"], sizes["policy"]
    return Program(
        path.stem, path, p4info, _lanes(text), slots, jobs, (sizes.get("seen_of") or sizes["rack_of"]) // slots,
        sizes["contributions"] // jobs, kept,
        "root" if "rack_of" in sizes else "leaf" if "prepared" in sizes else None,
    )  # fmt: skip


def chosen_program(variant: str | Path, slots: int | None) -> Program:
    """A program for one switch, loaded as by `Program.load`, and by `Program.with_slots` if a number is given. Raises
    NoSuchProgram or NotBySlot."""
    program = Program.load(variant)
    if program.level is not None:
        raise NoSuchProgram(
            f"{program.config_path} is for the {program.level} in a tree of switches: expected {choices(VARIANTS)}, "
            "or a path to a .json for one switch"
        )
    return program if slots is None else program.with_slots(slots)


# Matches a register, table or counter of a P4Info text, and its size.
_SIZED = r'alias: "(\w+)"\n  }\n(?:(?!alias:).)*?\n  size: (\d+)'


def _lanes(p4info: str) -> int:
    """Lanes of a slot, from the registers of its sums. Each register has 64 lanes in v1model, and one lane and its
    snapshot on Tofino."""
    wide = re.findall(r'alias: "sum_\d+".*?bitwidth: (\d+)', p4info, re.DOTALL)
    return sum(int(bits) // 32 for bits in wide) or len(re.findall(r'alias: "lanes_of_\d+"', p4info))
