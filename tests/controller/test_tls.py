"""The connection to the switch under TLS, with simple_switch_grpc's own options; and missing files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from serene.topologies.processes import bmv2
from tests.controller.processes import Switch, embedded, missing, serenectl
from tests.ports import some_port

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")  # made at once, unlike RSA's


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two authorities, and a certificate and key of the switch and of the controller from the first."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("tls")
    for name in ("ca", "other"):
        made = ("-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
        openssl("req", "-x509", *NEW_KEY, "-days", "2", "-subj", f"/CN={name}", *made)
    names = folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1")
    for name in ("switch", "controller"):
        request = folder / f"{name}.csr"
        openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key",
                "-out", request)  # fmt: skip
        authority = ("-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial")
        openssl("x509", "-req", "-in", request, *authority, "-days", "2", "-extfile", names,
                "-out", folder / f"{name}.pem")  # fmt: skip
    return folder


@pytest.fixture(scope="module", params=["embedded", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def switch(files: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of one that asks for a certificate, too."""
    target, grpc = request.param, f"127.0.0.1:{some_port()}"
    if target == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("needs simple_switch_grpc")
    if target == "embedded" and (lacking := missing("embedded")):
        pytest.skip(f"the embedded switch needs {lacking}")
    options = ["--grpc-server-ssl", "--grpc-server-with-client-auth"]
    for option, name in (("cacert", "ca.pem"), ("cert", "switch.pem"), ("key", "switch.key")):
        options += [f"--grpc-server-{option}", str(files / name)]
    command = bmv2(some_port()) if target == "bmv2" else embedded({}, {})
    process = Switch(command, grpc, files / "log", *options, warm=target == "embedded")
    yield grpc
    process.kill()


def up(switch: str, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    return serenectl("up", "--switch", switch, "--http", url, *options)


def test_controller_and_switch_verify_each_others_certificates(
    switch: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    http = f"127.0.0.1:{some_port()}"
    identity = ("--switch-cert", str(files / "controller.pem"), "--switch-key", str(files / "controller.key"))
    for wrong in ((), ("--switch-ca", str(files / "other.pem"), *identity), ("--switch-ca", str(files / "ca.pem"))):
        refused = up(switch, http, *wrong, "--foreground", "--wait", "0.5")
        assert refused.returncode == 1, wrong
        assert "error: no P4Runtime switch answered at" in refused.stderr
    done = up(switch, http, "--switch-ca", str(files / "ca.pem"), *identity, "--wait", "60")
    try:
        assert done.returncode == 0, done.stderr
        assert f"switch {switch} (device 0), program serene" in done.stdout
        assert "connected" in done.stdout
        check_trace(switch, files, identity)
    finally:
        serenectl("down", controller=f"http://{http}")


def check_trace(switch: str, files: Path, identity: tuple[str, ...]) -> None:
    """``serenectl trace`` takes the same files as ``serenectl up``."""
    wrong = ("--switch-ca", str(files / "other.pem"), *identity)
    refused = serenectl("trace", "--switch", switch, *wrong, warm=False)  # before gRPC is there: it has a log
    assert refused.returncode == 1 and refused.stderr.startswith(f"error: {switch}: ")
    assert len(refused.stderr.splitlines()) == 1
    done = serenectl(
        "trace", "--switch", switch, "--switch-ca", str(files / "ca.pem"), *identity, "--match", "x.y == 1"
    )
    assert done.returncode == 1
    assert "no header 'x'" in done.stderr or "this switch cannot trace" in done.stderr  # BMv2
    half = serenectl("trace", "--switch", switch, *identity[:2])
    assert (half.returncode, half.stderr.splitlines()) == (
        2,
        ["error: --switch-key: --switch-cert and --switch-key must be given together"],
    )
