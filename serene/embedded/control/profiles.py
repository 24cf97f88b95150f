"""Action profiles: members (actions with parameters) shared by table entries, and groups from which a hash selects one.

Members have the numbers (places) 0 to the profile's size - 1, and so have groups. An entry of the profile's table names
a member or a group.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from serene.embedded.control.entries import TableControl
from serene.embedded.control.loaded import limb_array, named
from serene.embedded.control.types import ControlError, Match, NoSuchEntry
from serene.embedded.program.ir import ActionProfile, Table

PROFILE_ENTRY = 0xFFFFFFFE  # as in runtime/stateful.h
MOST_GROUP_MEMBERS = 1 << 16  # a member of weight w counts w times


class ProfileControl(TableControl):
    def member_set(self, profile: str, place: int, action: str, params: Sequence[int] = ()) -> None:
        """Sets the member at this place; if there is one already, it changes in all groups."""
        held = self._profile(profile, place)
        chosen = named(held.actions, action, f"action of profile {profile!r}")
        most = max(other.limbs for other in held.actions.values())
        data = self.parameter_limbs(chosen, params)
        self._lib.switch_member(self._state, held.id, place, chosen.id, limb_array(data + [0] * (most - len(data))))

    def member_delete(self, profile: str, place: int) -> None:
        """Removes a member. Packets whose entry or group still selects it get no action."""
        self._lib.switch_member(self._state, self._profile(profile, place).id, place, 0, None)

    def group_set(self, profile: str, place: int, members: Sequence[int]) -> None:
        """Sets a group's members by their places; a place listed n times is selected n times as often."""
        held = self._profile(profile, place)
        if held.selector is None:
            raise ControlError(f"action profile {profile!r} has no selector, so no groups")
        if len(members) > MOST_GROUP_MEMBERS:
            raise ControlError(f"a group of {len(members)} members, weights counted; at most {MOST_GROUP_MEMBERS}")
        for member in members:
            self._profile(profile, member)
        places = (ctypes.c_uint32 * max(len(members), 1))(*members)
        if self._lib.switch_group(self._state, held.id, place, places, len(members)):
            raise ControlError("not enough memory for the group")

    def group_delete(self, profile: str, place: int) -> None:
        self._lib.switch_group(self._state, self._profile(profile, place).id, place, None, -1)

    def table_add_chosen(
        self, table: str, match: Sequence[Match], place: int, *, group: bool, priority: int = 0
    ) -> int:
        """Adds an entry that names a member or a group of the table's profile. Returns its handle."""
        target = self._table(table)
        return self._insert(target, match, priority, PROFILE_ENTRY, self._chosen(target, place, group))

    def table_modify_chosen(self, table: str, handle: int, place: int, *, group: bool) -> None:
        target = self._table(table)
        data = self._chosen(target, place, group)
        if self._lib.switch_table_change(self._state, target.id, handle, ctypes.c_uint32(PROFILE_ENTRY), data):
            raise NoSuchEntry(f"table {table!r} has no entry {handle}")

    def _chosen(self, table: Table, place: int, group: bool) -> ctypes.Array[ctypes.c_uint64]:
        if table.profile is None:
            raise ControlError(f"table {table.name!r} has no action profile")
        self._profile(table.profile, place)
        return limb_array([int(group), place] + [0] * (table.data_limbs - 2))

    def _profile(self, name: str, place: int) -> ActionProfile:
        profile = named(self.program.action_profiles, name, "action profile")
        if not 0 <= place < profile.size:
            raise ControlError(f"action profile {name!r} has the places 0 to {profile.size - 1}, not {place}")
        return profile
