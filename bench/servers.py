"""The servers of the bench: how each is started, where it listens, what it is asked.

A server is one process (and its workers) in a folder of its own. It serves one
or more channels, a channel being a framing over a transport with a payload, and
stands in one column of the table.
"""

import ctypes
import http.client
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = 20000  # more than the idle connections need
PONG = ('{"jsonrpc":"2.0","result":{"pong":true,'
        '"timestamp":"2026-11-15T07:47:17.177Z"},"id":100000}')
GET_CONTEXT = '{"jsonrpc":"2.0","method":"get_context","id":$ID}'
CONTEXT = '{"jsonrpc":"2.0","id":100000,"result":{"message_count":4,"system_prompt":true}}'
GO_PING = '{"method":"Bench.Ping","params":[{}],"id":$ID}'
GO_PING_10K = '{"method":"Bench.Ping","params":[$PAD],"id":$ID}'
START_SECONDS = 15
FIXED = ["--answers", "fixed"]

_libc = ctypes.CDLL(None, use_errno=True)


def prepare_child(cpu, policy):
    """What a child does before it becomes a program: it is pinned (to no core for None),
    and ends when we do, however we end."""
    PR_SET_PDEATHSIG = 1

    def prepare():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, policy, os.sched_param(0))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    return prepare


class Server:
    """One running process. `channels` maps a channel to (address, load's arguments)."""

    def __init__(self, column, argv, channels, env=None, prime=None):
        self.column = column
        self.argv = argv
        self.channels = channels
        self.env = env
        self.prime = prime  # what is to be done once it is up, before it is measured
        self.process = None
        self.log_path = None

    def start(self, folder, prepare):
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                env={**os.environ, **(self.env or {})}, preexec_fn=prepare)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.column} does not start: {self._log()[-500:]}")
            time.sleep(0.02)
        try:
            if self.prime:
                self.prime(self)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise RuntimeError(f"{self.column}: {error!r}") from error

    def _log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def _is_up(self):
        try:
            self._resolve()
            for address, _ in self.channels.values():
                _connect(address).close()
        except (OSError, LookupError):
            return False
        return True

    def _resolve(self):
        """Puts the port that the server printed where an address says port 0."""
        for name, (address, args) in self.channels.items():
            if address.endswith(":0"):
                found = re.search(r"^listening .*(?:tcp|http):127\.0\.0\.1:(\d+)$",
                                  self._log(), re.M)
                if not found:
                    raise LookupError("no port yet")
                self.channels[name] = (address[:-1] + found[1], args)

    def pids(self):
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [str(pid), *children.read().split()]

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _connect(address):
    kind, _, rest = address.partition(":")
    if kind == "unix":
        s = socket.socket(socket.AF_UNIX)
        where = rest
    else:
        s = socket.socket(socket.AF_INET)
        host, _, port = rest.rpartition(":")
        where = (host, int(port))
    try:
        s.connect(where)
    except OSError:
        s.close()
        raise
    return s


def _free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


# What a channel's messages look like, before anything a server adds.
CHANNEL_ARGS = {
    "line": ["--framing", "line"],
    "length": ["--framing", "length"],
    "http": ["--framing", "http"],
    "http-unix": ["--framing", "http"],
    "nexus": ["--framing", "http", "--request", GET_CONTEXT],
    "line-10k": ["--framing", "line", "--payload", "10k"],
    "length-10k": ["--framing", "length", "--payload", "10k"],
    "http-10k": ["--framing", "http", "--payload", "10k"],
}
SMALL = ["line", "length", "http", "http-unix"]
CALLS = ["nexus"]  # of one dialect's own methods
LARGE = ["line-10k", "length-10k", "http-10k"]


def _floor(column, program, channel, folder):
    framing = CHANNEL_ARGS[channel][1]
    is_tcp = channel in ("http", "http-10k", "nexus")
    address = "tcp:127.0.0.1:0" if is_tcp else f"unix:{folder}/sock"
    answer = ["--answer", CONTEXT] if channel == "nexus" else []
    return Server(column, [program, "--listen", address, "--framing", framing, *answer],
                  {channel: (address, CHANNEL_ARGS[channel] + FIXED)})


def _koined(program, folder):
    unix, tcp = f"unix:{folder}/koine.sock", "tcp:127.0.0.1:0"
    channels = {name: (tcp if name in ("http", "http-10k") else unix, args)
                for name, args in CHANNEL_ARGS.items() if name not in CALLS}
    return Server("koined", [program, "--root", folder, "--listen", "koine=" + unix,
                             "--listen", "koine=http:127.0.0.1:0"], channels)


def _post(port, request):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request("POST", "/", json.dumps({"jsonrpc": "2.0", **request}).encode())
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def _begin_conversation(server):
    """Two turns; then its context must be as long a text as the others answer with."""
    port = int(server.channels["nexus"][0].rpartition(":")[2])
    for n, content in enumerate(("My name is Alice", "What is my name?")):
        answer = _post(port, {"method": "send", "params": {"content": content}, "id": n})
        if "result" not in json.loads(answer):
            raise RuntimeError("koined, send: " + answer)
    answer = _post(port, {"method": "get_context", "id": 100000})
    if len(answer) != len(CONTEXT):
        raise RuntimeError(f"koined, get_context: {answer} is not as long as {CONTEXT}")


def _koined_nexus(program, folder):
    argv = [program, "--root", folder, "--agent", "recall", "--listen", "nexus=http:127.0.0.1:0"]
    return Server("koined", argv, {"nexus": ("tcp:127.0.0.1:0", CHANNEL_ARGS["nexus"])},
                  prime=_begin_conversation)


def _redis(program, folder):
    return Server("redis", [program, "--port", "0", "--unixsocket", folder + "/sock",
                            "--save", "", "--appendonly", "no", "--maxclients", "12000",
                            "--dir", folder],
                  {"line": (f"unix:{folder}/sock", ["--framing", "resp"])})


NGINX_CONF = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile %(files)d;
%(user)s
pid %(dir)s/pid;
error_log %(dir)s/error.log;
events { worker_connections 12000; }
http {
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_body_temp_path %(dir)s/body;
    proxy_temp_path %(dir)s/proxy;
    fastcgi_temp_path %(dir)s/fastcgi;
    uwsgi_temp_path %(dir)s/uwsgi;
    scgi_temp_path %(dir)s/scgi;
    server {
        listen 127.0.0.1:%(port)d backlog=4096;
        listen unix:%(dir)s/sock backlog=4096;
        location / {
            default_type application/json;
            return 200 '%(pong)s';
        }
    }
    server {
        listen 127.0.0.1:%(context_port)d backlog=4096;
        location / {
            default_type application/json;
            return 200 '%(context)s';
        }
    }
}
"""


def _nginx(program, folder):
    port, context_port = _free_ports(2)
    user = "user root;" if os.geteuid() == 0 else ""
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w") as f:
        f.write(NGINX_CONF % {"dir": folder, "port": port, "pong": PONG, "user": user,
                              "context_port": context_port, "context": CONTEXT,
                              "files": FILES})
    args = CHANNEL_ARGS["http"] + FIXED
    return Server("nginx", [program, "-c", conf, "-p", folder, "-e", folder + "/error.log"],
                  {"http": (f"tcp:127.0.0.1:{port}", args),
                   "nexus": (f"tcp:127.0.0.1:{context_port}", CHANNEL_ARGS["nexus"] + FIXED),
                   "http-unix": (f"unix:{folder}/sock", args)})


def _lines(column, argv, folder):
    address = f"unix:{folder}/sock"
    return Server(column, [*argv, folder + "/sock"],
                  {name: (address, CHANNEL_ARGS[name]) for name in ("line", "line-10k")})


def _go(program, folder):
    server = _lines("go", [program], folder)
    for name, form in (("line", GO_PING), ("line-10k", GO_PING_10K)):
        address, args = server.channels[name]
        server.channels[name] = (address, args + ["--request", form])
    return server


def build_go(program, source, folder):
    """Only the standard library, so that nothing is fetched. Returns why not, or None."""
    go = shutil.which("go")
    if not go:
        return "go is not installed"
    env = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPROXY": "off",
           "GOCACHE": os.path.join(os.path.abspath(folder), "gocache")}
    done = subprocess.run([go, "build", "-o", os.path.abspath(program), "main.go"], env=env,
                          cwd=source, capture_output=True, text=True)
    return None if done.returncode == 0 else "does not build: " + done.stderr.strip()[-300:]


class Catalogue:
    """Which servers there are on this machine, and how to make each one anew.

    `makers` holds (column, name, channels, make), make being a function of the
    server's folder; `missing` holds a line for each that cannot be had.
    """

    COLUMNS = ["floor", "libuv", "koined", "redis", "nginx", "go", "node", "python"]
    QUICK = ["floor", "libuv", "koined", "redis", "nginx"]

    def __init__(self, build, koined, columns):
        self.bench = os.path.join(build, "bench")
        self.makers = []
        self.missing = []
        for column in columns:
            getattr(self, "_add_" + column)(column, koined)

    def _add(self, column, name, channels, make):
        self.makers.append((column, name, channels, make))

    def _add_floors(self, column, program, channels):
        path = os.path.join(self.bench, program)
        if not os.path.exists(path):
            self.missing.append(f"{program}: not built")
            return
        for channel in channels:
            self._add(column, f"{program}-{channel}", [channel],
                      lambda folder, c=channel: _floor(column, path, c, folder))

    def _add_floor(self, column, _koined_path):
        self._add_floors(column, "floor", SMALL + CALLS)
        self._add_floors(column, "floor_parse", LARGE)

    def _add_libuv(self, column, _koined_path):
        self._add_floors(column, "floor_uv", SMALL + CALLS)

    def _add_koined(self, column, path):
        if not os.path.exists(path):
            self.missing.append(f"koined: no {path}")
            return
        path = os.path.abspath(path)
        self._add(column, column, SMALL + LARGE, lambda folder: _koined(path, folder))
        self._add(column, column + "-nexus", CALLS, lambda folder: _koined_nexus(path, folder))

    def _add_found(self, column, program, channels, make):
        path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
        if not path:
            self.missing.append(f"{column}: {program} is not installed")
            return
        self._add(column, column, channels, lambda folder: make(path, folder))

    def _add_redis(self, column, _koined_path):
        self._add_found(column, "redis-server", ["line"], _redis)

    def _add_nginx(self, column, _koined_path):
        self._add_found(column, "nginx", ["http", "http-unix", *CALLS], _nginx)

    def _add_node(self, column, _koined_path):
        script = os.path.join(HERE, "peers", "node.js")
        self._add_found(column, "node", ["line", "line-10k"],
                        lambda path, folder: _lines(column, [path, script], folder))

    def _add_python(self, column, _koined_path):
        script = os.path.join(HERE, "peers", "asyncio_server.py")
        self._add(column, column, ["line", "line-10k"],
                  lambda folder: _lines(column, [sys.executable, script], folder))

    def _add_go(self, column, _koined_path):
        program = os.path.join(self.bench, "peer_go")
        why = build_go(program, os.path.join(HERE, "peers", "go"), self.bench)
        if why:
            self.missing.append(f"{column}: {why}")
            return
        self._add(column, column, ["line", "line-10k"], lambda folder: _go(program, folder))
