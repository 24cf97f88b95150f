"""Pages of other origins, in a real browser: none changes a strategy, or shows the controller's page as its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from selenium.webdriver import Chrome

from serene.strategy import BSP
from tests.controller.processes import ControllerProcess, until

# Whatever a page can do without being allowed to: answers that it cannot read, forms, pictures, frames.
HOSTILE = """<!doctype html><title>hostile</title><iframe id="frame" src="{controller}/"></iframe>
<iframe name="sink"></iframe>
<form id="form" method="post" action="{controller}/v1/jobs" enctype="text/plain" target="sink">
<input name='{{"workers":1,"x":"' value='"}}'></form>
<script>
const done = [];
const attempts = [
    ["PUT", "/v1/jobs/0/strategy", {{name: "asp"}}], ["PUT", "/v1/jobs/0/automatic", {{name: "dssp"}}],
    ["PUT", "/v1/jobs/0/workers/0/evicted"], ["DELETE", "/v1/jobs/0"], ["POST", "/v1/shutdown"], ["POST", "/v1/jobs"],
    ["GET", "/v1/live"],
];
async function attack() {{
    for (const [method, path, body] of attempts) {{
        for (const mode of ["cors", "no-cors"]) {{
            for (const type of ["application/json", "text/plain"]) {{
                const options = {{method, mode, headers: {{"Content-Type": type}}, body: body && JSON.stringify(body)}};
                try {{
                    const answer = await fetch("{controller}" + path, options);
                    done.push(answer.type === "opaque" ? "unreadable" : "READ " + path);
                }} catch (error) {{
                    done.push("refused");
                }}
            }}
        }}
    }}
    navigator.sendBeacon("{controller}/v1/shutdown", "");
    document.getElementById("form").submit();
    try {{
        await import("{controller}/page/api.js");
        done.push("READ a module");
    }} catch (error) {{
        done.push("refused");
    }}
    document.title = "done";
}}
attack();
</script>"""


@pytest.fixture
def elsewhere(controller: ControllerProcess) -> Iterator[str]:
    """The address of another site on this machine that serves the hostile page."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(HOSTILE.format(controller=controller.url).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_page_of_another_origin_changes_nothing(
    chromium: Chrome,
    controller: ControllerProcess,
    elsewhere: str,
    host: str,
) -> None:
    """The same machine under another port, and under another name."""
    controller.client.create_job(2, BSP())
    before = controller.client.status()
    try:
        chromium.get(f"http://{elsewhere.replace('127.0.0.1', host)}/")
        until(lambda: chromium.title == "done", "all attempts are made")
        outcomes = chromium.execute_script("return done")
        assert len(outcomes) == 29
        assert not [one for one in outcomes if one.startswith("READ")]
        chromium.switch_to.frame("frame")
        assert not chromium.execute_script("return Boolean(document.getElementById('strategies'))")
        chromium.switch_to.default_content()
        assert controller.client.status() == before
    finally:
        chromium.get("about:blank")
        controller.client.delete_job(0)
    assert json.loads(controller.client.status().model_dump_json())["jobs"] == []
