"""C code compiled on the user's machine: the switch's programs and the worker's fast path."""

from serene.native.build import compile_source, compiler
from serene.native.errors import CompileFailed, CompilerMissing, UnsafeCache

__all__ = ["CompileFailed", "CompilerMissing", "UnsafeCache", "compile_source", "compiler"]
