"""P4Runtime controllers of the programs with action profiles and with parser value sets."""

from __future__ import annotations

from pathlib import Path

from finsy.proto import p4r

from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import Controller, load_p4info, number
from tests.embedded.p4rt_probe import PROGRAMS

PROFILES, VALUE_SETS = PROGRAMS / "profiles.json", PROGRAMS / "value_sets.json"


class _Primary(Controller):
    """The primary controller of a program that it has pushed, which sends packets back."""

    program_path: Path

    def __init__(self, target: Target) -> None:
        info = load_p4info(self.program_path.with_suffix(".p4info.txtpb"))
        super().__init__(target.address, target.device_id, info, self.program_path.read_bytes())
        self.become_primary()
        self.push()

    def echo(self, payload: bytes) -> bytes:
        """The packet as it comes back."""
        self.messages.send(packet=p4r.PacketOut(payload=payload))
        return bytes(self.messages.receive("packet").payload)


class Profiled(_Primary):
    program_path = PROFILES

    def member(self, profile: str, id_: int, action: str = "", *params: int) -> p4r.ActionProfileMember:
        entry = p4r.ActionProfileMember(action_profile_id=self.id("action_profiles", profile), member_id=id_)
        if action:
            entry.action.CopyFrom(self.action(action, *params).action)
        return entry

    def group(self, id_: int, *members: tuple[int, int], profile: str = "spreader") -> p4r.ActionProfileGroup:
        """Of (member, weight)s."""
        entry = p4r.ActionProfileGroup(action_profile_id=self.id("action_profiles", profile), group_id=id_, max_size=8)
        for member, weight in members:
            entry.members.add(member_id=member, weight=weight)
        return entry

    def indirect(self, table: str, key: int, **chosen: int) -> p4r.TableEntry:
        (field,) = [name for name in ("direct", "spread") if (name == "direct") == (table == "by_member")]
        entry = self.key(table, {f"hdr.probe.{field}": key})
        for name, id_ in chosen.items():
            setattr(entry.action, f"action_profile_{name}_id", id_)
        return entry

    def one_shot(self, key: int, *actions: tuple[str, int, int], table: str = "by_group") -> p4r.TableEntry:
        """An entry with a group of its own, of (action, parameter, weight)s."""
        entry = self.indirect(table, key)
        given = entry.action.action_profile_action_set
        given.SetInParent()
        for action, parameter, weight in actions:
            given.action_profile_actions.add(action=self.action(action, parameter).action, weight=weight)
        return entry

    def send(self, direct: int = 0, spread: int = 0, flow: int = 0) -> tuple[int, int]:
        """Returns what the two tables' actions wrote into the packet."""
        data = self.echo(bytes([direct, spread]) + flow.to_bytes(2, "big") + bytes(4))
        return int.from_bytes(data[4:6], "big"), int.from_bytes(data[6:8], "big")

    def spread(self, key: int, flows: int = 8) -> list[int]:
        """Returns what the action chosen for each of the flows 0, 1, ... wrote."""
        return [self.send(spread=key, flow=flow)[1] for flow in range(flows)]


class Selecting(_Primary):
    program_path = VALUE_SETS

    def members(self, value_set: str, *members: tuple[int, ...]) -> p4r.ValueSetEntry:
        entry = p4r.ValueSetEntry(value_set_id=self.id("value_sets", value_set))
        for fields in members:
            member = entry.members.add()
            for id_, value in enumerate(fields, 1):
                member.match.add(field_id=id_).exact.value = number(value)
        return entry

    def found(self, kind: int = 0, low: int = 0, high: int = 0) -> int:
        """Which set the parser found the packet in."""
        return self.echo((kind << 24 | low << 16 | high << 4).to_bytes(5, "big"))[4] & 15
