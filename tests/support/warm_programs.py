"""Reads Serene's P4 programs as each switch and each controller does when it starts. Both cache what they have read.

A warm Python (`warm.py`) imports this module, so that the processes that it starts find the programs in these caches.
"""

from __future__ import annotations

from contextlib import suppress

from serene.controller.switch.encoding import schema
from serene.embedded.engine import _generated
from serene.embedded.program.loading import read_program
from serene.native.build import _identity, compiler
from serene.native.errors import CompilerMissing
from serene.program import Program

with suppress(CompilerMissing):
    _identity(compiler())
for program in (Program.load(), *Program.tree()):
    _generated(*read_program(program.config))
    schema(program)
