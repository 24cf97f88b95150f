"""For all tests: Ctrl-C means what it means in a terminal, also where the tests were started in the background; and
which tests run beside each other (``make test``).

A shell without job control starts background jobs with SIGINT ignored, and every process of a test would inherit that.
"""

import signal

import pytest
from hypothesis import Phase, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts by the clock: an example may take as long as a busy machine makes it take.
settings.register_profile("no-deadline", deadline=None)
settings.register_profile("first-failure", deadline=None, phases=[Phase.explicit, Phase.generate])  # make mutants
settings.load_profile("no-deadline")

MININET = "mininet"
LONG_FIRST = ("tests/endtoend/", "tests/topologies/", "tests/controller/", "tests/torch/", "tests/workers/")


def group(item: pytest.Item) -> str:
    """Tests of one group run one after another, in one process: those that need Mininet, and those that share a switch
    and what they start it with, a module's for each target."""
    if item.get_closest_marker("mininet"):
        return MININET
    module = item.nodeid.partition("::")[0]
    targets = getattr(item, "callspec", None)
    target = targets.params.get("switch") or targets.params.get("target") if targets else None
    return f"{module}-{target}" if isinstance(target, str) else module


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("loadgroup", False):  # one of several processes
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))

    def rank(item: pytest.Item) -> int:
        """What takes long begins first, or it would go on alone at the end."""
        if item.get_closest_marker("mininet"):
            return -1
        starts = (number for number, path in enumerate(LONG_FIRST) if item.nodeid.startswith(path))
        return next(starts, len(LONG_FIRST))

    items.sort(key=rank)
