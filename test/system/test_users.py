#!/usr/bin/env python3
"""Other users of the machine stay outside, whatever the file's mode says, and at every port."""
import contextlib
import ctypes
import errno
import json
import os
import pwd
import re
import select
import signal
import socket
import stat
import struct
import subprocess

from harness import (KOINE, KOINED, PATIENCE, Client, Daemon, Folder, Http, Length, Skip, check, clean_environment,
                     installed, main, post, reachable, request, run_koined, same, wait_until)

NOBODY = 65534


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def someone_else(what, *args):
    """What a function returns, a text, when another user calls it."""
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become_nobody()
            os.write(writable, what(*args).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as f:
        out = f.read()
    os.waitpid(child, 0)
    return out


def as_nobody(path):
    """What another user gets there: an errno name, "ended", or an answer's text."""
    return someone_else(try_ping, path)


def try_ping(path):
    return try_unix(path, request("ping") + b"\n")


def try_unix(path, data):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        s.settimeout(PATIENCE)
        try:
            s.connect(path)
        except PermissionError:
            return "EACCES"
        return exchange(s, data)


def exchange(s, data):
    """What comes back, at most some bytes of it; "ended" for nothing."""
    try:
        s.sendall(data)
        return s.recv(4096).decode("latin-1") or "ended"
    except (BrokenPipeError, ConnectionResetError):
        return "ended"


def open_the_way(d):
    os.chmod(d.root, 0o711)
    os.chmod(d.socket_path, 0o666)


def test_another_user_cannot_connect():
    with Daemon() as d:
        same(as_nobody(d.socket_path), "EACCES")
        # in a folder that lets everybody through, the file's mode still holds
        os.chmod(d.root, 0o711)
        same(as_nobody(d.socket_path), "EACCES")
        d.alive()


def test_another_user_is_not_served_even_if_the_mode_lets_him():
    with Daemon() as d:
        open_the_way(d)
        same(as_nobody(d.socket_path), "ended")
        same(d.calls(), 0, "calls")
        same(sum(e["refused"] for e in d.status()["listeners"]), 1, "refused")
        d.alive()


def socket_of(d, dialect):
    return d.address("unix", dialect)[len("unix:"):]


def test_another_user_who_is_allowed_at_one_listener_is_served_there_alone():
    with Daemon("--set", "listen.ash.allow_uids=65534", "--listen", "koine=on", "--listen", "ash=on",
                "--listen", "koine=tcp:127.0.0.1:0", "--listen", "ash=tcp:127.0.0.1:0") as d:
        os.chmod(d.root, 0o711)
        same([stat.S_IMODE(os.stat(socket_of(d, name)).st_mode) for name in ("ash", "koine")],
             [0o666, 0o600], "modes")
        check('"result"' in someone_else(try_port, d.address("tcp", "ash"), PORTS["ash"][1]),
              "not served at ash's port")
        check('"result"' in someone_else(try_unix, socket_of(d, "ash"), PORTS["ash"][1]),
              "not served at ash's socket")
        same(someone_else(try_port, d.address("tcp", "koine"), request("ping") + b"\n"), "ended")
        os.chmod(socket_of(d, "koine"), 0o666)
        same(as_nobody(socket_of(d, "koine")), "ended")
        same(d.calls(), 2, "calls")


def test_another_user_at_nexus_cannot_shut_it_down():
    for setting in "daemon", "listener":
        with Daemon("--set", "listen.nexus.allow_uids=65534", "--set", "nexus.shutdown=" + setting) as d:
            address = d.address("http", "nexus")
            for method in "shutdown", "shutdown_server":
                got = someone_else(try_port, address, Http.wrap(request(method)))
                check("koined's own user" in got, "%s: %r", method, got)
            check('"agents"' in someone_else(try_port, address, Http.wrap(request("list_agents"))),
                  "not served")
            d.alive()


def test_allowing_one_user_allows_no_other():
    with Daemon("--set", "listen.koine.allow_uids=1234, 1235") as d:
        open_the_way(d)
        same(as_nobody(d.socket_path), "ended")


def test_who_may_connect_can_be_said_in_every_way():
    try:
        name = pwd.getpwuid(NOBODY).pw_name
    except KeyError:
        name = NOBODY
    with Folder() as folder:
        conf = folder("koine.conf")
        for text, args, env in (
                ("[listen ash]\nallow_uids = 65534 1002\n", (), {}),
                ("", (), {"KOINE_LISTEN_ASH_ALLOW_UIDS": "65534,1002", "KOINE_LISTEN_ASH": "on"}),
                ("[listen ash]\nallow_uids = 7\n", ("--set", "listen.ash.allow_uids=%s 1002" % name), {})):
            with open(conf, "w") as f:
                f.write(text)
            done = run_koined("--config", conf, "--root", folder("r"), "--check", *args, env=env)
            out = done.stdout.decode()
            same(done.returncode, 0, "exit status (%r)" % done.stderr)
            check("\n[listen ash]\n" in out and "\nallow_uids = 65534 1002\n" in out, "%s", out)
            check(re.search(r"^note .*users 65534 1002 .* ash\b", out, re.M), "no note: %s", out)


def test_what_cannot_be_allowed_is_refused_in_words():
    for pair, words in (
            ("listen.ash.allow_uids=ann-who-is-not-there", "invalid listen.ash.allow_uids 'ann-who-is-not-there'"),
            ("listen.ash.allow_uids=-1", "invalid listen.ash.allow_uids '-1'"),
            ("listen.ash.mode=0666", "unknown setting 'mode' in [listen ash]"),
            ("listen.nothing.allow_uids=7", "unknown dialect 'nothing'")):
        with Folder() as folder:
            done = run_koined("--root", folder.path, "--set", pair)
            same(done.returncode, 78, "exit status with %s (%r)" % (pair, done.stderr))
            check(words.encode() in done.stderr, "%s: %r", pair, done.stderr)


def test_the_key_that_opened_every_listener_is_refused_and_names_the_new_one():
    with Folder() as folder:
        conf = folder("koine.conf")
        with open(conf, "w") as f:
            f.write("[koine]\nallow_uids = 1001\n")
        root = ("--root", folder("r"))
        for args, env in (((*root, "--config", conf), {}), ((*root, "--config", conf, "--check"), {}),
                          ((*root, "--set", "koine.allow_uids=1001"), {}),
                          (root, {"KOINE_KOINE_ALLOW_UIDS": "1001"})):
            done = run_koined(*args, env=env)
            same(done.returncode, 78, "exit status with %r (%r)" % (args, done.stderr))
            check(b"[listen ash] allow_uids" in done.stderr, "%r: %r", args, done.stderr)


def open_many(path, n):
    """n connections one after another, none closed before the last."""
    kept, refused = [], 0
    for _ in range(n):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(request("ping") + b"\n")
            if s.recv(4096):
                kept.append(s)
                continue
        refused += 1
    return "%d kept, %d refused" % (len(kept), refused)


def test_another_user_cannot_use_up_our_connections():
    for settings, want in ((("limits.connections=20",), "10 kept, 15 refused"),
                           (("limits.connections_per_uid=4",), "4 kept, 21 refused")):
        pairs = [w for s in (*settings, "listen.koine.allow_uids=65534") for w in ("--set", s)]
        with Daemon(*pairs) as d:
            open_the_way(d)
            same(someone_else(open_many, d.socket_path, 25), want, "another user's connections")
            # They have left, and count no more.
            wait_until(lambda: d.status()["connections"] == 1, "them to be gone")
            same(someone_else(open_many, d.socket_path, 25), want, "connections, once more")
            same(open_many(d.socket_path, 15), "15 kept, 0 refused", "our own")


def call_side_by_side(path, n, refusals):
    """n calls that take long, on as many connections, until so many of them were refused."""
    open_ones, refused = [], 0
    for _ in range(n):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(request("debug.sleep", {"ms": 60000}) + b"\n")
        open_ones.append(s)
    while refused < refusals:
        readable = select.select(open_ones, [], [], PATIENCE)[0]
        if not readable:
            break
        for s in readable:
            check(b"calls in flight from other users" in s.recv(4096), "not refused for that")
            refused += 1
            open_ones.remove(s)
    return "%d under way, %d refused" % (len(open_ones), refused)


def test_another_user_cannot_use_up_our_calls():
    with Daemon("--set", "limits.calls=6", "--set", "listen.koine.allow_uids=65534") as d:
        open_the_way(d)
        same(someone_else(call_side_by_side, d.socket_path, 5, 2), "3 under way, 2 refused")
        # They go on without their client, and count; our own have room.
        c = d.connect()
        same(c.call("debug.sleep", {"ms": 1}), {"slept_ms": 1})


def send_halves(path, n, size):
    """What the first of many is told that are cut, or "none" if all of them are left alone."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(n)]
        for s in socks:
            s.connect(path)
            s.sendall(b'{"a":"' + b"x" * size)
        # The last one's answer says that all before it was read.
        stack.enter_context(contextlib.closing(last := socket.socket(socket.AF_UNIX))).connect(path)
        exchange(last, request("ping") + b"\n")
        cut = select.select(socks, [], [], 0)[0]
        return cut[0].recv(4096).decode() if cut else "none"


def test_another_user_cannot_use_up_our_input():
    limit = 4 << 20
    with Daemon("--set", "limits.total_input_bytes=%d" % limit,
                "--set", "listen.koine.allow_uids=65534") as d:
        open_the_way(d)
        ours = request("debug.echo", '["%s"]' % ("y" * (limit // 2))) + b"\n"
        c = d.connect()
        c.socket.sendall(ours[:-2])
        told = someone_else(send_halves, d.socket_path, 12, limit // 5)
        check("incomplete messages use more than" in told, "they were told %r", told)
        c.socket.sendall(ours[-2:])
        same(len(json.loads(c.read_line())["result"][0]), limit // 2, "length of ours")


class Theirs(Daemon):
    """It runs as another user."""

    def __init__(self, *args):
        if os.getuid() != 0:
            raise Skip("only root can be somebody else")
        if not reachable(NOBODY):
            raise Skip("another user cannot run koined where it was built")
        super().__init__(*args, preexec_fn=become_nobody)

    def start(self):
        os.chown(self.root, NOBODY, NOBODY)
        super().start()


def test_root_is_served_by_a_daemon_of_another_user():
    with Theirs() as d:
        same(os.stat(d.socket_path).st_uid, NOBODY, "owner")
        same(stat.S_IMODE(os.stat(d.socket_path).st_mode), 0o600, "mode")
        d.alive()
        check('"pong":true' in as_nobody(d.socket_path), "its own user is not served")


def test_a_socket_that_is_not_ours_is_not_waited_for():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    if not reachable(NOBODY) or os.environ.get("KOINE_SANITIZED"):
        raise Skip("koine cannot be watched here")
    installed("strace")
    with Daemon() as d:
        done = subprocess.run(
            ["strace", "-qq", "-e", "trace=connect", KOINE, "--socket", d.socket_path,
             "memory", "list"], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True,
            timeout=PATIENCE)
    same(done.returncode, 69, "exit code (%r)" % done.stderr)
    check(b"Permission denied" in done.stderr, "words: %r", done.stderr)
    same(done.stderr.count(b"connect("), 1, "tries")


# ---- who serves ----


@contextlib.contextmanager
def imposter(path, uid):
    """A server of that user's which approves of everything. Yields what tells how many bytes the
    next connection that ended has brought."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            approve_everything(path, writable)
        finally:
            os._exit(0)
    os.close(writable)
    try:
        with os.fdopen(readable) as f:
            same(f.readline(), "ready\n", "the imposter")
            yield lambda: int(f.readline())
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def approve_everything(path, out):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    os.chmod(path, 0o666)
    s.listen(8)
    os.write(out, b"ready\n")
    while True:
        c, heard = s.accept()[0], 0
        with contextlib.suppress(ConnectionError):
            for line in c.makefile("rb"):
                heard += len(line)
                asked = json.loads(line)
                answer = {"id": asked.get("params", {}).get("id", ""), "status": "approved", "pong": True}
                c.sendall(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).encode()
                          + b"\n")
        c.close()
        os.write(out, b"%d\n" % heard)


HOOK = json.dumps({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
                   "tool_input": {"command": "rm -rf /"}, "cwd": "/"}).encode()


def run_koine(*args, env=None, uid=0, stdin=b""):
    return subprocess.run([KOINE, *args], input=stdin, capture_output=True, user=uid, group=uid,
                          extra_groups=[], env=clean_environment(env), timeout=PATIENCE, cwd="/")


def test_a_server_of_another_user_is_not_talked_to():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    with Folder() as folder:
        os.chmod(folder.path, 0o1777)
        path = folder("k.sock")
        with imposter(path, NOBODY) as heard:
            for args in (("ping",), ("approvals",), ("memory", "list"), ("--wait", "5", "status")):
                done = run_koine("--socket", path, *args)
                same(done.returncode, 77, "exit status of %r (%r)" % (args, done.stderr))
                check(b"runs as uid 65534" in done.stderr and b"--server-uid" in done.stderr,
                      "%r: %r", args, done.stderr)
                same(heard(), 0, "bytes sent by %r" % (args,))
            done = run_koine("hook", env={"KOINE_SOCKET": path}, stdin=HOOK)
            same((done.returncode, done.stdout), (0, b""), "the hook (%r)" % done.stderr)
            same(heard(), 0, "bytes sent by the hook")


def test_another_user_who_is_allowed_is_served_mcp():
    """koined may not see in which folder this user's processes work."""
    with Theirs("--listen", "koine=on", "--set", "listen.koine.allow_uids=1234") as d:
        os.chmod(d.root, 0o711)
        # Nothing is answered before mcp.open: the tools are those that were asked for.
        lines = [request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                        "clientInfo": {"name": "x", "version": "1"}}),
                 request("tools/list", id=2)]
        done = run_koine("--socket", socket_of(d, "koine"), "--server-uid", "65534", "mcp", "--tools=tasks", uid=1234,
                         stdin=b"".join(line + b"\n" for line in lines))
        same(done.returncode, 0, "exit status (%r)" % done.stderr)
        check(b'"task_add"' in done.stdout and b'"memory_add"' not in done.stdout, "%r", done)


def test_a_server_of_another_user_can_be_trusted_by_name():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    with Folder() as folder:
        os.chmod(folder.path, 0o1777)
        path = folder("k.sock")
        with imposter(path, NOBODY) as heard:
            same(run_koine("--socket", path, "--server-uid", "65534", "ping").returncode, 0)
            check(heard() > 0, "nothing was sent")
            same(run_koine("--socket", path, "ping", env={"KOINE_SERVER_UID": "65534"}).returncode, 0)
            check(heard() > 0, "nothing was sent")
            same(run_koine("--socket", path, "--server-uid", "1234", "ping").returncode, 77)
            same(heard(), 0, "bytes for the wrong one")
        for env, args in (({"KOINE_SERVER_UID": "anna"}, ()), ({}, ("--server-uid", "-1"))):
            same(run_koine(*args, "--socket", path, "ping", env=env).returncode, 64, "exit status")


def test_a_folder_in_tmp_must_be_our_own():
    if os.getuid() != 0:
        raise Skip("only root can be somebody else")
    if not reachable(NOBODY):
        raise Skip("another user cannot run koine where it was built")
    uid = 100000 + os.getpid()
    folder = "/tmp/koine-%d" % uid
    env = clean_environment()
    del env["XDG_RUNTIME_DIR"]
    ping = lambda: subprocess.run([KOINE, "ping"], capture_output=True, user=uid, group=uid,
                                  extra_groups=[], env=env, timeout=PATIENCE, cwd="/")
    os.mkdir(folder)
    try:
        os.chmod(folder, 0o777)
        os.chown(folder, NOBODY, NOBODY)
        # Even where the socket leads to one of our own.
        with imposter(folder + "/koine.sock", uid) as heard:
            done = ping()
            same(done.returncode, 77, "exit status (%r)" % done.stderr)
            check(b"%s belongs to another user" % folder.encode() in done.stderr, "%r", done.stderr)
            os.chown(folder, uid, uid)
            os.chmod(folder, 0o700)
            same(ping().returncode, 0, "exit status where it is ours")
            check(heard() > 0, "nothing was sent")
    finally:
        os.rmdir(folder)


# ---- ports ----

# Every kind of place that a port can be, and what its clients send there.
PORTS = {
    "nexus": ("http", Http.wrap(request("list_agents"))),
    "gateway": ("http", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "embedding": ("http", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "koine": ("http", Http.wrap(request("ping"))),
    "hld": ("tcp", request("health") + b"\n"),
    "aiwg": ("tcp", request("ping") + b"\n"),
    "ash": ("tcp", Length.wrap(request("memory.list"))),
}


def listen_everywhere(*more):
    out = ["--listen", "koine=on", "--listen", "aiwg=on", "--listen", "koine=tcp:127.0.0.1:0"]
    for dialect, (kind, _) in PORTS.items():
        out += ["--listen", "%s=%s:127.0.0.1:0" % (dialect, kind)]
    return [*out, *more]


def try_port(address, data, family=socket.AF_INET, host=None):
    with contextlib.closing(dial(address, family, host)) as s:
        return exchange(s, data)


def dial(address, family=socket.AF_INET, host=None):
    named, port = address.split(":", 1)[1].rsplit(":", 1)
    s = socket.socket(family)
    s.settimeout(PATIENCE)
    s.connect((host or named.strip("[]"), int(port)))
    return s


def ports(d):
    return [(dialect, address) for dialect, address in d.addresses
            if not address.startswith("unix:")]


def what_to_send(dialect, address):
    if dialect == "koine" and address.startswith("tcp:"):
        return request("ping") + b"\n"
    return PORTS[dialect][1]


def port_rows(d):
    return [e for e in d.status()["listeners"] if not e["address"].startswith("unix:")]


def test_another_user_is_refused_at_every_port_before_anything_is_read():
    with Daemon(*listen_everywhere()) as d:
        same(len(ports(d)), len(PORTS) + 1, "ports")
        for dialect, address in ports(d):
            same(someone_else(try_port, address, what_to_send(dialect, address)), "ended",
                 "%s for another user" % address)
        for row in port_rows(d):
            same((row["accepted"], row["refused"], row["bytes_in"], row["calls"]), (0, 1, 0, 0),
                 "counts of " + row["address"])
        d.alive()


def test_our_own_user_is_served_at_every_port():
    with Daemon(*listen_everywhere()) as d:
        for dialect, address in ports(d):
            got = try_port(address, what_to_send(dialect, address))
            # The gateway has no token here, and says so; everybody else answers.
            check('"result"' in got or got.startswith("HTTP/1.1 200") or
                  "ui token not set" in got, "%s: %r", address, got)
        same([row["refused"] for row in port_rows(d)], [0] * len(ports(d)), "refused")


def test_a_token_does_not_let_another_user_in():
    with Folder() as folder:
        with open(folder("token"), "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write("s3cret-s3cret-s3cret\n")
        with Daemon("--set", "koine.token_file=" + folder("token"),
                    listen=("unix:ROOT/koine.sock", "http:127.0.0.1:0")) as d:
            data = Http.wrap(request("ping"), headers="Authorization: Bearer s3cret-s3cret-s3cret\r\n")
            address = d.address("http")
            same(someone_else(try_port, address, data), "ended", "with a token")
            check("200" in try_port(address, data), "our own user")
            check("401" in try_port(address, Http.wrap(request("ping"))), "without the token")


@contextlib.contextmanager
def held(d):
    """The daemon does not come to accept anybody meanwhile."""
    d.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: " T (stopped)" in open("/proc/%d/status" % d.pid).read().replace("\t", " "),
                   "the daemon to stand still")
        yield
    finally:
        d.signal(signal.SIGCONT)


def send_and_close(address, data):
    s = dial(address)
    s.sendall(data)
    s.close()
    return "sent"


def test_who_sends_and_closes_at_once_is_not_taken_for_root():
    with Daemon(listen=("unix:ROOT/koine.sock", "tcp:127.0.0.1:0")) as d:
        data = request("memory.add", {"content": "from another user"}) + b"\n"
        with held(d):
            same(someone_else(send_and_close, d.address("tcp"), data), "sent")
        wait_until(lambda: port_rows(d)[0]["refused"] == 1, "him to be refused")
        same(port_rows(d)[0]["bytes_in"], 0, "bytes read")
        d.alive()


def test_who_has_sent_all_and_only_listens_is_served():
    with Daemon(listen=("unix:ROOT/koine.sock", "tcp:127.0.0.1:0")) as d:
        with held(d):
            s = dial(d.address("tcp"))
            s.sendall(request("ping") + b"\n")
            s.shutdown(socket.SHUT_WR)
        with contextlib.closing(s):
            check(b'"pong":true' in s.recv(4096), "not served")


def test_users_are_told_apart_over_ipv6_too():
    try:
        with contextlib.closing(socket.socket(socket.AF_INET6)) as s:
            s.bind(("::1", 0))
    except OSError:
        raise Skip("no IPv6 here") from None
    with Daemon(listen=("unix:ROOT/koine.sock", "tcp:[::1]:0", "tcp:127.0.0.1:0")) as d:
        six, four = (a for _, a in ports(d))
        for address, family, host in ((six, socket.AF_INET6, None),
                                      (four, socket.AF_INET6, "::ffff:127.0.0.1"),
                                      (four, socket.AF_INET, None)):
            ping = (address, request("ping") + b"\n", family, host)
            check('"pong":true' in try_port(*ping), "%s %s", address, host)
            same(someone_else(try_port, *ping), "ended", address)


# ---- where the kernel does not tell ----


def without_netlink():
    """From here on this process and its children get no socket that could ask the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 41, "aarch64": 198, "riscv64": 198}[os.uname().machine]
    code = [  # struct seccomp_data: nr at 0, the first argument at 16
        (0x20, 0, 0, 0), (0x15, 0, 3, number),
        (0x20, 0, 0, 16), (0x15, 0, 1, socket.AF_NETLINK),
        (0x06, 0, 0, 0x00050000 | errno.EAFNOSUPPORT), (0x06, 0, 0, 0x7fff0000)]
    raw = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(code), ctypes.addressof(raw)))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def refused_without_netlink(folder, listen):
    """What koined says when it does not start, which --check has foreseen."""
    check_first, run = (
        subprocess.run([KOINED, "--root", folder.path, "--listen", listen, *more],
                       stdin=subprocess.DEVNULL, capture_output=True, env=clean_environment(),
                       preexec_fn=without_netlink, timeout=PATIENCE)
        for more in (["--check"], []))
    same((check_first.returncode, run.returncode), (69, 69), "exit status (%r)" % run.stderr)
    check(b"error: the kernel cannot identify peers" in check_first.stdout, "--check: %r",
          check_first.stdout)
    return run


def test_where_the_kernel_does_not_tell_a_token_is_required():
    if os.uname().machine not in ("x86_64", "aarch64", "riscv64"):
        raise Skip("no number of socket(2) for this machine")
    with Folder() as folder:
        done = refused_without_netlink(folder, "nexus=http:127.0.0.1:0")
        check(b"cannot identify peers of http:127.0.0.1:" in done.stderr, "%r", done.stderr)
        check(b"token_file" in done.stderr, "what to do: %r", done.stderr)
        refused_without_netlink(folder, "hld=tcp:127.0.0.1:0")
        with open(folder("token"), "w", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write("s3cret-s3cret-s3cret\n")
        with Daemon("--set", "nexus.token_file=" + folder("token"), "--listen", "koine=on",
                    "--listen", "nexus=http:127.0.0.1:0", preexec_fn=without_netlink) as d:
            with Client(d.address("http")) as c:
                same(post(c, request("list_agents")).status, 401, "without the token")
            with Client(d.address("http")) as c:
                same(post(c, request("list_agents"),
                          headers="Authorization: Bearer s3cret-s3cret-s3cret\r\n").status, 200)


if __name__ == "__main__":
    main(globals(), measured=("a_socket_that_is_not_ours_is_not_waited_for",))
