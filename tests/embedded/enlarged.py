"""The probe's program with larger tables."""

from __future__ import annotations

import json

from tests.embedded.p4rt_probe import JSON

TABLES = ("by_exact", "by_lpm", "by_ternary", "by_range", "by_optional")


def enlarged(size: int, *tables: str) -> bytes:
    """The probe's program, with tables of this size."""
    program = json.loads(JSON.read_text())
    for pipeline in program["pipelines"]:
        for table in pipeline["tables"]:
            if table["name"].split(".")[-1] in tables:
                table["max_size"] = size
    return json.dumps(program).encode()
