"""The mutants of `make mutants`: each is one change, they cover all parts of the programs, and a seed determines their
order."""

from __future__ import annotations

import itertools
import json
from functools import cache, partial

import pytest

from tests.mutation.__main__ import ROOT, TARGETS, judge
from tests.mutation.mutants import EQUIVALENT, Mutant, drawn, why_equivalent

DRAWN = 64


def drawn_by(seed: int, name: str) -> list[Mutant]:
    mutants = TARGETS[name].mutants(TARGETS[name].path.read_text(), seed)
    return list(itertools.islice(drawn(mutants, seed), DRAWN))


@cache
def all_of(name: str) -> list[Mutant]:
    return list(TARGETS[name].mutants(TARGETS[name].path.read_text(), 1))


first = cache(partial(drawn_by, 1))


def test_json_mutant_changes_one_item() -> None:
    """One item of one list: an action, a parser state, a table or a condition."""
    document = json.loads(TARGETS["v1model"].path.read_text())
    for mutant in first("v1model"):
        changed = json.loads(mutant.text())
        assert changed.keys() == document.keys()
        (section,) = [name for name in document if changed[name] != document[name]]
        pairs = zip(document[section], changed[section], strict=True)
        assert sum(one != other for one, other in pairs) == 1, mutant


def test_tofino_mutant_changes_one_line() -> None:
    lines = TARGETS["tofino"].path.read_text().split("\n")
    for mutant in first("tofino"):
        changed = mutant.text().split("\n")
        assert len(changed) == len(lines)
        assert sum(one != other for one, other in zip(lines, changed, strict=True)) == 1, mutant


@pytest.mark.parametrize("name", TARGETS)
def test_tests_that_judge_mutants_exist(name: str) -> None:
    assert all((ROOT / path).is_file() for path in TARGETS[name].tests)


@pytest.mark.parametrize("name", TARGETS)
def test_mutant_order_is_determined_by_the_seed(name: str) -> None:
    assert first(name) == drawn_by(1, name) != drawn_by(2, name)


@pytest.mark.parametrize("name", TARGETS)
def test_first_mutants_cover_every_part_of_the_program(name: str) -> None:
    parts = {mutant.part for mutant in all_of(name)}
    assert {mutant.part for mutant in first(name)[: len(parts)]} == parts
    controls = {
        "v1model": {"parser", "checksum", "forwarding", "admission", "barrier", "aggregation", "answer"},
        "leaf": {"serene_leaf", "leaf_barrier", "leaf_aggregation", "leaf_answer"},
        "root": {"serene_root", "root_barrier", "root_aggregation", "root_answer"},
    }
    assert parts >= controls.get(name, {"Parser", "admission", "barrier", "aggregation", "answer", "contributed"})


def test_mutants_use_many_operators() -> None:
    for name, wanted in (("v1model", 12), ("tofino", 8)):
        assert len({mutant.operator for mutant in first(name)}) >= wanted


def test_every_explanation_matches_an_existing_mutant() -> None:
    """Under any seed: which bits a mask loses is drawn."""
    there = [*all_of("v1model"), *all_of("tofino")]
    explained = {why_equivalent(mutant) for mutant in there} - {""}
    assert explained == set(EQUIVALENT.values())


def test_killed_mutant_names_the_test_that_killed_it() -> None:
    mutant = next(mutant for mutant in drawn(all_of("v1model"), 1) if mutant.kind == ("parser", "header not sent"))
    verdict = judge(mutant)
    assert verdict is not None and verdict.killed_by.startswith("dataplane/test_")


def test_mutant_that_does_not_load_is_not_judged() -> None:
    assert judge(Mutant("v1model", "parser", "constant", "", lambda: "{}")) is None
    assert judge(Mutant("tofino", "Parser", "constant", "", lambda: "parser P( {")) is None
