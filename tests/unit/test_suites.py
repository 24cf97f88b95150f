"""The runner of other projects' suites: suites in checkouts, ptf's results, and the tables it writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.suites import checkouts
from tests.suites.__main__ import Row, compared, line, write_results
from tests.suites.loading import load
from tests.suites.outcomes import Outcomes
from tests.suites.ptf_runs import outcomes_of
from tests.suites.random_packets import packets

PROGRAMS = Path(__file__).parents[1] / "embedded" / "programs"
SCRIPT = """
p4c --target bmv2 \\
    --p4runtime-files demo.p4info.txtpb \\
    demo.p4
sudo simple_switch_grpc --no-p4 -- --cpu-port 510 &
#ptf --pypath "$P" --test-dir elsewhere --list
sudo `which ptf` --pypath "$P" --test-dir ptf
"""


def test_ptf_outcomes_are_parsed_after_printed_output() -> None:
    output = """Using packet manipulation module: ptf.packet_scapy
a.One ... ok
a.Two ... printed
more printed ... FAIL
a.Three ... udp ... ERROR
b.Four ... skipped 'why'

======================================================================
FAIL: a.Two
----------------------------------------------------------------------
Traceback (most recent call last):
  File "a.py", line 7, in runTest
    raise KeyError
KeyError

During handling of the above exception, another exception occurred:

AssertionError: no packet
it was: 00

----------------------------------------------------------------------
Ran 4 tests
"""
    outcomes = {"a.One": "pass", "a.Two": "fails: AssertionError: no packet", "a.Three": "fail", "b.Four": "skipped"}
    assert outcomes_of(output) == outcomes
    assert outcomes_of("Traceback (most recent call last):\nImportError") == {}


def test_suite_row_lists_cases_only_one_switch_passes() -> None:
    row = compared("s", {"bmv2": {"a": "pass", "b": "pass"}, "serene-switch": {"a": "pass", "b": "refused"}})
    assert line(row.cells()) == "| s |  | 2 | 2 | 1 | b: BMv2 alone (refused) |" and row.behind
    row = compared("s", {"bmv2": {"a": "fail", "b": "x"}, "serene-switch": {"a": "fail", "b": "y"}})
    assert row.differences == ("a: neither (fail)", "b: neither (x; y)") and not row.behind
    row = compared(
        "s",
        {"bmv2": {"a 10": "x", "a 9": "x", "b 1": "x"}, "serene-switch": dict.fromkeys(("a 9", "a 10", "b 1"), "y")},
    )
    assert row.differences == ("a 9, 10: neither (x; y)", "b 1: neither (x; y)")
    row = compared("s", {"bmv2": {"a": "00" * 99}, "serene-switch": {"a": "pass"}})
    assert row.differences == (f"a: ours alone ({'0' * 117}...)",)
    row = compared("s", {"bmv2": {"a": "fail"}, "serene-switch": {"a": "pass"}})
    assert line(row.cells()) == "| s |  | 1 | 0 | 1 | a: ours alone (fail) |" and not row.behind


def test_suite_results_keep_rows_of_suites_that_did_not_run(tmp_path: Path) -> None:
    document, results = tmp_path / "page.md", tmp_path / "results.csv"
    begin, end = "<!-- suites: begin -->", "<!-- suites: end -->"
    document.write_text(f"before\n{begin}\n{end}\nafter\n")
    write_results([Row("x", 1, {"bmv2": 1}, checkout="abc"), Row("y", 2, {"bmv2": 2})], results, document)
    write_results([Row("x", 0, {}, needs="needs p4c"), Row("y", 2, {"serene-switch": 2})], results, document)
    assert document.read_text().splitlines() == [
        "before", begin, "| suite | commit | tests | BMv2 | ours | differences |", "|---|---|---|---|---|---|",
        "| x | abc | 1 | 1 | - |  |", "| y |  | 2 | - | 2 |  |", end, "after",
    ]  # fmt: skip
    assert results.read_text().splitlines()[1:] == ["x,abc,1,1,-,", "y,,2,-,2,"]


def test_checkout_suites_are_read_from_runptf_scripts(tmp_path: Path) -> None:
    for folder in ("ptf-tests/one", "ipdk/two"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "runptf.sh").write_text(SCRIPT)
    (suite,) = checkouts.suites("P4_GUIDE", tmp_path)
    place = tmp_path / "ptf-tests" / "one"
    assert (suite.name, suite.tests, suite.cpu_port) == ("ptf-tests/one", place / "ptf", 510)
    assert suite.program.source == place / "demo.p4"


def test_checkout_programs_are_found_and_loaded() -> None:
    """The checkout consists of our own programs."""
    found = {program.source.name: program for program in checkouts.programs(PROGRAMS)}
    assert {"mirror.p4", "mirror.json", "value_sets.json"} <= set(found) and "value_sets.p4info.txtpb" not in found
    assert found["value_sets.json"].p4info == PROGRAMS / "value_sets.p4info.txtpb"
    loaded = load(found["value_sets.json"], "serene-switch")
    assert loaded is not None and loaded.why_not == ""
    wrong = checkouts.Program(PROGRAMS / "value_sets.json", PROGRAMS / "p4rt_probe.p4info.txtpb")
    loaded = load(wrong, "serene-switch")
    assert loaded is not None and "the P4Info does not fit the program" in loaded.why_not


def test_fabric_profiles_are_separate_programs(tmp_path: Path) -> None:
    """p4c refuses the program without its makefile's options, so that is not one of them."""
    source = tmp_path / "p4src" / "v1model" / "fabric_v1model.p4"
    source.parent.mkdir(parents=True)
    source.write_text("V1Switch")
    found = list(checkouts.programs(tmp_path, "FABRIC"))
    assert {each.source for each in found} == {source}
    assert [each.options[1:] for each in found] == [(), ("-DWITH_INT",), ("-DWITH_UPF",), ("-DWITH_UPF", "-DWITH_INT")]


def test_p4_14_programs_of_p4c_are_found_as_translated(tmp_path: Path) -> None:
    """The translator's intermediate programs beside them are not programs of their own."""
    for path in ("p4_14_samples/a.p4", "p4_14_samples_outputs/a.p4", "p4_14_samples_outputs/a-first.p4"):
        (tmp_path / "testdata" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "testdata" / path).write_text("V1Switch" if "outputs" in path else "control ingress {}")
    translated = tmp_path / "testdata" / "p4_14_samples_outputs" / "a.p4"
    assert [each.source for each in checkouts.programs(tmp_path, "P4C")] == [translated]
    assert [each.source for each in checkouts.programs(tmp_path, "UP4")] == []


def test_resumed_command_runs_only_tests_that_are_new_or_changed(tmp_path: Path) -> None:
    program, file, ran = checkouts.Program(PROGRAMS / "mirror.json"), tmp_path / "outcomes.jsonl", list[str]()

    def outcome(known: Outcomes, test: str, script: bytes) -> object:
        def run() -> list[int]:
            ran.append(test)
            return [len(ran)]

        return known.of("stf", ["serene-switch"], test, program, run, script)

    assert outcome(Outcomes(path=file), "a", b"1") == [1]
    file.write_bytes(file.read_bytes() + b'null\n{"outcome": 1}\n\xff\n{"key": "a killed comm')
    resumed = Outcomes(resume=True, path=file)
    assert [outcome(resumed, "a", b"1"), outcome(resumed, "b", b"1"), outcome(resumed, "a", b"2")] == [[1], [2], [3]]
    again = Outcomes(resume=True, path=file)
    assert again.of("stf", ["bmv2"], "a", program, lambda: "of the other switch", b"1") == "of the other switch"
    assert [outcome(again, "b", b"1"), outcome(again, "a", b"2")] == [[2], [3]]  # the partial line took none with it
    assert outcome(Outcomes(path=file), "a", b"1") == [4] and ran == ["a", "b", "a", "a"]


@pytest.mark.skipif(shutil.which(checkouts.COMPILER) is None, reason=f"needs {checkouts.COMPILER}")
def test_program_is_compiled_again_when_a_file_that_it_includes_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkouts, "BUILT", tmp_path / "built")
    source, included = tmp_path / "mirror.p4", tmp_path / "included.p4"
    source.write_text((PROGRAMS / "mirror.p4").read_text() + '#include "included.p4"\n')
    compiled = []
    for text in ("const bit<8> ONE = 1;", "const bit<8> ONE = 1;", "const bit<8> TWO = 2;"):
        included.write_text(text)
        compiled.append(checkouts.Program(source).compiled())
    assert compiled[0] == compiled[1] != compiled[2]
    for built, info in compiled:
        assert info is not None and built.exists() and info.exists()
    assert len(list((tmp_path / "built").iterdir())) == 4


def test_random_packets_follow_parser_transitions() -> None:
    """Through a header's fields, each of which fills whole bytes, and through a masked lookahead."""
    ahead = {"type": "lookahead", "value": [0, 8]}
    states = [
        {"name": "a", "parser_ops": [{"op": "extract", "parameters": [{"type": "regular", "value": "h"}]}],
         "transition_key": [{"type": "field", "value": ["h", name]} for name in ("kind", "other")],
         "transitions": [{"type": "hexstr", "value": "0x0800012345", "mask": None, "next_state": "b"},
                         {"type": "default", "next_state": None}]},
        {"name": "b", "parser_ops": [{"op": "set", "parameters": [{"type": "field", "value": ["m", "x"]}, ahead]}],
         "transition_key": [{"type": "field", "value": ["m", "x"]}],
         "transitions": [{"type": "hexstr", "value": "0x50", "mask": "0xf0", "next_state": None}]},
    ]  # fmt: skip
    program = {
        "header_types": [{"name": "h_t", "fields": [["other", 20, False], ["kind", 12, False]]}],
        "headers": [{"name": "h", "header_type": "h_t"}],
        "parsers": [{"init_state": "a", "parse_states": states}],
    }
    made = [packet for _, packet in packets(program, "seed", 400)]
    through = [packet for packet in made if len(packet) > 4 and packet.startswith(b"\x12\x34\x58\x00")]
    assert len(through) > 50 and sum(packet[4] >> 4 == 5 for packet in through) > 30
