"""Automatic strategies are loaded by name or from a user's file, and bad ones are refused. No switch."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from serene.controller.automatic import (
    SHIPPED,
    BadAutomatic,
    Decision,
    checked,
    in_words,
    load,
)
from serene.controller.automatic.choices import shipped
from serene.controller.automatic.loading import LONGEST_REASON
from serene.controller.automatic.runner import UserCode
from serene.controller.automatic.trust import LARGEST
from serene.errors import SereneError
from serene.strategy import BSP, SSP
from tests.controller.observations import seen, view, waiting
from tests.controller.processes import ROOT

PAGE = ROOT / "docs" / "automatic-strategies.md"


# -- loading -------------------------------------------------------------------------------------------------


def page_example() -> str:
    match = re.search(r"<!-- my_strategy.py.*?-->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "my_strategy.py"
    file.write_text(page_example())
    return file


def test_strategy_example_of_the_page_works(own: Path) -> None:
    automatic = load(f"{own}:Impatient", {"share": "0.3"})
    assert automatic.period_s == 0.5
    assert automatic.decide(waiting(0.25, BSP())) is None
    assert automatic.decide(waiting(0.35, BSP())) == SSP(1)
    assert automatic.decide(waiting(0.35, SSP(15))) == SSP(15)


def test_strategy_page_lists_shipped_strategies_and_parameters() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \|.*?\| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE))
    choices = {choice.name: choice.parameters for choice in shipped()}  # as the live page's form shows them
    assert choices.keys() == SHIPPED.keys()
    for name, parameters in choices.items():
        defaults = {parameter.name: parameter.default for parameter in parameters}
        documented = dict(re.findall(r"`(\w+)` ([\w.]+)", rows[name]))
        shown = {
            key: format(value, "g") if type(value) is not bool else str(value).lower()
            for key, value in defaults.items()
        }
        assert documented == shown, name


def test_automatic_strategy_may_be_a_function(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("from serene.strategy import SSP\ndef steady(seen, bound: int = 2):\n    return SSP(bound)\n")
    assert load(f"{file}:steady").decide(seen(view(0))) == SSP(2)
    assert load(f"{file}:steady", {"bound": "4"}).decide(seen(view(0))) == SSP(4)


@pytest.mark.parametrize("parameter", ["bound: int | None = None", "bound: Optional[int] = None", "bound=2"])
def test_parameter_that_may_be_none_or_has_no_annotation_is_converted(parameter: str, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    head = "from typing import Optional\nfrom serene.strategy import SSP\n"
    file.write_text(f"{head}def steady(seen, {parameter}):\n    return SSP(bound)\n")
    assert load(f"{file}:steady", {"bound": "4"}).decide(seen(view(0))) == SSP(4)
    with pytest.raises(BadAutomatic, match="bound is a whole number, not 'four'"):
        load(f"{file}:steady", {"bound": "four"})


def test_bad_strategy_files_are_refused(own: Path, tmp_path: Path) -> None:
    with pytest.raises(BadAutomatic, match="has no automatic strategy 'Patient'; it has Impatient"):
        load(f"{own}:Patient")
    with pytest.raises(BadAutomatic, match=f"{own} needs a NAME: expected {own}:Impatient$"):
        load(str(own))
    with own.open("a") as text:
        text.write("\ndef steady(seen):\n    return None\n")
    with pytest.raises(BadAutomatic, match=f"{own} needs a NAME: expected {own}:Impatient or {own}:steady$"):
        load(str(own))
    own.write_text("import nothing_of_the_kind")
    with pytest.raises(BadAutomatic, match=r"my_strategy.py: ModuleNotFoundError"):
        load(f"{own}:Impatient")
    own.write_text("import sys\nsys.exit(3)")
    with pytest.raises(BadAutomatic, match=r"my_strategy.py: SystemExit: 3"):
        load(f"{own}:Impatient")
    own.write_text("class Lazy:\n    def __getattribute__(self, name):\n        raise OSError(name)\nlazy = Lazy()\n")
    with pytest.raises(BadAutomatic, match=r"my_strategy.py:Impatient: OSError: __"):
        load(f"{own}:Impatient")
    own.write_text("raise ValueError('ill\\x1b[31m\\n' + 'x' * 10**6)")
    with pytest.raises(BadAutomatic, match=r"my_strategy.py: ValueError: ill\\x1b\[31m\\nxxx+\.\.\.$") as long:
        load(f"{own}:Impatient")
    assert len(str(long.value)) < 700
    own.write_text("class Rude(Exception):\n    def __str__(self): return 1 / 0\nraise Rude\n")
    with pytest.raises(BadAutomatic, match=r"my_strategy.py: Rude$"):
        load(f"{own}:Impatient")
    own.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(BadAutomatic, match=f"longer than {LARGEST} bytes"):
        load(f"{own}:Impatient")
    own.write_text("def needs(seen, bound: int): ...\ndef fails(seen, x: int = 1 / 1): ...\n")
    with pytest.raises(BadAutomatic, match="parameter bound is missing"):
        load(f"{own}:needs")


def test_strategy_period_out_of_bounds_is_refused(own: Path) -> None:
    for period in ("-1", "0", "float('nan')", "'often'", "1e9", "None", "True"):
        eager = f"class Eager(Impatient):\n    period_s = {period}\n    def __init__(self): ...\n"
        own.write_text(f"{page_example()}\n\n{eager}")
        with pytest.raises(BadAutomatic, match=r"my_strategy.py:Eager: period_s .*: expected 0.05 to 3600 seconds"):
            load(f"{own}:Eager")


def test_unknown_needs_of_a_strategy_are_refused(own: Path) -> None:
    for needs in ("('speed',)", "'loss'", "None"):
        own.write_text(f"{page_example()}\n\nclass Needy(Impatient):\n    needs = {needs}\n")
        with pytest.raises(BadAutomatic, match=r"Needy: needs .*: expected a tuple of id, is_member, .* or busy_s"):
            load(f"{own}:Needy")


def test_class_that_is_no_automatic_strategy_is_refused(own: Path) -> None:
    own.write_text("class Other:\n    def decide(self, seen): ...\n")
    with pytest.raises(BadAutomatic, match=r"Other is not a subclass of serene\.controller\.automatic\.Automatic"):
        load(f"{own}:Other")


class Sly(SSP):
    """A strategy of a class that Serene does not have."""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("ssp", "decide() returned 'ssp': expected a Strategy, a Decision or None"),
        (Sly(1), "decide() returned Sly(staleness=1): expected a Strategy, a Decision or None"),
        (Decision("bsp"), "decide() returned a Decision with strategy 'bsp': expected a Strategy"),  # type: ignore[arg-type]
        (Decision(BSP(), 3), "decide() returned a Decision with evicted 3: expected a set of worker ids"),  # type: ignore[arg-type]
        (Decision(BSP(), {"0"}), "decide() returned a Decision with evicted {'0'}: expected a set of worker ids"),  # type: ignore[arg-type]
        (Decision(BSP(), reason=3), "decide() returned a Decision with reason 3: expected a text"),  # type: ignore[arg-type]
        (SSP(2.5), "ssp: staleness is a whole number, not 2.5"),  # type: ignore[arg-type]
        (Decision(SSP(2.5)), "ssp: staleness is a whole number, not 2.5"),  # type: ignore[arg-type]
    ],
)
def test_impossible_decision_is_refused(answer: object, message: str) -> None:
    with pytest.raises(SereneError) as refused:
        checked(answer)
    assert str(refused.value) == message


def test_texts_of_users_code_are_short_lines_that_a_terminal_can_show() -> None:
    """They are in every status."""
    decided = checked(Decision(BSP(), reason="ill \ud800\x1b[31m\nline " + "x" * 10**6))
    assert isinstance(decided, Decision)
    assert decided.reason.startswith(r"ill \ud800\x1b[31m\nline xxx") and len(decided.reason) <= LONGEST_REASON
    for error in (SereneError("ill \ud800\n" + "x" * 10**6), ValueError("ill \ud800\n" + "x" * 10**6)):
        text = in_words(error)
        assert text.isprintable() and r"ill \ud800\n" in text and text.endswith("xxx...") and len(text) <= 500


class Rude(SereneError):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_error_of_users_code_without_a_text_has_its_name() -> None:
    """Otherwise the strategy would end without a status and an event."""
    assert in_words(Rude()) == "Rude"


# -- whose files ---------------------------------------------------------------------------------------------


def test_strategy_file_writable_by_others_is_refused(own: Path, tmp_path: Path) -> None:
    """A link is judged by its target."""
    link = tmp_path / "link.py"
    link.symlink_to(own)
    assert load(f"{link}:Impatient")
    for mode in (0o664, 0o646, 0o622, 0o666):
        own.chmod(mode)
        for path in (own, link):
            with pytest.raises(BadAutomatic, match=f"mode {mode:o}: .* no write access for others"):
                load(f"{path}:Impatient")


def test_strategy_file_in_a_writable_folder_is_refused(own: Path) -> None:
    below = own.parent / "below"
    below.mkdir()
    moved = own.rename(below / own.name)
    own.parent.chmod(0o775)
    with pytest.raises(BadAutomatic, match=f"{own.parent} belongs to .* mode 775: .* no write access for others"):
        load(f"{moved}:Impatient")
    own.parent.chmod(0o1777)  # as /tmp is: nobody can take the file's place
    assert load(f"{moved}:Impatient")


def test_pipe_as_strategy_file_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(BadAutomatic, match=r"pipe\.py: not a file"):
        load(f"{tmp_path / 'pipe.py'}:X")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to give a file to somebody else")
def test_strategy_file_of_another_owner_than_the_caller_of_sudo_is_refused(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(own, 65534, 65534)
    with pytest.raises(BadAutomatic, match=r"belongs to uid 65534, mode .*: expected the controller's user as owner"):
        load(f"{own}:Impatient")
    monkeypatch.setenv("SUDO_UID", "65534")
    assert load(f"{own}:Impatient")


@pytest.mark.parametrize(
    ("error", "message"),
    [(StopIteration(), "StopIteration"), (TimeoutError("mine"), "mine"), (SystemExit(3), "SystemExit")],
)
def test_user_error_that_asyncio_treats_specially_is_passed_on(error: BaseException, message: str) -> None:
    def decide() -> None:
        raise error

    async def asked() -> None:
        await UserCode().call(decide)

    with pytest.raises(Exception, match=message) as failed:
        asyncio.run(asked())
    assert not isinstance(failed.value, BadAutomatic)
