"""Indirect meters, and the conversion of every meter's rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from finsy.proto import p4r

from serene.embedded import engine
from serene.embedded.control import types as control
from serene.embedded.p4runtime.indices import indices
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import invalid, unimplemented


def rates(config: p4r.MeterConfig) -> control.MeterRates:
    if config.eburst:
        raise invalid("meters here have two rates: eburst belongs to those with a single rate")
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0 or config.pir < config.cir:
        raise invalid("meter rates and bursts are 0 or more, and the peak rate is not below the committed one")
    return control.MeterRates(config.cir, config.cburst, config.pir, config.pburst)


class Meters:
    """The configurations of indirect meters. Cells that were never written let everything pass as green."""

    def __init__(self, schema: Schema, switch: engine.Switch) -> None:
        self._schema = schema
        self._switch = switch
        self._of_all: dict[int, p4r.MeterConfig | None] = {}  # by meter: for cells not in _own
        self._own: defaultdict[int, dict[int, p4r.MeterConfig | None]] = defaultdict(dict)

    def write(self, entry: p4r.MeterEntry) -> None:
        meter = self._schema.meter(entry.meter_id)
        _check_counters(entry)
        config = rates(entry.config) if entry.HasField("config") else None
        kept = None
        if config is not None:
            kept = p4r.MeterConfig()
            kept.CopyFrom(entry.config)
        cells = indices(entry, meter)
        if cells:
            self._switch.meter_set(meter.preamble.name, cells.start, config, len(cells))
        own = self._own[entry.meter_id]
        if not entry.HasField("index"):
            self._of_all[entry.meter_id] = kept
            own.clear()
        elif kept is None and self._of_all.get(entry.meter_id) is None:
            own.pop(cells.start, None)
        else:
            own[cells.start] = kept

    def read(self, wanted: p4r.MeterEntry) -> Iterator[p4r.MeterEntry]:
        _check_counters(wanted)
        meters = [self._schema.meter(wanted.meter_id)] if wanted.meter_id else self._schema.meters.values()
        for meter in meters:
            for index in indices(wanted, meter) if wanted.meter_id else range(meter.size):
                entry = p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=index))
                id_ = meter.preamble.id
                config = self._own[id_].get(index, self._of_all.get(id_))
                if config is not None:
                    entry.config.CopyFrom(config)
                yield entry

    def configured(self) -> Iterator[p4r.MeterEntry]:
        """Yields the writes that recreate these meters: first one for all cells, then those for single cells."""
        for id_, config in self._of_all.items():
            if config is not None:
                yield p4r.MeterEntry(meter_id=id_, config=config)
        for id_, own in self._own.items():
            for index, config in own.items():
                yield p4r.MeterEntry(meter_id=id_, index=p4r.Index(index=index), config=config)


def _check_counters(entry: p4r.MeterEntry) -> None:
    if entry.HasField("counter_data"):
        raise unimplemented("meters do not count by colour on this switch: leave counter_data out")
