"""How many students one machine carries: a real JupyterHub on loopback, and N students who work.

    python tests/site/hub_load.py 1 5 10 20        a table (some minutes)
    python tests/site/hub_load.py --seconds 20 3   shorter

Each student logs in, gets a copy of the course, opens notebook 4, runs all of it, and then moves a
knob of *Teach bank*, which Python draws, once a second. Printed are the seconds of starting and of
running all; the milliseconds from a move to its new picture, as the student's end of the web
socket has them; and the memory (PSS) of a student's server and kernel.

The Hub and its proxy are installed into an environment of their own, build/environments/hub, which
also sees the packages of this one.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import statistics
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from pathlib import Path

import psutil
from tornado import httpclient, websocket

ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / "build/environments/hub"
NOTEBOOK = "my_course/04_softmax_and_values.ipynb"
ENOUGH = 300  # milliseconds within which 95 % of the moves are to be seen
CONFIG = """
import os
exec(open({config!r}, encoding="utf-8").read(), {{**globals(), "__file__": {config!r}}})
c.JupyterHub.bind_url = {address!r}
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = [{proxy!r}]
c.JupyterHub.authenticator_class = "dummy"
c.Spawner.args = ["--allow-root"] if os.geteuid() == 0 else []
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {homes!r} + "/{{username}}"
c.JupyterHub.db_url = "sqlite:///" + {homes!r} + "/hub.sqlite"
c.JupyterHub.cookie_secret_file = {homes!r} + "/secret"
c.JupyterHub.services += [{{"name": "load", "api_token": {token!r}}}]
c.JupyterHub.load_roles += [{{"name": "load", "services": ["load"], "scopes": [
    "admin:users", "admin:servers", "access:servers", "tokens"]}}]
"""
FIND = "print(teach.knobs['W_Q'].comm.comm_id, teach.screen.comm.comm_id)"


def install():
    """The Hub's environment."""
    if (HUB / "node_modules/.bin/configurable-http-proxy").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", HUB], check=True)
    sees = next(HUB.glob("lib/python*/site-packages")) / "course.pth"
    sees.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    hub = [HUB / "bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*hub, "jupyterhub>=5.3,<7", "jupyterhub-idle-culler"], check=True)
    npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "configurable-http-proxy@5"]
    subprocess.run(npm, cwd=HUB, check=True)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextlib.contextmanager
def running_hub(folder):
    """The Hub with the course's settings, for invented students; yields its address and a token."""
    port, hub_port, proxy_port = free_ports(3)
    address, token = f"http://127.0.0.1:{port}", secrets.token_hex(16)
    settings = dict(
        config=str(ROOT / ".hub/jupyterhub_config.py"),
        address=address,
        hub_port=hub_port,
        proxy_port=proxy_port,
        proxy=str(HUB / "node_modules/.bin/configurable-http-proxy"),
        homes=str(folder),
        token=token,
    )
    config = folder / "config.py"
    config.write_text(CONFIG.format(**settings), encoding="utf-8")
    log = (folder / "hub.log").open("w", encoding="utf-8")
    hub = subprocess.Popen(
        [HUB / "bin/python", "-m", "jupyterhub", "--config", config],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")},
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield address, token, hub.pid
    except BaseException:
        print((folder / "hub.log").read_text(encoding="utf-8")[-3000:], file=sys.stderr)
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(hub.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            hub.wait(timeout=30)
        for child in psutil.process_iter(["environ"]):
            if str(folder) in str((child.info["environ"] or {}).get("HOME")):
                child.kill()


class Student:
    """One student, from log-in to the last move."""

    def __init__(self, name, address, token):
        self.name, self.address, self.token = name, address, token
        self.client = httpclient.AsyncHTTPClient()

    async def ask(self, path, method="GET", /, **body):
        request = httpclient.HTTPRequest(
            self.address + path,
            method,
            {"Authorization": f"token {self.token}"},
            json.dumps(body) if method == "POST" else None,
            request_timeout=300,
        )
        answer = await self.client.fetch(request)
        return json.loads(answer.body or b"null")

    async def start(self):
        await self.ask(f"/hub/api/users/{self.name}", "POST")
        await self.ask(f"/hub/api/users/{self.name}/server", "POST")
        while (
            not (await self.ask(f"/hub/api/users/{self.name}"))["servers"].get("", {}).get("ready")
        ):
            await asyncio.sleep(0.2)

    async def open(self):
        """Open notebook 4, with a kernel of its own."""
        home = f"/user/{self.name}/api"
        notebook = await self.ask(f"{home}/contents/{NOTEBOOK}?content=1")
        kind = {"name": "python3"}
        session = await self.ask(
            f"{home}/sessions", "POST", path=NOTEBOOK, name="", type="notebook", kernel=kind
        )
        kernel = session["kernel"]["id"]
        address = self.address.replace("http", "ws", 1) + f"{home}/kernels/{kernel}/channels"
        request = httpclient.HTTPRequest(address, headers={"Authorization": f"token {self.token}"})
        self.socket = await websocket.websocket_connect(request, max_message_size=2**26)
        return [c["source"] for c in notebook["content"]["cells"] if c["cell_type"] == "code"]

    async def send(self, kind, content):
        header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": self.name}
        header |= {"username": self.name, "version": "5.3", "date": "2026-01-01T00:00:00Z"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        await self.socket.write_message(json.dumps(message | {"channel": "shell", "buffers": []}))
        return header["msg_id"]

    async def hear(self):
        said = await self.socket.read_message()
        if said is None:
            raise ConnectionError("the kernel's web socket was closed")
        if isinstance(said, bytes):  # JSON first, then the bytes of a picture
            start, end = struct.unpack("!II", said[4:12])
            said = said[start:end]
        return json.loads(said)

    async def run(self, code):
        """Run a cell; return what it printed."""
        asked = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        number, printed = await self.send("execute_request", asked | {"user_expressions": {}}), ""
        while True:
            message = await self.hear()
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "error":
                raise RuntimeError("\n".join(content["traceback"]))
            if kind == "stream":
                printed += content["text"]
            if kind == "status" and content["execution_state"] == "idle":
                return printed

    async def move(self, seconds, chance):
        """Move W_Q[0, 1] once a second; return the milliseconds of each move."""
        matrix, screen = (await self.run(FIND)).split()
        await asyncio.sleep(chance)  # students do not move in step
        took, end, at = [], time.monotonic() + seconds, 0
        while time.monotonic() < end:
            at += 1
            start = time.monotonic()
            state = {"value": [[1, (at % 30) / 10], [0, 1]]}
            content = {"method": "update", "state": state, "buffer_paths": []}
            await self.send("comm_msg", {"comm_id": matrix, "data": content})
            while True:
                content = (await self.hear())["content"]
                # Not the finer picture that the move before has brought when it came to rest.
                paths = content.get("data", {}).get("buffer_paths", [])
                if content.get("comm_id") == screen and ["frame"] in paths:
                    break
            took.append(1000 * (time.monotonic() - start))
            await asyncio.sleep(max(0.0, 1 - (time.monotonic() - start)))
        return took


def memory(hub, name):
    """PSS in MB of a student's server and kernel."""
    parts = {"server": 0.0, "kernel": 0.0}
    for process in psutil.Process(hub).children(recursive=True) or psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("JUPYTERHUB_USER") == name:
                kind = "kernel" if "ipykernel_launcher" in " ".join(process.cmdline()) else "server"
                parts[kind] += process.memory_full_info().pss / 2**20
    return parts


async def everybody(address, token, hub, count, seconds):
    students = [Student(f"student{i}", address, token) for i in range(count)]
    for _ in range(300):
        with contextlib.suppress(Exception):
            await students[0].ask("/hub/api/")
            break
        await asyncio.sleep(0.2)
    start = time.monotonic()
    await asyncio.gather(*(student.start() for student in students))
    started = time.monotonic() - start
    sources = await asyncio.gather(*(student.open() for student in students))

    async def run_all(student, cells):
        start = time.monotonic()
        for cell in cells:
            await student.run(cell)
        return time.monotonic() - start

    ran = await asyncio.gather(*map(run_all, students, sources))
    chances = [i / count for i in range(count)]
    moves = await asyncio.gather(
        *(student.move(seconds, chance) for student, chance in zip(students, chances, strict=True))
    )
    parts = [memory(hub, student.name) for student in students]
    return started, max(ran), [ms for each in moves for ms in each], parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("students", type=int, nargs="*", default=[1, 5, 10, 20])
    parser.add_argument(
        "--seconds", type=int, default=30, help="how long each student moves a knob"
    )
    asked = parser.parse_args()
    install()
    httpclient.AsyncHTTPClient.configure(None, max_clients=1000)
    print(" N  start s  run all s  moves  p50 ms  p95 ms  server MB  kernel MB  within 300 ms")
    for count in asked.students:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            running_hub(Path(folder)) as (address, token, hub),
        ):
            started, ran, moves, parts = asyncio.run(
                everybody(address, token, hub, count, asked.seconds)
            )
        p95 = statistics.quantiles(moves, n=20)[-1]
        within = sum(ms <= ENOUGH for ms in moves) / len(moves)
        server, kernel = (
            statistics.mean(part[name] for part in parts) for name in ("server", "kernel")
        )
        print(
            f"{count:2} {started:8.1f} {ran:10.1f} {len(moves):6} {statistics.median(moves):7.0f} "
            f"{p95:7.0f} {server:10.0f} {kernel:10.0f} {within:14.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
