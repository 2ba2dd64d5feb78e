#!/usr/bin/env python3
"""
What was acknowledged is there: after kill -9, on a full disk, with files that are not ours.

KOINE_SOAK=1 kills 200 times instead of 10.
"""
import contextlib
import errno
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

from ash_client import RPCError, connect, frame, open_answer, read_frame, request_bytes
from harness import (SANITIZED, Client, Daemon, Failure, Folder, Skip, check, installed, main, note, only_in_a_file,
                     run_koined, same, wait_until)
from test_ash import Ash

KILLS = 200 if os.environ.get("KOINE_SOAK") == "1" else 10
CLIENTS = 64


class Crowd:
    """Clients that add until they are cut off; what was acknowledged, and with which id."""

    def __init__(self, address, round_, n=CLIENTS):
        self.acknowledged = {}
        self.faults = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(address, round_, i))
                        for i in range(n)]
        for t in self.threads:
            t.start()

    def run(self, address, round_, client):
        n = 0
        with contextlib.suppress(OSError), connect(address) as sock:
            while True:
                content = "round %d client %d entry %d" % (round_, client, n)
                sock.sendall(frame(request_bytes("memory.add", {
                    "content": content, "user_id": "user%d" % (client % 4)})))
                answer = read_frame(sock)
                if answer is None:
                    return
                try:
                    entry = open_answer(answer)
                except RPCError as error:
                    self.faults.append(str(error))
                    return
                with self.lock:
                    self.acknowledged[content] = entry["id"]
                n += 1

    def join(self):
        for t in self.threads:
            t.join()


def stored(path):
    """Content to id of every memory in a store file; each must be there once."""
    db = sqlite3.connect(path)
    try:
        same(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "integrity")
        rows = db.execute("SELECT content, id FROM memory").fetchall()
    finally:
        db.close()
    out = dict(rows)
    same(len(rows), len(out), "different memories among %d" % len(rows))
    return out


def test_what_was_acknowledged_survives_kill_nine():
    only_in_a_file("it reads the store that a kill leaves; test_postgres.py has its like")
    acknowledged, slowest = {}, 0.0
    random.seed(3)
    with Folder() as f:
        for n in range(KILLS):
            began = time.monotonic()
            with Daemon(root=f.path, exit_status=-signal.SIGKILL) as d:
                took = time.monotonic() - began
                slowest = max(slowest, took)
                crowd = Crowd(Ash(d).address, n)
                # From none to some thousand adds later.
                time.sleep(random.random() * 0.4)
                d.signal(signal.SIGKILL)
                d.wait_exit()
                crowd.join()
            same(crowd.faults, [], "refusals")
            acknowledged.update(crowd.acknowledged)
            # A copy, so that what the daemon finds is what the kill left.
            with Folder() as g:
                for name in os.listdir(f.path):
                    if name.startswith("koine.db") and os.path.isfile(f(name)):
                        shutil.copy(f(name), g(name))
                found = stored(g("koine.db"))
            lost = [c for c, id in acknowledged.items() if found.get(c) != id]
            same(lost, [], "lost in round %d" % n)
        with Daemon(root=f.path) as d:
            # All of them are found as well.
            user = [c for c in found if int(c.split()[3]) % 4 == 1]
            same(Client(d.address()).call("memory.stats", {"user_id": "user1"})["total"], len(user),
                 "memories of one user")
            wait_until(lambda: d.status()["store"]["check"] == "ok", "the check after the crash")
    note("%d kills, %d acknowledged, slowest start %.2f s" % (KILLS, len(acknowledged), slowest))
    check(len(acknowledged) > 10 * KILLS, "only %d adds in all", len(acknowledged))


def test_the_check_after_a_crash_shows_in_the_status():
    only_in_a_file("a server checks its own")
    with Folder() as f:
        with Daemon(root=f.path, exit_status=-signal.SIGKILL) as d:
            same(d.status()["store"], {"path": f("koine.db"), "check": "not needed",
                                        "writes": "ok"})
            d.signal(signal.SIGKILL)
            d.wait_exit()
        with Daemon(root=f.path) as d:
            wait_until(lambda: d.status()["store"]["check"] == "ok", "the check")
        with Daemon(root=f.path) as d:
            same(d.status()["store"]["check"], "not needed")


def damage(path):
    """The page of one memory, in the middle: nothing sees that when the file is opened."""
    data = bytes_of(path)
    page = data.index(b"entry 150 ") // 4096 * 4096
    with open(path, "r+b") as file:
        file.seek(page)
        file.write(b"\xa5" * 64)


def test_damage_is_logged_and_shown_and_the_daemon_serves():
    only_in_a_file("it damages the store")
    with Folder() as f:
        with Daemon(root=f.path) as d:
            ash = Ash(d)
            for i in range(300):
                ash.add("entry %d " % i + "x" * 500)
        db = sqlite3.connect(f("koine.db"))
        db.execute("UPDATE meta SET value = '0' WHERE key = 'clean'")
        db.commit()
        db.close()
        damage(f("koine.db"))
        for _ in range(2):  # a check that failed stays due
            with Daemon(root=f.path, announced=["store is damaged"]) as d:
                shown = wait_until(lambda: [c for c in [d.status()["store"]["check"]]
                                            if c != "under way"], "the check")
                check("damaged" in shown[0], "%r", shown)
                same(len(Ash(d).call("memory.list", limit=10)), 10, "listed")
                d.alive()


def overwrite_schema(path):
    """The page that lists the tables, behind the file's header."""
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 400)


def change(sql):
    def there(path):
        db = sqlite3.connect(path)
        db.execute(sql)
        db.commit()
        db.close()
    return there


def content(folder):
    names = [n for n in sorted(os.listdir(folder)) if os.path.isfile(os.path.join(folder, n))]
    return {name: bytes_of(os.path.join(folder, name)) for name in names}


def spoil_log(spoil, folder):
    """As a killed program leaves it: in the log, and not in the file."""
    path = os.path.join(folder, "koine.db")
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    spoil(path)
    kept = content(folder)
    db.close()
    for name, data in kept.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)


def refused_alike(folder, words):
    before = content(folder)
    checked = run_koined("--root", folder, "--check")
    same(content(folder), before, "files")
    started = run_koined("--root", folder)
    check(words in started.stderr, "%r", started.stderr)
    check(words in checked.stdout, "%r", checked.stdout)
    same(checked.returncode, started.returncode, "exit status")


def test_check_refuses_a_store_as_a_start_does_and_changes_nothing():
    only_in_a_file("it damages the store")
    changes = [("PRAGMA user_version = 999", b"newer koine"),
               ("PRAGMA user_version = -1", b"an unknown schema"),
               ("INSERT INTO meta (key, value) VALUES ('move', '1')", b"is unfinished")]
    cases = [(change(sql), words, in_log) for sql, words in changes for in_log in (False, True)]
    for spoil, words, in_log in [*cases, (overwrite_schema, b"is damaged", False)]:
        with Folder() as f:
            place = f("50% of #1?")
            os.mkdir(place)
            with Daemon(root=place) as d:
                Ash(d).add("Anna runs")
            check(b"ok: usable" in run_koined("--root", place, "--check").stdout, "not usable")
            if in_log:
                spoil_log(spoil, place)
            else:
                spoil(os.path.join(place, "koine.db"))
            refused_alike(place, words)


# ---- syncs ----


def traced(trace, **opts):
    """A daemon under strace; skips where that cannot be."""
    if SANITIZED:
        raise Skip("a sanitizer does not work under strace")
    installed("strace")
    probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True)
    if probe.returncode != 0:
        raise Skip("strace cannot attach: %r" % probe.stderr[-100:])
    return Daemon(wrapper=["strace", "-f", "-qq", "-s", "400", "-e",
                           "trace=fsync,fdatasync,recvfrom,read,sendto,sendmsg,write,writev", "-o", trace],
                  **opts)


CALL = re.compile(r"^(?P<pid>\d+) +(?:(?P<call>\w+)\((?P<args>.*)|<\.\.\. (?P<resumed>\w+) resumed>(?P<rest>.*))$")


def read_trace(path):
    """Events in order: ("sync",), ("in", text), ("out", text, bytes)."""
    out, pending = [], {}
    with open(path, errors="replace") as file:
        for line in file:
            found = CALL.match(line.rstrip("\n"))
            if not found:
                continue
            pid = found["pid"]
            if found["call"] and line.rstrip().endswith("<unfinished ...>"):
                pending[pid] = found["args"]
                # What is sent is on its way from here; what is read or synced only at the end.
                if found["call"] in ("sendto", "sendmsg", "write", "writev"):
                    out.append(("out", found["args"]))
                    pending[pid] = None
                continue
            call = found["call"] or found["resumed"]
            text = found["args"] or (pending.pop(pid, "") or "") + (found["rest"] or "")
            if call in ("fsync", "fdatasync"):
                check(text.endswith("= 0"), "a sync failed: %r", line)
                out.append(("sync",))
            elif call in ("recvfrom", "read"):
                out.append(("in", text))
            elif found["call"]:
                out.append(("out", text))
    return out


def stop_traced(d):
    """strace passes no signal on: ask the daemon itself to stop."""
    Client(d.address()).call("daemon.stop")
    d.wait_exit()


def test_each_acknowledgement_comes_after_a_sync():
    only_in_a_file("the server syncs")
    with Folder() as f:
        with traced(f("trace")) as d:
            ash = Ash(d)
            with connect(ash.address) as sock:
                for i in range(20):
                    sock.sendall(frame(request_bytes("memory.add", {"content": "synced %d" % i})))
                    open_answer(read_frame(sock))
            stop_traced(d)
        events = read_trace(f("trace"))
        for i in range(20):
            mark = "synced %d\\\"" % i
            arrived = [n for n, e in enumerate(events) if e[0] == "in" and mark in e[1]]
            answered = [n for n, e in enumerate(events)
                        if e[0] == "out" and mark in e[1] and "created_at" in e[1]]
            same((len(arrived), len(answered)), (1, 1), "seen in the trace: %d" % i)
            check(any(e[0] == "sync" for e in events[arrived[0]:answered[0]]),
                  "no sync before the answer to %d", i)
            # The header and the payload are one write.
            check(re.match(r'\d+, "\\0\\0\\0(\\\d+|.)\{\\"jsonrpc', events[answered[0]][1]), "%r",
                  events[answered[0]])


def test_waiting_adds_share_a_sync():
    only_in_a_file("the server syncs")
    per_client = 10
    with Folder() as f:
        with traced(f("trace")) as d:
            ash = Ash(d)

            def client(n):
                with connect(ash.address) as sock:
                    for i in range(per_client):
                        sock.sendall(frame(request_bytes("memory.add", {"content": "%d of %d" % (i, n)})))
                        open_answer(read_frame(sock))

            threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            same(len(ash.contents()), CLIENTS * per_client, "memories")
            stop_traced(d)
        syncs = sum(e[0] == "sync" for e in read_trace(f("trace")))
    note("%d syncs for %d adds of %d clients" % (syncs, CLIENTS * per_client, CLIENTS))
    check(0 < syncs < CLIENTS * per_client / 2, "%d syncs for %d adds", syncs, CLIENTS * per_client)


# ---- no room ----


@contextlib.contextmanager
def small_disk(path, mebibytes):
    os.mkdir(path)
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=%dm" % mebibytes, "koine-test", path],
            capture_output=True).returncode != 0:
        raise Skip("cannot mount a small disk")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def fill_until_refused(ash, acknowledged):
    for i in range(10000):
        content = "filler %d " % i + "x" * 20000
        try:
            acknowledged[content] = ash.add(content)["id"]
        except RPCError as error:
            return error
    raise Failure("the disk was never full")


def still_serves(ash, acknowledged):
    """Reads work, and show what was acknowledged and nothing else."""
    listed = ash.call("memory.list", limit=1000)
    same({m["content"]: m["id"] for m in listed},
         {c: acknowledged[c] for c in list(acknowledged)[-len(listed):]}, "listed")
    check(ash.found("filler"), "nothing is found")


def test_a_full_disk_refuses_adds_and_nothing_else():
    only_in_a_file("the disk is the server's")
    with Folder() as f, small_disk(f("disk"), 8) as disk:
        os.mkdir(os.path.join(disk, "ballast"))
        ballast = os.path.join(disk, "ballast", "file")
        with open(ballast, "wb") as out:
            out.write(b"x" * (3 << 20))
        store = os.path.join(disk, "koine.db")
        acknowledged = {}
        with Daemon("--store", "sqlite:" + store, announced=["call failed"]) as d:
            ash = Ash(d)
            error = fill_until_refused(ash, acknowledged)
            same((error.code, error.message), (-32603, "No space left on device"))
            # A short one may still find room, or not: what counts is the answer.
            for i in range(3):
                with contextlib.suppress(RPCError):
                    content = "short filler %d" % i
                    acknowledged[content] = ash.add(content)["id"]
            still_serves(ash, acknowledged)
            os.unlink(ballast)
            for i in range(20):
                content = "filler afterwards %d" % i
                acknowledged[content] = ash.add(content)["id"]
            still_serves(ash, acknowledged)
        found = stored(store)
        same({c: found.get(c) for c in acknowledged}, acknowledged, "kept")


def test_a_limit_on_file_size_is_a_full_disk():
    only_in_a_file("the disk is the server's")
    with Folder() as f:
        acknowledged = {}
        announced = ["call failed"]

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.RLIM_INFINITY))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        with Daemon(root=f.path, announced=announced, preexec_fn=limit) as d:
            ash = Ash(d)
            same(d.status()["health"], "healthy", "health before")
            fill_until_refused(ash, acknowledged)
            still_serves(ash, acknowledged)
            status = d.status()
            same((status["health"], status["store"]["writes"]),
                 ("degraded", os.strerror(errno.ENOSPC)), "health when nothing can be written")
            resource.prlimit(d.pid, resource.RLIMIT_FSIZE,
                             (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            acknowledged["filler afterwards"] = ash.add("filler afterwards")["id"]
            still_serves(ash, acknowledged)
            status = d.status()
            same((status["health"], status["store"]["writes"]), ("healthy", "ok"), "health after")
        found = stored(f("koine.db"))
        same({c: found.get(c) for c in acknowledged}, acknowledged, "kept")


# ---- files that are not ours ----


def bytes_of(path):
    with open(path, "rb") as file:
        return file.read()


def refuses(folder, store, words):
    before = {name: bytes_of(folder(name)) for name in os.listdir(folder.path)
              if os.path.isfile(folder(name))}
    done = run_koined("--root", folder.path, "--store", "sqlite:" + store)
    check(done.returncode != 0, "it started")
    text = done.stderr.decode()
    for word in words:
        check(word in text, "%r is not in %r", word, text)
    check(b"koined: ready" not in done.stdout, "it said that it is ready")
    after = {name: bytes_of(folder(name)) for name in os.listdir(folder.path)
             if os.path.isfile(folder(name))}
    same({n: after.get(n) == b for n, b in before.items()}, dict.fromkeys(before, True), "unchanged")


def test_stores_that_are_not_ours_are_refused_and_left_alone():
    only_in_a_file("it makes such files")
    with Folder() as f:
        with Daemon(root=f.path) as d:
            Ash(d).add("kept")
        shutil.copy(f("koine.db"), f("good"))

        with open(f("text.db"), "w") as out:
            out.write("this is not a database, it is a letter\n" * 100)
        refuses(f, f("text.db"), ["text.db"])

        shutil.copy(f("good"), f("cut.db"))
        with open(f("cut.db"), "r+b") as out:
            out.seek(100)
            out.write(b"\xa5" * 4000)
        refuses(f, f("cut.db"), ["cut.db", "damaged"])

        shutil.copy(f("good"), f("newer.db"))
        db = sqlite3.connect(f("newer.db"))
        db.execute("PRAGMA user_version = 999")
        db.commit()
        db.close()
        refuses(f, f("newer.db"), ["newer.db", "newer"])

        db = sqlite3.connect(f("other.db"))
        db.execute("CREATE TABLE letters (text)")
        db.commit()
        db.close()
        refuses(f, f("other.db"), ["other.db", "another program's"])

        os.mkdir(f("folder.db"))
        refuses(f, f("folder.db"), ["folder.db"])

        with Daemon("--store", "sqlite:" + f("good")) as d:
            same(Ash(d).contents(), ["kept"])
            refuses(f, f("good"), ["another"])
            same(Ash(d).contents(), ["kept"])


def test_a_store_that_is_read_only_is_refused():
    only_in_a_file("its permissions are a file's")
    with Folder() as f, Folder() as g:
        with Daemon(root=f.path) as d:
            Ash(d).add("kept")
        if os.geteuid() == 0:
            # Modes do not bind root; a mount does.
            done = subprocess.run(["mount", "--bind", f.path, f.path], capture_output=True)
            if done.returncode != 0:
                raise Skip("cannot mount")
            try:
                subprocess.run(["mount", "-o", "remount,ro,bind", f.path], check=True)
                done = run_koined("--root", g.path, "--store", "sqlite:" + f("koine.db"))
            finally:
                subprocess.run(["umount", f.path], check=True)
        else:
            before = bytes_of(f("koine.db"))
            os.chmod(f("koine.db"), 0o400)
            done = run_koined("--root", g.path, "--store", "sqlite:" + f("koine.db"))
            same(bytes_of(f("koine.db")) == before, True, "unchanged")
        check(done.returncode != 0 and b"koine.db" in done.stderr, "%r", done)
        check(b"ead-only" in done.stderr or b"annot write" in done.stderr, "%r", done.stderr)


if __name__ == "__main__":
    main(globals(), measured=(
        "what_was_acknowledged_survives_kill_nine",
        "each_acknowledgement_comes_after_a_sync",
        "waiting_adds_share_a_sync",))
