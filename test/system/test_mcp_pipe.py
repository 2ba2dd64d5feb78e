#!/usr/bin/env python3
"""`koine mcp` between clients that talk nonsense and daemons that do, or that are slow to come."""
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading

from harness import (KOINE, KOINED, MIB, PATIENCE, SANITIZED, check, clean_environment, main, note,
                     peak_rss, rss, same, wait_until)
from task_world import World
from test_mcp_koined import LEGACY, Pipe, daemon


def ends(p):
    """The exit code, within the time that we have."""
    return p.process.wait(PATIENCE)


# ---- its client ----


def test_nonsense_is_refused_and_the_next_is_answered():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        for nonsense in (b"", b"{", b"\0\0\0", b"\xff\xfe", b"[]", b"null", b"7", b'"x"', b"{}",
                         b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
                         b'{"jsonrpc":"2.0","id":{},"method":"ping"}', b"[" * 5000,
                         b'{"jsonrpc":"2.0","id":1,"method":7}', b"Content-Length: 5\r\n\r\n{}"):
            p.process.stdin.write(nonsense + b"\n")
            p.process.stdin.flush()
            same(p.ask("ping")["result"], {}, "after %.40r" % nonsense)
        d.alive()


def test_a_message_byte_by_byte():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        for byte in b'{"jsonrpc":"2.0","id":"slow","method":"ping"}\n':
            p.process.stdin.write(bytes([byte]))
            p.process.stdin.flush()
        same(p.read(), {"jsonrpc": "2.0", "id": "slow", "result": {}})


def test_a_message_that_is_too_long():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        id = p.begin("tools/call", {"name": "memory_add", "arguments": {
            "content": "x" * (20 * MIB)}})
        answer = p.end(id)
        check("16" in answer["error"]["message"] and "longer" in answer["error"]["message"],
              "%s", answer)
        # It goes on, and has not kept it.
        same(p.call("memory_list"), {"memories": []})
        if not SANITIZED:
            check(peak_rss(p.process.pid) < 64 * MIB, "%d bytes", peak_rss(p.process.pid))
        d.alive()


def test_an_id_that_is_too_long():
    with World() as w, daemon(w), Pipe(w) as p:
        p.initialize()
        p.send({"jsonrpc": "2.0", "id": "x" * 100000, "method": "ping"})
        answer = p.read()
        check(answer["id"] is None and "longer than 4096 bytes" in answer["error"]["message"], "%s", answer)
        same(p.ask("ping")["result"], {})


def test_half_a_line_at_the_end():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        p.process.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"mem')
        p.process.stdin.close()
        same(ends(p), 0)
        d.alive()


def test_a_signal_ends_it():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        p.begin("tools/call", {"name": "ask_human", "arguments": {"question": "?"}})
        k = d.connect()
        wait_until(lambda: k.call("approval.list", {})["approvals"], "the question")
        p.process.send_signal(signal.SIGTERM)
        check(ends(p) in (-signal.SIGTERM, 0, 128 + signal.SIGTERM), "%s", p.process.returncode)
        wait_until(lambda: not k.call("approval.list", {})["approvals"], "its withdrawal")


def test_a_client_that_closes_its_end_for_reading():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        p.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            for _ in range(50):
                p.begin("tools/list")
        same(ends(p), 0)
        with contextlib.suppress(BrokenPipeError):
            p.process.stdin.close()
        d.alive()


def test_a_client_that_never_reads():
    with World() as w, daemon(w) as d, Pipe(w) as p:
        p.initialize()
        out = p.process.stdin.fileno()
        os.set_blocking(out, False)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode() + b"\n"
        sent = 0
        # Until nobody takes any more: neither the pipe nor the daemon keeps it all.
        while select.select([], [out], [], 2)[1] and sent < 64 * MIB:
            with contextlib.suppress(BlockingIOError):
                sent += os.write(out, body * 100)
        check(sent < 64 * MIB, "it took everything")
        if not SANITIZED:
            check(rss(p.process.pid) < 32 * MIB, "the pipe has %d bytes", rss(p.process.pid))
        d.alive()
        p.process.kill()
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            p.process.stdin.close()


# ---- its daemon ----


class Impostor:
    """A socket at koined's place. `serve` gets each connection that comes."""

    def __init__(self, path, serve):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(8)
        self.serve = serve
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection, contextlib.suppress(OSError, ValueError):
                    self.serve(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)


def opened(connection):
    """A connection's lines, once mcp.open was answered."""
    lines = connection.makefile("rb")
    lines.readline()
    connection.sendall(b'{"jsonrpc":"2.0","id":"koine mcp open","result":{}}\n')
    return lines


def test_a_daemon_that_answers_nonsense():
    garbage = [b"\n", b"\0\n", b"no JSON\n", b"[]\n", b"{}\n", b"null\n",
               b'{"id":"koine mcp again","result":{}}\n', b'{"id":99,"result":{}}\n',
               b"[" * 3000 + b"\n", b'{"id":"koine mcp open","error":7}']

    def serve(connection):
        lines = opened(connection)
        asked = json.loads(lines.readline())
        connection.sendall(b"".join(garbage[:-1]))
        connection.sendall(json.dumps({"jsonrpc": "2.0", "id": asked["id"],
                                       "result": {"real": True}}).encode() + b"\n")
        lines.readline()
        # It goes away in the middle of a line.
        connection.sendall(b'{"jsonrpc":"2.0","id":2,"resu')
    with World() as w:
        with Impostor(w("root", "koine.sock"), serve), Pipe(w) as p:
            same(p.ask("ping")["result"], {"real": True})
            check(all(isinstance(m, dict) for m in p.others), "%r", p.others)
            second = p.begin("ping")
            check("lost connection to koined" in p.end(second)["error"]["message"], "a clear word")
            p.process.kill()


def test_a_daemon_that_refuses_it():
    def serve(connection):
        connection.makefile("rb").readline()
        connection.sendall(b'{"jsonrpc":"2.0","id":"koine mcp open","error":'
                           b'{"code":-32601,"message":"no such method"}}\n')
        connection.recv(1 << 16)
    with World() as w:
        with Impostor(w("root", "koine.sock"), serve), Pipe(w) as p:
            error = p.ask("initialize", LEGACY)["error"]
            check("does not serve MCP" in error["message"], "%s", error)
            check(ends(p) != 0, "a failure")
            check("no such method" in w.read("pipe.err"), w.read("pipe.err"))


def test_a_last_notification_waits_for_a_daemon_that_opens_slowly():
    closed, came = threading.Event(), []

    def serve(connection):
        lines = connection.makefile("rb")
        lines.readline()
        closed.wait(PATIENCE)
        # One that does not wait is gone by then.
        select.select([connection], [], [], 0.3)
        connection.sendall(b'{"jsonrpc":"2.0","id":"koine mcp open","result":{}}\n')
        came.append(lines.readline())
    with World() as w, Impostor(w("root", "koine.sock"), serve), Pipe(w) as p:
        p.send({"jsonrpc": "2.0", "method": "notifications/x"})
        p.process.stdin.close()
        closed.set()
        same(ends(p), 0)
        wait_until(lambda: came, "the end of the connection")
        check(b"notifications/x" in came[0], "%r", came)


def test_a_daemon_that_stops_reading():
    stop = threading.Event()

    def serve(connection):
        opened(connection)
        stop.wait(2 * PATIENCE)
    with World() as w:
        with Impostor(w("root", "koine.sock"), serve), Pipe(w) as p:
            out = p.process.stdin.fileno()
            os.set_blocking(out, False)
            sent = 0
            while select.select([], [out], [], 2)[1] and sent < 64 * MIB:
                with contextlib.suppress(BlockingIOError):
                    sent += os.write(out, b'{"jsonrpc":"2.0","method":"x"}\n' * 1000)
            check(sent < 64 * MIB, "it took everything")
            if not SANITIZED:
                check(rss(p.process.pid) < 32 * MIB, "%d bytes", rss(p.process.pid))
            # It ends when its client does.
            p.process.stdin.close()
            check(p.process.wait(PATIENCE) is not None, "its end")
            stop.set()


def test_a_refused_batch_leaves_nothing_to_wait_for():
    """koined never sees it, and answers nothing: the pipe ends with its client."""
    seen = []

    def serve(connection):
        for line in opened(connection):
            seen.append(json.loads(line))
            if len(seen) == 1:
                connection.sendall(b'{"jsonrpc":"2.0","id":%d,"result":{}}\n' % seen[0]["id"])
    with World() as w:
        with Impostor(w("root", "koine.sock"), serve), Pipe(w) as p:
            # Afterwards it has read all that we send.
            p.ask("ping")
            p.send([{"jsonrpc": "2.0", "id": 7, "method": "ping"},
                    {"jsonrpc": "2.0", "id": 8, "method": "ping"}])
            answer = p.read()
            same([answer["id"], answer["error"]["code"]], [None, -32600])
            check("batches are not supported" in answer["error"]["message"], "%s", answer)
            p.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            p.process.stdin.close()
            same(ends(p), 0)
        same([m["method"] for m in seen], ["ping", "notifications/initialized"])


# ---- starting one ----


def test_it_starts_koined():
    with World() as w:
        # The one beside it, by links of our own.
        for path in (KOINE, KOINED):
            with contextlib.suppress(OSError):
                os.link(path, w("bin", os.path.basename(path)))
            if not os.path.exists(w("bin", os.path.basename(path))):
                shutil.copy2(path, w("bin", os.path.basename(path)))
        for name in ("run", "state", "config", "home"):
            os.mkdir(w(name), 0o700)
        env = clean_environment({"XDG_RUNTIME_DIR": w("run"), "XDG_STATE_HOME": w("state"),
                                 "XDG_CONFIG_HOME": w("config"), "HOME": w("home"),
                                 "PATH": w("bin") + ":/usr/bin:/bin"})
        pid = None
        try:
            with open(w("err"), "wb") as err, subprocess.Popen(
                    [w("bin", "koine"), "mcp", "--start"], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=err, cwd=w.path, env=env) as p:
                p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                                          "params": LEGACY}).encode() + b"\n")
                p.stdin.flush()
                answer = json.loads(p.stdout.readline())
                same(answer["result"]["serverInfo"]["name"], "koine")
                check("starting koined" in w.read("err"), w.read("err"))
                status = subprocess.run([w("bin", "koine"), "status", "--json"], env=env,
                                        capture_output=True, timeout=PATIENCE)
                pid = json.loads(status.stdout)["pid"]
                p.stdin.close()
                same(p.wait(PATIENCE), 0)
            # It outlives who has started it.
            os.kill(pid, 0)
            note("started koined as %d" % pid)
        finally:
            if pid:
                os.kill(pid, signal.SIGTERM)
                wait_until(lambda: not w.processes(), "koined's end")


def test_no_koined_to_start():
    with World() as w:
        shutil.copy2(KOINE, w("bin", "koine"))
        env = clean_environment({"XDG_RUNTIME_DIR": w.path, "HOME": w.path, "PATH": w("bin")})
        with subprocess.Popen([w("bin", "koine"), "mcp", "--start"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=w.path, env=env) as p:
            out, err = p.communicate(timeout=PATIENCE)
        same(out, b"")
        check(b"koined not found in koine's folder or in PATH" in err, "%r", err)
        check(b"starting koined" not in err, "%r", err)


if __name__ == "__main__":
    main(globals())
