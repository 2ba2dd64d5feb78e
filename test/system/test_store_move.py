"""koine store move: a store is copied whole between SQLite and PostgreSQL, checked, and goes on."""
import contextlib
import fcntl
import os
import pty
import signal
import sqlite3
import struct
import subprocess
import termios

from embedding_server import Model
from harness import (KOINE, SOURCE, Daemon, Folder, check, clean_environment, main, run_koined, same,
                     wait_until)
from postgres_server import shared_server
from test_gateway import TOKEN, Gateway

AGENT = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")
MEMORIES = 700  # more than are counted one by one
RULES = "[rule greet]\nevent=memory.updated\nprompt=a memory has changed\nrunner=recall\n"


def served(url, *args, **opts):
    words = ["session.program=" + AGENT, "listen.gateway=on", *args]
    return Daemon("--store", url, *(w for s in words for w in ("--set", s)),
                  env={"OPENCLAW_UI_TOKEN": TOKEN}, **opts)


def move(source, target, status=0):
    done = subprocess.run([KOINE, "store", "move", source, target], env=clean_environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    same(done.returncode, status, "exit status (%r)" % done.stderr)
    return (done.stdout + done.stderr).decode()


# ---- what is in one ----


def fill_memories(c):
    ids = [c.call("memory.add", dict(content="note %d \0 ä" % i, **whose))["id"]
           for i, whose in enumerate([{}, {"user_id": "ann"}, {"user_id": "b\0b"}, {"project": "/p"},
                                      {"chat_id": "c"}] * (MEMORIES // 5))]
    for text in "changed once", "changed twice":
        c.call("memory.update", {"memory_id": ids[0], "content": text})
    c.call("memory.delete", {"memory_id": ids[-5]})
    wait_until(lambda: c.call("memory.stats")["vectors_pending"] == 0, "vectors")


def fill_work(c):
    first = c.call("task.add", {"prompt": "one", "runner": "recall"})["id"]
    second = c.call("task.add", {"prompt": "two", "runner": "recall", "after": [first]})["id"]
    c.call("task.wait", {"id": second})
    c.call("task.add", {"prompt": "three", "runner": "recall", "delay": 3600000, "after": [second]})
    c.call("task.pause", {"group": "slow"})
    session = c.call("session.launch", {"query": "say Hi\nsay Done"})["id"]
    wait_until(lambda: c.call("session.get", {"id": session})["status"] == "completed", "session")
    asked = c.call("approval.create", {"tool": "Bash", "input": {"command": "make"}})["id"]
    c.call("approval.decide", {"id": asked, "decision": "deny", "comment": "no"})
    c.call("approval.create", {"tool": "Bash", "input": {"command": "ls"}})
    c.call("approval.grant", {"tool": "Read", "verdict": "allow"})


def fill(url, folder):
    """A store with something of everything."""
    with open(folder("koine.conf"), "w") as f:
        f.write(RULES)
    with Model(dim=8) as model:
        args = ["memory.embedding_url=" + model.url, "memory.embedding_model=test"]
        daemon = served(url, *args)
        daemon.args += ["--config", folder("koine.conf")]
        with daemon as d, d.connect() as c:
            wait_until(lambda: b"rule state loaded" in d.log(), "rules")
            fill_memories(c)
            c.call("send", {"content": "My name is Alice"})
            fill_work(c)
            Gateway(d).get("/cron/add", {
                "name": "Report", "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "UTC"},
                "payload": {"kind": "agentTurn", "message": "hello"}, "delivery": {"mode": "none"}})
            wait_until(lambda: not [t for t in c.call("task.list", {"limit": 100})
                                    if t["state"] in ("queued", "running")
                                    and t["prompt"] != "three"], "tasks")


def dump(path):
    """Every row of every table, the numbers that are given next, and the schema."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        tables = [n.decode() for (n,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        out = {t: sorted(db.execute('SELECT * FROM "%s"' % t), key=repr) for t in tables}
        out["schema"] = sorted(db.execute("SELECT type, name, sql FROM sqlite_schema"), key=repr)
        return out


def same_dumps(got, want):
    same(sorted(got), sorted(want), "tables")
    for table in want:
        if table == "sqlite_sequence":
            # One that has numbered nothing may be named there or not.
            got[table], want[table] = ([r for r in d[table] if r[1]] for d in (got, want))
        same(got[table], want[table], table)


NEEDED = ["memory", "memory_version", "memory_vector", "memory_vector_floats", "conversation", "turn",
          "message", "event", "task", "task_after", "task_pause", "rule", "session", "session_text",
          "session_event", "approval", "approval_grant", "job", "tally", "tally_mark",
          "memory_change"]


def test_there_and_back_gives_the_same():
    with shared_server() as server, Folder() as f:
        fill("sqlite:" + f("a.db"), f)
        before = dump(f("a.db"))
        same([t for t in NEEDED if not before[t]], [], "tables without rows")
        file_before = open(f("a.db"), "rb").read()
        url = server.database("koine")
        said = move("sqlite:" + f("a.db"), url)
        check("a.db.tasks" in said and "100% checking" in said, "%s", said)
        same(open(f("a.db"), "rb").read(), file_before, "the source's bytes")
        move(url, "sqlite:" + f("b.db"))
        same_dumps(dump(f("b.db")), before)
        move("sqlite:" + f("b.db"), "sqlite:" + f("c.db"))
        same_dumps(dump(f("c.db")), before)
        other = server.database("other")
        move(url, other)
        same(server.sql("SELECT count(*), sum(length(content)) FROM koine.memory", "other"),
             server.sql("SELECT count(*), sum(length(content)) FROM koine.memory", "koine"), "rows")
        same(server.sql("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'O'",
                        "koine"), "0", "triggers that are off")


def counted(c):
    got = c.call("memory.stats")
    return {k: got[k] for k in ("total", "personal", "group", "project", "common", "owners")}


def add_and_count(c):
    share = MEMORIES // 5
    have = {"total": MEMORIES - 1, "personal": 2 * share, "group": share, "project": share,
            "common": share - 1, "owners": 2}
    same(counted(c), have, "memories")
    for i in range(600):
        c.call("memory.add", {"content": "another %d" % i, "user_id": "ann"})
    new = c.call("memory.add", {"content": "changed soon"})["id"]
    c.call("memory.update", {"memory_id": new, "content": "changed"})
    c.call("memory.delete", {"memory_id": new})
    same(counted(c), dict(have, total=have["total"] + 600, personal=have["personal"] + 600),
         "memories after more came")


def serve_on(url, model):
    """All is there, and new rows have new numbers."""
    with served(url, "memory.embedding_url=" + model.url, "memory.embedding_model=test") as d, \
            d.connect() as c:
        same([c.call("memory.stats")[k] for k in ("vectors", "vectors_pending")], [MEMORIES - 1, 0],
             "vectors")
        check("Alice" in c.call("send", {"content": "What is my name?"})["content"], "chat")
        ids = {t["id"] for t in c.call("task.list", {"limit": 1000})}
        task = c.call("task.add", {"prompt": "four", "runner": "recall"})["id"]
        check(len(ids) >= 3 and task not in ids, "%s is taken", task)
        c.call("task.wait", {"id": task})
        add_and_count(c)
        same(len(c.call("session.list")["sessions"]), 1, "sessions")
        same(len(c.call("approval.grants")["grants"]), 1, "grants")
        same(c.call("approval.list")["pending"], 1, "pending")
        same(len(Gateway(d).get("/cron/list")), 1, "jobs")
        session = c.call("session.launch", {"query": "say Hi"})["id"]
        wait_until(lambda: c.call("session.get", {"id": session})["status"] == "completed", "session")
        c.call("approval.create", {"tool": "Bash", "input": {}})
        wait_until(lambda: c.call("memory.stats")["vectors_pending"] == 0, "vectors")


def test_koined_goes_on_with_the_copy():
    with shared_server() as server, Folder() as f:
        fill("sqlite:" + f("a.db"), f)
        url = server.database("koine")
        move("sqlite:" + f("a.db"), url)
        move(url, "sqlite:" + f("b.db"))
        for target in url, "sqlite:" + f("b.db"):
            with Model(dim=8) as model:
                serve_on(target, model)


# ---- interrupted ----


class Halted:
    """A move that waits where its output is full, right after a line."""

    def __init__(self, source, target, text, line):
        self.reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        # Room for what comes up to the line's end, and for no other.
        self.want = size - 4
        upto = text[:text.index(line) + len(line) + 1]
        os.write(writer, b"x" * (self.want - len(upto)))
        self.process = subprocess.Popen([KOINE, "store", "move", source, target],
                                        env=clean_environment(), stdin=subprocess.DEVNULL,
                                        stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)

    def full(self):
        check(self.process.poll() is None, "it has ended: %r", self.process.poll())
        return struct.unpack("i", fcntl.ioctl(self.reader, termios.FIONREAD, b"1234"))[0] == self.want

    def end(self, sig):
        wait_until(self.full, "that it waits")
        self.process.send_signal(sig)
        if sig != signal.SIGKILL:
            while os.read(self.reader, 4096):
                pass
        said = self.process.stderr.read().decode()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.reader)
        return said


def lines_of(text, phase):
    return [line for line in text.splitlines() if "% " + phase in line]


def places_of(text):
    """Before anything is written, in and after each larger table, and while all is compared."""
    checking = lines_of(text, "checking")
    return lines_of(text, "reading")[1:2] + lines_of(text, "copying") + [checking[0], checking[-2]]


def refused_to_serve(target):
    with Folder() as root:
        done = run_koined("--root", root("root"), "--store", target)
    check(done.returncode == 69 and b"is unfinished; run `koine store move` again" in done.stderr,
          "%r", done)


def interrupt_and_go_on(source, make_target, back, before):
    with Folder() as f:
        text = move(source, "sqlite:" + f("dry.db"))
    places = places_of(text)
    check(len(places) >= 6, "%r of %s", places, text)
    for place in places:
        target = make_target()
        Halted(source, target, text, place).end(signal.SIGKILL)
        if "reading" not in place:
            refused_to_serve(target)
        # The server may not have noticed yet that its client is gone.
        done = {}
        wait_until(lambda: done.update(r=subprocess.run(
            [KOINE, "store", "move", source, target], capture_output=True,
            env=clean_environment())) or b"is using" not in done["r"].stderr, "the lock")
        same(done["r"].returncode, 0, "%s: %r" % (place, done["r"].stderr))
        same(b"continuing an interrupted copy" in done["r"].stdout, "reading" not in place, place)
        same_dumps(dump(back(target)), dict(before))


def test_a_move_that_is_killed_goes_on():
    with shared_server() as server, Folder() as f:
        fill("sqlite:" + f("a.db"), f)
        before = dump(f("a.db"))
        made = []

        def database():
            made.append(server.database("koine%d" % len(made)))
            return made[-1]

        def file():
            made.append(f("copy%d.db" % len(made)))
            return "sqlite:" + made[-1]

        def from_postgres(url):
            path = f("back%d.db" % len(made))
            move(url, "sqlite:" + path)
            return path

        interrupt_and_go_on("sqlite:" + f("a.db"), database, from_postgres, before)
        interrupt_and_go_on("sqlite:" + f("a.db"), file, lambda url: url[len("sqlite:"):], before)


def test_a_signal_stops_it_between_pages():
    with Folder() as f:
        fill("sqlite:" + f("a.db"), f)
        source = "sqlite:" + f("a.db")
        text = move(source, "sqlite:" + f("dry.db"))
        for i, place in enumerate((lines_of(text, "copying")[1], lines_of(text, "checking")[1])):
            path = f("copy%d.db" % i)
            halted = Halted(source, "sqlite:" + path, text, place)
            said = halted.end(signal.SIGINT)
            same(halted.process.returncode, 130, "exit status")
            check("run the same command again to continue" in said, "%s", said)
            refused_to_serve("sqlite:" + path)
            check("continuing" in move(source, "sqlite:" + path), "resumed")
            same_dumps(dump(path), dump(f("a.db")))


def half_moved(f, source, target):
    text = move(source, "sqlite:" + f("dry.db"))
    Halted(source, target, text, lines_of(text, "copying")[0]).end(signal.SIGKILL)
    refused_to_serve(target)


def test_it_goes_on_only_with_the_same_unchanged_store():
    with Folder() as f:
        fill("sqlite:" + f("a.db"), f)
        source, target = "sqlite:" + f("a.db"), "sqlite:" + f("b.db")
        half_moved(f, source, target)
        half = open(f("b.db"), "rb").read()
        with served("sqlite:" + f("other.db")) as d, d.connect() as c:
            c.call("memory.add", {"content": "another"})
        check("unfinished move of another store" in move("sqlite:" + f("other.db"), target, 69),
              "another store")
        check("is incomplete" in move(target, "sqlite:" + f("c.db"), 69), "a half store as source")
        check(not os.path.exists(f("c.db")), "a target was made")
        with served(source) as d, d.connect() as c:
            c.call("memory.add", {"content": "one more"})
        check("has changed since the move" in move(source, target, 69), "a changed source")
        same(open(f("b.db"), "rb").read(), half, "the target's bytes")


def test_a_copy_that_differs_is_no_store():
    """Somebody changes a row of the half copy: the digest tells."""
    with Folder() as f:
        fill("sqlite:" + f("a.db"), f)
        source, target = "sqlite:" + f("a.db"), "sqlite:" + f("b.db")
        half_moved(f, source, target)
        with contextlib.closing(sqlite3.connect(f("b.db"))) as db, db:
            db.execute("UPDATE memory SET importance = importance + 0.25 WHERE seq = 3")
        check("the copy differs in table memory" in move(source, target, 69), "a changed row")
        refused_to_serve(target)


# ---- refused ----


def test_what_cannot_be_moved_is_left_alone():
    with shared_server() as server, Folder() as f:
        a, b, url = "sqlite:" + f("a.db"), "sqlite:" + f("b.db"), server.database("koine")
        check("store not found:" in move(a, url, 69), "no source")
        check(not os.path.exists(f("a.db")), "a source was made")
        same(server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'koine'", "koine"), "0",
             "schemas")
        check("store not found:" in move(url, b, 69), "an empty database")
        check(not os.path.exists(f("b.db")), "a target was made")
        with served(a) as d:
            check("in use by another koined" in move(a, b, 69), "source in use")
            d.alive()
        check(not os.path.exists(f("b.db")), "a target was made")
        with served(b) as d:
            check("in use by another koined" in move(a, b, 69), "target in use")
        check("is already a store; refusing to overwrite it" in move(a, b, 69), "target not empty")
        with served(url) as d:
            check("another koined is using" in move(a, url, 69), "target in use")
            check("another koined is using" in move(url, "sqlite:" + f("c.db"), 69), "source in use")
        check("is already a store" in move(a, url, 69), "target not empty")
        check("both addresses are the same" in move(a, a, 64), "the same")
        for wrong in "mysql:x", "sqlite:", f("a.db"):
            check("must be sqlite:PATH" in move(wrong, b, 64), "%s", wrong)
            check("must be sqlite:PATH" in move(a, wrong, 64), "%s", wrong)
        check('database "nowhere" does not exist' in move(a, server.url("nowhere"), 69), "nowhere")
        said = move(a, "postgresql://koine:geheim@127.0.0.1/x", 64)
        check("must not contain a password" in said and "geheim" not in said, "%s", said)
        theirs = server.database("theirs")
        server.sql("CREATE SCHEMA koine; CREATE TABLE koine.memory (x int)", "theirs")
        check("belongs to another program" in move(a, theirs, 69), "another's")
        with open(f("text"), "w") as file:
            file.write("not a database" * 20)
        check("is not a database" in move(a, "sqlite:" + f("text"), 69), "a text")
        move_wants_two = subprocess.run([KOINE, "store", "move", a], capture_output=True)
        same(move_wants_two.returncode, 64, "exit status")


def test_an_older_store_is_refused():
    with Folder() as f:
        with served("sqlite:" + f("a.db")):
            pass
        with contextlib.closing(sqlite3.connect(f("a.db"))) as db:
            db.execute("PRAGMA user_version = 3")
        check("has an older schema: start koined once with this store to update the schema" in
              move("sqlite:" + f("a.db"), "sqlite:" + f("b.db"), 69), "older")


def test_a_terminal_has_one_line():
    with Folder() as f:
        with served("sqlite:" + f("a.db")) as d, d.connect() as c:
            c.call("memory.add", {"content": "x"})
        ours, theirs = pty.openpty()
        process = subprocess.Popen([KOINE, "store", "move", "sqlite:" + f("a.db"),
                                    "sqlite:" + f("b.db")], stdout=theirs, env=clean_environment())
        os.close(theirs)
        out = b""
        with contextlib.suppress(OSError):
            while True:
                out += os.read(ours, 4096)
        os.close(ours)
        same(process.wait(), 0, "exit status")
        check(b"\r100% checking " in out and out.count(b"\n") <= 2, "%r", out)


if __name__ == "__main__":
    main(globals())
