"""The compiled programs under test: the committed ones, or those that environment variables name (`make mutants`
sets them)."""

from __future__ import annotations

import os
from pathlib import Path

from serene.program import BUILD, TREE, Program

V1MODEL_VARIABLE, TOFINO_VARIABLE = "SERENE_TEST_PROGRAM", "SERENE_TEST_TOFINO_PROGRAM"
LEAF_VARIABLE, ROOT_VARIABLE = "SERENE_TEST_LEAF_PROGRAM", "SERENE_TEST_ROOT_PROGRAM"
P4SRC = Path(__file__).resolve().parents[1] / "p4src"

LEAF, ROOT = (
    Program.load(os.environ.get(variable, BUILD / f"{name}.json"))
    for variable, name in zip((LEAF_VARIABLE, ROOT_VARIABLE), TREE, strict=True)
)
V1MODEL = Program.load(os.environ.get(V1MODEL_VARIABLE, "serene"))
