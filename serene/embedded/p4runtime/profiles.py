"""Members and groups of action profiles, and the references to them in table entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import grpc
from finsy.proto import p4i, p4r
from google.protobuf.unknown_fields import UnknownFieldSet

from serene.embedded.control.profiles import MOST_GROUP_MEMBERS
from serene.embedded.control.types import ControlError
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.matches import action_values
from serene.embedded.p4runtime.pipeline import Schema
from serene.embedded.p4runtime.status import Code, Failure, invalid, not_found, unimplemented

INSERT, DELETE = p4r.Update.INSERT, p4r.Update.DELETE


@dataclass(frozen=True)
class Choice:
    """A table entry's reference: the place of a member or of a group in its profile."""

    profile: int
    id: int  # 0: a one-shot group, which belongs to the entry
    place: int
    group: bool
    own: tuple[int, ...] = ()  # the places of the one-shot group's members


@dataclass
class _Held:
    place: int
    entry: p4r.ActionProfileMember | p4r.ActionProfileGroup


class _Places:
    """Allocates the places 0 to size - 1 of one profile's members, or of its groups."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._released: list[int] = []
        self._unused = 0  # the first place never used

    def take(self, what: str) -> int:
        if self._released:
            return self._released.pop()
        if self._unused >= self._size:
            raise Failure(Code.RESOURCE_EXHAUSTED, f"{what}: there is room for {self._size}")
        self._unused += 1
        return self._unused - 1

    def release(self, place: int) -> None:
        self._released.append(place)


class Profiles:
    def __init__(self, schema: Schema, switch: Switch) -> None:
        self._schema = schema
        self._switch = switch
        sizes = {id_: schema.program_profile(profile).size for id_, profile in schema.profiles.items()}
        self._member_places = {id_: _Places(size) for id_, size in sizes.items()}
        self._group_places = {id_: _Places(size) for id_, size in sizes.items()}
        self._members: dict[int, dict[int, _Held]] = {id_: {} for id_ in schema.profiles}
        self._groups: dict[int, dict[int, _Held]] = {id_: {} for id_ in schema.profiles}
        # The reference of an entry in the engine, by profile, whether it is a group, and place.
        self._chosen: dict[tuple[int, bool, int], tuple[Choice, p4r.TableAction]] = {}
        self._named: Counter[Choice] = Counter()  # number of table entries that refer to each
        self._grouped: Counter[tuple[int, int]] = Counter()  # number of groups that contain (profile, member)
        self._one_shots: Counter[int] = Counter()  # by profile

    # -- members ---------------------------------------------------------------------------------------------

    def write_member(self, kind: int, entry: p4r.ActionProfileMember) -> None:
        profile = self._schema.profile(entry.action_profile_id)
        name, members = profile.preamble.name, self._members[entry.action_profile_id]
        what = f"action profile {name!r}: member {entry.member_id}"
        held = _check(kind, members, entry.member_id, what)
        self._check_no_one_shots(entry.action_profile_id, what)
        if kind == DELETE:
            assert held is not None
            self._check_unused(entry.action_profile_id, entry.member_id, held, what)
            self._switch.member_delete(name, held.place)
            self._member_places[entry.action_profile_id].release(held.place)
            del members[entry.member_id], self._chosen[entry.action_profile_id, False, held.place]
            return
        if not entry.HasField("action"):
            raise invalid(f"{what} needs an action")
        action, params = action_values(self._schema, self._table(profile), entry.action)
        place = held.place if held else self._member_places[entry.action_profile_id].take(what)
        try:
            self._switch.member_set(name, place, action, params)
        except ControlError:
            if held is None:
                self._member_places[entry.action_profile_id].release(place)
            raise
        kept = p4r.ActionProfileMember()
        kept.CopyFrom(entry)
        members[entry.member_id] = _Held(place, kept)
        self._offer(
            Choice(entry.action_profile_id, entry.member_id, place, False),
            p4r.TableAction(action_profile_member_id=entry.member_id),
        )

    def _check_unused(self, profile: int, member: int, held: _Held, what: str) -> None:
        if self._grouped[profile, member]:
            group = next(
                id_
                for id_, group in self._groups[profile].items()
                if any(each.member_id == member for each in group.entry.members)
            )
            raise Failure(Code.FAILED_PRECONDITION, f"{what} is in group {group}: modify the group first")
        self._check_unnamed(Choice(profile, member, held.place, False), what)

    def _check_unnamed(self, choice: Choice, what: str) -> None:
        if self._named[choice]:
            entries = self._named[choice]
            raise Failure(
                Code.FAILED_PRECONDITION, f"{what} is the action of {entries} table entries: change them first"
            )

    def _table(self, profile: p4i.ActionProfile) -> p4i.Table:
        """One of the profile's tables: all of them have the same actions."""
        for id_ in profile.table_ids:
            if id_ in self._schema.tables:
                return self._schema.tables[id_]
        raise invalid(f"action profile {profile.preamble.name!r} has no table")

    # -- groups ----------------------------------------------------------------------------------------------

    def write_group(self, kind: int, entry: p4r.ActionProfileGroup) -> None:
        profile = self._schema.profile(entry.action_profile_id)
        name, groups = profile.preamble.name, self._groups[entry.action_profile_id]
        what = f"action profile {name!r}: group {entry.group_id}"
        if not profile.with_selector:
            raise invalid(f"action profile {name!r} has no selector, so no groups")
        held = _check(kind, groups, entry.group_id, what)
        self._check_no_one_shots(entry.action_profile_id, what)
        if kind == DELETE:
            assert held is not None
            self._check_unnamed(Choice(entry.action_profile_id, entry.group_id, held.place, True), what)
            self._switch.group_delete(name, held.place)
            self._group_places[entry.action_profile_id].release(held.place)
            self._grouped.subtract(_members(held.entry))
            del groups[entry.group_id], self._chosen[entry.action_profile_id, True, held.place]
            return
        places = self._places(profile, entry, what)
        if held is not None and held.entry.max_size != entry.max_size:
            raise invalid(f"{what}: max_size cannot be changed")
        place = held.place if held else self._group_places[entry.action_profile_id].take(what)
        try:
            self._switch.group_set(name, place, places)
        except ControlError:
            if held is None:
                self._group_places[entry.action_profile_id].release(place)
            raise
        kept = p4r.ActionProfileGroup()
        kept.CopyFrom(entry)
        if held is not None:
            self._grouped.subtract(_members(held.entry))
        self._grouped.update(_members(kept))
        groups[entry.group_id] = _Held(place, kept)
        self._offer(
            Choice(entry.action_profile_id, entry.group_id, place, True),
            p4r.TableAction(action_profile_group_id=entry.group_id),
        )

    def _places(self, profile: p4i.ActionProfile, entry: p4r.ActionProfileGroup, what: str) -> list[int]:
        """The places of a group's members, each repeated by its weight."""
        members = self._members[entry.action_profile_id]
        if len({each.member_id for each in entry.members}) < len(entry.members):
            raise invalid(f"{what} has a member twice: give it a weight instead")
        if entry.max_size < 0 or (profile.max_group_size and entry.max_size > profile.max_group_size):
            raise invalid(f"{what}: a max_size of {entry.max_size}; expected 0 to {profile.max_group_size or 'any'}")
        most = entry.max_size or profile.max_group_size
        weights = _weights(profile, entry.members, most, what, too_large=Code.RESOURCE_EXHAUSTED)
        places: list[int] = []
        for each, weight in zip(entry.members, weights, strict=True):
            if each.member_id not in members:
                raise not_found(f"{what}: there is no member {each.member_id}")
            places += [members[each.member_id].place] * weight
        return places

    # -- table entries ---------------------------------------------------------------------------------------

    def _offer(self, choice: Choice, action: p4r.TableAction) -> None:
        self._chosen[choice.profile, choice.group, choice.place] = choice, action

    def chosen(self, table: p4i.Table, *, group: bool, place: int) -> tuple[Choice, p4r.TableAction]:
        """An entry's reference, and its action as it was written."""
        return self._chosen[table.implementation_id, group, place]

    def choice(self, table: p4i.Table, given: p4r.TableAction) -> Choice | None:
        """The member or group that an entry of an indirect table refers to; None if the table has no profile.

        A one-shot group is created here. The caller has to release it, or to count the entry that refers to it.
        """
        if not table.implementation_id:
            return None
        kind = given.WhichOneof("type")
        if kind == "action_profile_action_set":
            return self._one_shot(table, given.action_profile_action_set)
        if kind not in ("action_profile_member_id", "action_profile_group_id"):
            raise invalid(f"table {table.preamble.name!r}: an entry needs a member or a group of its action profile")
        self._check_no_one_shots(table.implementation_id, f"table {table.preamble.name!r}: an entry that names one")
        group = kind == "action_profile_group_id"
        held, id_ = (self._groups if group else self._members)[table.implementation_id], getattr(given, kind)
        if id_ not in held:
            what = "group" if group else "member"
            raise not_found(f"table {table.preamble.name!r}: its action profile has no {what} {id_}")
        return Choice(table.implementation_id, id_, held[id_].place, group)

    def name(self, choice: Choice) -> None:
        self._named[choice] += 1

    def unname(self, choice: Choice | None) -> None:
        if choice is not None:
            self._named[choice] -= 1
            if not self._named[choice]:
                del self._named[choice]
            self.release(choice)

    def release(self, choice: Choice | None) -> None:
        """Removes a one-shot group that no entry refers to any more."""
        if choice is None or choice.id:
            return
        name = self._schema.profiles[choice.profile].preamble.name
        self._switch.group_delete(name, choice.place)
        self._group_places[choice.profile].release(choice.place)
        del self._chosen[choice.profile, True, choice.place]
        for place in choice.own:
            self._switch.member_delete(name, place)
            self._member_places[choice.profile].release(place)
        self._one_shots[choice.profile] -= 1

    # -- one-shot groups -------------------------------------------------------------------------------------

    def _check_no_one_shots(self, profile: int, what: str) -> None:
        """Checks that the profile's tables do not mix one-shot groups with members and groups, which P4Runtime
        forbids."""
        if self._one_shots[profile]:
            entries = self._one_shots[profile]
            raise invalid(f"{what}: {entries} table entries have action sets (one shot): delete them first")

    def _one_shot(self, table: p4i.Table, given: p4r.ActionProfileActionSet) -> Choice:
        """Creates a one-shot group. If it raises Failure, nothing has changed."""
        id_, what = table.implementation_id, f"table {table.preamble.name!r}: an action set"
        profile = self._schema.profile(id_)
        if not profile.with_selector:
            raise invalid(f"{what} needs a selector, which action profile {profile.preamble.name!r} does not have")
        if self._members[id_] or self._groups[id_]:
            name = profile.preamble.name
            raise invalid(f"{what}: action profile {name!r} has members and groups: delete them first, or use them")
        _check_semantics(profile, given, what)
        actions_given, most = given.action_profile_actions, profile.max_group_size
        weights = _weights(profile, actions_given, most, what, too_large=Code.INVALID_ARGUMENT)
        actions = [action_values(self._schema, table, each.action) for each in actions_given]
        name, members = profile.preamble.name, self._member_places[id_]
        own: list[int] = []
        place = self._group_places[id_].take(f"{what}: groups of action profile {name!r}")
        try:
            for action, params in actions:
                own.append(members.take(f"{what}: members of action profile {name!r}"))
                self._switch.member_set(name, own[-1], action, params)
            places = [at for at, weight in zip(own, weights, strict=True) for _ in range(weight)]
            self._switch.group_set(name, place, places)
        except (Failure, ControlError):
            for taken in own:
                self._switch.member_delete(name, taken)
                members.release(taken)
            self._group_places[id_].release(place)
            raise
        self._one_shots[id_] += 1
        choice = Choice(id_, 0, place, True, tuple(own))
        kept = p4r.TableAction()
        kept.action_profile_action_set.CopyFrom(given)
        self._offer(choice, kept)
        return choice

    # -- reading ---------------------------------------------------------------------------------------------

    def read_members(self, wanted: p4r.ActionProfileMember) -> Iterator[p4r.ActionProfileMember]:
        yield from self._read(self._members, wanted.action_profile_id, wanted.member_id)

    def read_groups(self, wanted: p4r.ActionProfileGroup) -> Iterator[p4r.ActionProfileGroup]:
        yield from self._read(self._groups, wanted.action_profile_id, wanted.group_id)

    def _read(
        self, held: dict[int, dict[int, _Held]], profile: int, id_: int
    ) -> Iterator[p4r.ActionProfileMember | p4r.ActionProfileGroup]:
        if profile:
            self._schema.profile(profile)
        for number, items in held.items():
            if profile in (0, number):
                if id_ == 0:
                    yield from (item.entry for item in items.values())
                elif id_ in items:
                    yield items[id_].entry


def _weight(profile: p4i.ActionProfile, given: int, what: str) -> int:
    if profile.weights_disallowed and given:
        raise invalid(f"{what}: a weight of {given}; action profile {profile.preamble.name!r} has no weights")
    if given < 1 and not profile.weights_disallowed:
        raise invalid(f"{what}: a weight of {given}; expected 1 or more")
    return given or 1


def _sizes_by_members(profile: p4i.ActionProfile) -> bool:
    """Whether a group's size is its number of members rather than the sum of their weights."""
    return profile.WhichOneof("selector_size_semantics") == "sum_of_members"


def _check_semantics(profile: p4i.ActionProfile, given: p4r.ActionProfileActionSet, what: str) -> None:
    kind, name = p4r.ActionProfileActionSet, profile.preamble.name
    if len(UnknownFieldSet(given)):  # in P4Runtime 1.5 a group has an action as well
        raise unimplemented(f"{what} with a group_action is not supported on this switch")
    if given.action_selection_mode not in (kind.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR, kind.HASH):
        raise unimplemented(f"{what}: action profile {name!r} selects by a hash on this switch")
    own = kind.SUM_OF_MEMBERS if _sizes_by_members(profile) else kind.SUM_OF_WEIGHTS
    if given.size_semantics not in (kind.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR, own):
        raise unimplemented(f"{what}: the sizes of action profile {name!r} are the {kind.SizeSemantics.Name(own)}")


def _weights(
    profile: p4i.ActionProfile,
    given: Iterable[p4r.ActionProfileGroup.Member | p4r.ActionProfileAction],
    most: int,
    what: str,
    *,
    too_large: grpc.StatusCode,
) -> list[int]:
    """The members' weights, in a group of size at most ``most`` (0: unbounded)."""
    by_members = _sizes_by_members(profile)
    weights: list[int] = []
    for each in given:
        if each.watch or each.watch_port:
            raise unimplemented(f"{what}: watch ports are not supported on this switch")
        weights.append(_weight(profile, each.weight, what))
        heaviest = profile.sum_of_members.max_member_weight
        if by_members and heaviest and each.weight > heaviest:
            raise invalid(f"{what}: a weight of {each.weight}; at most {heaviest}")
    size = len(weights) if by_members else sum(weights)
    if most and size > most:
        raise Failure(too_large, f"{what}: {'members' if by_members else 'weights'} of {size}; at most {most}")
    if sum(weights) > MOST_GROUP_MEMBERS:
        raise Failure(Code.RESOURCE_EXHAUSTED, f"{what}: weights of {sum(weights)}; at most {MOST_GROUP_MEMBERS}")
    return weights


def _members(group: p4r.ActionProfileMember | p4r.ActionProfileGroup) -> list[tuple[int, int]]:
    """The (profile, member) pairs of a group."""
    assert isinstance(group, p4r.ActionProfileGroup)
    return [(group.action_profile_id, each.member_id) for each in group.members]


def _check(kind: int, held: dict[int, _Held], id_: int, what: str) -> _Held | None:
    if not id_:
        raise invalid(f"{what}: ids are 1 or more")
    if kind == INSERT and id_ in held:
        raise Failure(Code.ALREADY_EXISTS, f"{what} exists already")
    if kind != INSERT and id_ not in held:
        raise not_found(f"{what} does not exist")
    return held.get(id_)
