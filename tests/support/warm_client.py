# What `warm_python()` runs (tests/support/warm.py), after a line `SOCKET = ...`: asks the server for a process, passes
# signals on to it, and ends as it does.
import json
import os
import signal
import socket
import sys

SERVER_ENDED = 70  # the exit status if the server has ended


def answer() -> int:
    number = answers.read(4)
    if len(number) < 4:
        os._exit(SERVER_ENDED)
    return int.from_bytes(number, "big", signed=True)


server = socket.socket(socket.AF_UNIX)
server.connect(SOCKET)  # type: ignore[name-defined] # noqa: F821
request = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
message = json.dumps(request).encode() + b"\n"
network = os.open("/proc/self/ns/net", os.O_RDONLY)
socket.send_fds(server, [len(message).to_bytes(4, "big")], [0, 1, 2, network])
server.sendall(message)
with server.makefile("rb") as answers:
    process = answer()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda passed_on, _: os.kill(process, passed_on))
    for stream in (0, 1, 2):  # whoever reads a pipe to its end waits for the process alone
        os.close(stream)
    status = answer()
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
