"""Jobs by name over HTTP: processes find a place in them without numbers, and commands take the name."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from serene.controller.commands.view import whole
from serene.controller.http.client import ControllerClient
from serene.controller.jobs.job import JobState
from serene.strategy import BSP
from tests.controller.processes import PATIENCE_S, serenectl, until
from tests.controller.statuses import printed

pytestmark = pytest.mark.targets("embedded")

Ask = Callable[..., dict[str, object]]


@pytest.fixture
def ask(client: ControllerClient) -> Ask:
    """Has a process ask for a place in the job of a name."""

    def post(name: str, process: str, **more: object) -> dict[str, object]:
        agreed = {"workers": 2, "settings": {"workers": 2, "every": 1}, "scale": 2**20, "limit": 2**20}
        body = {"name": name, "process": process, **agreed, **more}
        answer = httpx.post(f"{client.url}/v1/places", json=body, trust_env=False, timeout=PATIENCE_S)
        found: dict[str, object] = answer.raise_for_status().json()
        return found

    return post


def test_places_are_requested_over_http(client: ControllerClient, ask: Ask) -> None:
    waits = "1 of 2 processes of job 'gpt' are here"
    for command, out, err in (
        ("explain", f"not started yet: {waits}\n", ""),
        ("sync bsp", "", f"error: not started yet: {waits}\n"),
    ):

        def printed_so(command: str = command, wanted: tuple[str, str] = (out, err)) -> bool:
            assert ask("gpt", "a", strategy={"name": "asp"})["waits"] == waits  # it asks several times a second
            ended = serenectl(*command.split(), controller=client.url)
            return (ended.stdout, ended.stderr) == wanted

        until(printed_so, f"{command} says who is there")
    ask("gpt", "a")
    assert f"not started yet: {waits}" in printed(whole(client.status()), 80)
    assert ask("gpt", "b") == {"job": 0, "worker": 1, "rack": 0, "place": 1, "waits": ""}
    assert ask("gpt", "a")["worker"] == 0
    job = client.job(0)
    assert (job.name, job.scale, job.limit, job.state) == ("gpt", 2**20, 1.0, JobState.WAITING)


def test_commands_take_a_job_by_its_name(client: ControllerClient, ask: Ask) -> None:
    for process in "ab":
        ask("bert", process)
    client.create_job(2, BSP())
    for command, status, out, err in (
        ("sync asp --job bert", 0, "job 0: BSP -> ASP, when it starts\n", ""),
        ("sync asp --job bret", 2, "", "error: there is no job 'bret' (jobs: 0 (bert), 1)\n"),
        ("jobs delete --job bert", 0, "job 0 deleted\n", ""),
    ):
        ended = serenectl(*command.split(), controller=client.url)
        assert (ended.returncode, ended.stdout, ended.stderr) == (status, out, err), ended
