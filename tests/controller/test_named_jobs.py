"""Jobs by name over HTTP: processes find a place in them without numbers, and commands take the name."""

from __future__ import annotations

import httpx
import pytest

from serene.controller.commands.view import whole
from serene.controller.jobs.job import JobState
from serene.strategy import BSP
from tests.controller.processes import Start, serenectl, until
from tests.controller.statuses import printed


def body(process: str, **changes: object) -> dict[str, object]:
    agreed = {"workers": 2, "settings": {"workers": 2, "every": 1}, "scale": 2**20, "limit": 2**20}
    return {"name": "gpt", "process": process, **agreed, **changes}


def test_places_are_requested_over_http(start: Start) -> None:
    controller = start("--gone-after", "1")
    with httpx.Client(base_url=controller.url, trust_env=False, timeout=120.0) as http:

        def ask(process: str, **changes: object) -> httpx.Response:
            return http.post("/v1/places", json=body(process, **changes))

        assert ask("a").json()["waits"] == "1 of 2 processes of job 'gpt' are here"
        for command, out, err in (
            ("explain", "not started yet: 1 of 2 processes of job 'gpt' are here\n", ""),
            ("sync bsp", "", "error: not started yet: 1 of 2 processes of job 'gpt' are here\n"),
        ):
            ask("a")  # it asks several times a second
            ended = serenectl(*command.split(), "--controller", controller.url)
            assert (ended.stdout, ended.stderr) == (out, err)
        ask("a")
        status = controller.client.status()
        assert "not started yet: 1 of 2 processes of job 'gpt' are here" in printed(whole(status), 80)
        assert ask("b").json() == {"job": 0, "worker": 1, "rack": 0, "place": 1, "waits": ""}
        assert ask("a").json()["worker"] == 0
        job = controller.client.job(0)
        assert (job.name, job.scale, job.limit, job.state) == ("gpt", 2**20, 1.0, JobState.WAITING)
        until(lambda: not controller.client.jobs(), "a named job that nobody joins is over")
        assert isinstance(ask("a", strategy={"name": "asp"}).json()["waits"], str)


@pytest.mark.targets("embedded")
def test_commands_take_a_job_by_its_name(start: Start) -> None:
    controller = start("--gone-after", "600")

    def is_made() -> bool:
        for process in "ab":
            httpx.post(f"{controller.url}/v1/places", json=body(process), trust_env=False, timeout=120.0)
        return bool(controller.client.jobs())

    until(is_made, "both processes have places")
    controller.client.create_job(2, BSP())
    for command, status, out, err in (
        ("sync asp --job gpt", 0, "job 0: BSP -> ASP, when it starts\n", ""),
        ("sync asp --job gtp", 2, "", "error: there is no job 'gtp' (jobs: 0 (gpt), 1)\n"),
        ("jobs delete --job gpt", 0, "job 0 deleted\n", ""),
    ):
        ended = serenectl(*command.split(), "--controller", controller.url)
        assert (ended.returncode, ended.stdout, ended.stderr) == (status, out, err), ended
