"""A P4Runtime controller for the program with action profiles."""

from __future__ import annotations

from pathlib import Path

from finsy.proto import p4r

from tests.switch.conftest import Target
from tests.switch.p4rt_controller import Controller, load_p4info

PROGRAM = Path(__file__).with_name("programs") / "profiles.json"
P4INFO = PROGRAM.with_suffix(".p4info.txtpb")


class Profiled(Controller):
    """A controller of programs/profiles.p4."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.address, target.device_id, load_p4info(P4INFO))
        self.own = self.become_primary()
        self.set_pipeline("VERIFY_AND_COMMIT", PROGRAM.read_bytes())

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
        """What the two tables' actions wrote into the packet."""
        self.own.send(packet=p4r.PacketOut(payload=bytes([direct, spread]) + flow.to_bytes(2, "big") + bytes(4)))
        data = self.own.receive("packet").payload
        return int.from_bytes(data[4:6], "big"), int.from_bytes(data[6:8], "big")
