"""The cells of a counter, meter or register that an entity refers to."""

from __future__ import annotations

from finsy.proto import p4i, p4r

from serene.embedded.p4runtime.status import Code, Failure, invalid


def indices(
    entry: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry, info: p4i.Counter | p4i.Meter | p4i.Register
) -> range:
    """The cell that it names, or all cells if it names none."""
    if not entry.HasField("index"):
        return range(info.size)
    index = entry.index.index
    if index < 0:
        raise invalid(f"{info.preamble.name!r}: an index is 0 or more, not {index}")
    if index >= info.size:
        raise Failure(Code.OUT_OF_RANGE, f"{info.preamble.name!r} has the indices 0 to {info.size - 1}, not {index}")
    return range(index, index + 1)
