"""Several switches on the command line; errors name the wrong part."""

from __future__ import annotations

import pytest

from serene.controller.settings import BadSettings, settings
from serene.racks import Racks
from serene.strategy import BadStrategy

TWO = "leaf1=127.0.0.1:9560,leaf2=127.0.0.1:9561"


def test_root_is_listed_first_and_leaves_in_rack_order() -> None:
    named = settings(switch="leaf1=127.0.0.1:9560,root=127.0.0.1:9559,east=127.0.0.1:9561").switches
    assert [switch.name for switch in named] == ["root", "leaf1", "east"]
    assert settings(switch="127.0.0.1:9559").switches == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"switch": TWO}, "--switch: no root: expected root=HOST:PORT beside leaf1 or leaf2"),
        (
            {"switch": "root=127.0.0.1:1"},
            "--switch: 0 leaves below the root: expected 2 to 8; one switch needs no root",
        ),
        (
            {"switch": "root=127.0.0.1:1,leaf1=127.0.0.1:2"},
            "--switch: 1 leaf below the root: expected 2 to 8; one switch needs no root: --switch HOST:PORT",
        ),
        (
            {"switch": ",".join(["root=127.0.0.1:1", *(f"leaf{n}=127.0.0.1:{n + 1}" for n in range(1, 10))])},
            "--switch: 9 leaves below the root: expected 2 to 8",
        ),
        ({"switch": f"root=127.0.0.1:1,{TWO},leaf1=127.0.0.1:7"}, "--switch: two switches have the name leaf1"),
        ({"switch": f"root=127.0.0.1:9560,{TWO}"}, "--switch: root and leaf1 are both at 127.0.0.1:9560"),
        (
            {"switch": "root=127.0.0.1:1,127.0.0.1:2"},
            "--switch: '127.0.0.1:2': with several switches, expected NAME=HOST:PORT",
        ),
        (
            {"switch": "127.0.0.1:1,127.0.0.1:2"},
            "--switch: '127.0.0.1:1': with several switches, expected NAME=HOST:PORT",
        ),
        ({"switch": "root=127.0.0.1"}, "--switch: '127.0.0.1': expected HOST:PORT"),
        ({"ports": "1-40"}, "--uplink: 33 is one of the workers' --ports 1-40: expected another port"),
        ({"ports": "1-x"}, "--ports: "),
        (
            {"program": "serene_jumbo"},
            "--program: 'serene_jumbo': expected none with several switches, which run serene_leaf",
        ),
        ({"udp_ports": "1:24200:24201"}, "--udp-ports: expected with one switch only, not with several"),
    ],
)
def test_bad_rack_settings_error_names_the_fault(wrong: dict[str, str], why: str) -> None:
    with pytest.raises(BadSettings) as error:
        settings(**{"switch": f"root=127.0.0.1:9559,{TWO}", **wrong})
    assert str(error.value).startswith(why)


def test_worker_names_over_racks_convert_to_numbers() -> None:
    racks = Racks.of([2, 0, 3])
    assert [racks.name(worker) for worker in range(5)] == ["0.0", "0.1", "2.0", "2.1", "2.2"]
    assert [racks.worker(name) for name in ("0.1", "2.2", "3")] == [1, 4, 3]
    assert [racks.number(2, 1), racks.number(1, 0), racks.number(3, 0)] == [3, None, None]
    assert Racks.of([4]).name(3) == "3"
    for name in ("1.0", "5", "2.3", "x", "0.0.0", "-1"):
        with pytest.raises(BadStrategy, match=r"expected 0 to 4, or 0\.0 to 2\.2"):
            racks.worker(name)
    for sizes in ([], [0, 0], [33, 1], [-1, 2], [1] * 9):
        with pytest.raises(BadStrategy, match="expected"):
            Racks.of(sizes)
