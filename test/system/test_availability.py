"""PostgreSQL's own ways to be there: a standby that takes over, and poolers in between."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

from harness import (Client, Daemon, Failure, Folder, Skip, check, installed, main, request, run_koined, same,
                     wait_until)
from postgres_server import Server, free_port
from test_postgres import locked


class Standby(Server):
    """A copy that follows `of`, for a `with`."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def make(self):
        self.run("pg_basebackup", "-D", self.folder + "/data", "-d", self.of.url("postgres"), "-R", "-X", "stream",
                 "--checkpoint=fast", "--no-sync")

    def promote(self):
        self.run("pg_ctl", "-D", self.folder + "/data", "-w", "promote")


class Pooler:
    """pgbouncer before a server, for a `with`."""

    def __init__(self, server, mode, more=""):
        self.server, self.mode, self.more = server, mode, more

    def __enter__(self):
        program = installed("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        self.folder = Folder().__enter__()
        self.port = free_port()
        with open(self.folder("pgbouncer.ini"), "w") as f:
            f.write("""[databases]
* = host=127.0.0.1 port=%d user=koine
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
%s""" % (self.server.port, self.port, self.mode, self.more))
        # It refuses to be root's, as the server does.
        os.chmod(self.folder.path, 0o755)
        self.process = subprocess.Popen([*self.server.as_user, program, "-q", self.folder("pgbouncer.ini")], cwd="/",
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.is_there, "pgbouncer")
        return self

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.folder.__exit__(*exc)

    def is_there(self):
        check(self.process.poll() is None, "pgbouncer has ended")
        return subprocess.run(["psql", "-AtqX", "-d", self.url("postgres"), "-c", "SELECT 1"],
                              capture_output=True).returncode == 0

    def url(self, name):
        return "postgresql://koine@127.0.0.1:%d/%s" % (self.port, name)


def refused(url, words):
    with Folder() as f:
        done = run_koined("--root", f("root"), "--store", url)
    check(done.returncode != 0, "it started")
    check(words in done.stderr.decode(), "%r is not in %r", words, done.stderr)


def said(client, method, params):
    return json.loads(client.call_text(request(method, params)))


def add(client, text):
    return client.call("memory.add", {"content": text})["id"]


def found(client, text):
    return sorted(m["content"] for m in client.call("memory.search", {"query": text}))


def test_a_standby_is_refused_and_takes_over():
    """Its primary is killed while clients write; what was answered is there, and koined goes on by itself."""
    with Server() as one:
        name = "koine"
        one.database(name)
        with Standby(one) as two:
            refused(two.url(name), "read-only")
            # A commit is answered when both have it.
            one.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            one.sql("SELECT pg_reload_conf()")
            wait_until(lambda: one.sql("SELECT sync_state FROM pg_stat_replication") == "sync", "the standby to follow")
            url = "postgresql://koine@127.0.0.1:%d,127.0.0.1:%d/%s" % (two.port, one.port, name)
            with Daemon("--store", url, possible=["database unreachable", "call failed"]) as d, d.connect() as c:
                add(c, "Anna runs")
                last = c.call("event.list", {"since": 0})["last"]
                one.stop("immediate")
                try:
                    two.promote()
                    wait_until(lambda: "error" not in said(c, "memory.add", {"content": "Anna swims"}), "it to go on")
                    same(found(c, "anna"), ["Anna runs", "Anna swims"], "memories")
                    same([e["seq"] for e in c.call("event.list", {"since": last})["events"]], [last + 1], "events")
                finally:
                    one.start()


def test_a_pooler_that_keeps_sessions():
    with Server() as server, Pooler(server, "session") as pooler:
        server.database("koine")
        with Daemon("--store", pooler.url("koine"), env={"KOINE_HOST_NAME": "alpha"}) as a, \
                Daemon("--store", server.url("koine"), env={"KOINE_HOST_NAME": "beta"}) as b, a.connect() as here, b.connect() as there:
            for n in range(3):
                add(here, "here %d" % n)
                add(there, "there %d" % n)
            for c in here, there:
                wait_until(lambda: (len(found(c, "here")), len(found(c, "there"))) == (3, 3), "what both have added")


def test_a_pooler_that_keeps_none_is_refused():
    with Server() as server:
        server.database("koine")
        for mode in "transaction", "statement":
            with Pooler(server, mode) as pooler:
                for _ in range(2):
                    refused(pooler.url("koine"), "pool_mode = session")
        same(server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'", "koine"), "0", "tables")
        same(server.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'", "koine"), "0", "locks")


# ---- a fail-over that loses commits, and a log that goes on without us ----


class Caller(threading.Thread):
    """Connects again and again, for a `with`: a listener that is kept never refuses."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.over, self.faults, self.n = path, threading.Event(), [], 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()

    def run(self):
        while not self.over.wait(0.01):
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(self.path)
                    self.n += 1
                except OSError as why:
                    self.faults.append(str(why))


def ids(client):
    return sorted(t["id"] for t in client.call("task.find", {"limit": 100})["tasks"])


def test_failover_that_lost_commits_starts_every_host_anew():
    """The standby has stood still for a while: tasks, memories and event numbers are given out a second time."""
    with Server() as one, Folder() as f, contextlib.ExitStack() as last:
        one.database("koine")
        with Standby(one) as two:
            url = "postgresql://koine@127.0.0.1:%d,127.0.0.1:%d/koine" % (two.port, one.port)
            options = dict(possible=["database unreachable", "call failed"],
                           announced=["cached state is stale", "lease lost"])
            options["possible"] += ["stopped running tasks", "guard ended leftover programs",
                                     "could not store tasks, retrying"]
            with Daemon("--store", url, env={"KOINE_HOST_NAME": "alpha"}, **options) as a, \
                    Daemon("--store", url, env={"KOINE_HOST_NAME": "beta"}, **options) as b:
                with a.connect() as here, b.connect() as there, Client(a.address("unix")) as follower, \
                        Caller(a.socket_path) as caller:
                    add(here, "Anna runs")
                    here.call("task.add", {"prompt": "x", "stash": True})
                    wait_until(lambda: found(there, "anna") == ["Anna runs"], "the memory at beta")
                    wait_until(lambda: one.sql("SELECT replay_lsn = pg_current_wal_lsn() FROM pg_stat_replication")
                               == "t", "the standby to follow")
                    two.stop("fast")
                    # What is lost: two tasks, one of them running, a memory, and their events.
                    add(here, "Anna swims")
                    here.call("task.add", {"prompt": "lost", "stash": True})
                    program = here.call("task.run", {"command": ["sh", "-c", "echo $$ > %s; exec sleep 1000" % f("pid")]})
                    wait_until(lambda: os.path.exists(f("pid")) and read(f("pid")).strip(), "the program")
                    wait_until(lambda: program["id"] in ids(there), "the task at beta")
                    follower.send(request("event.subscribe", {}) + b"\n")
                    follower.read_line()
                    one.stop("immediate")
                    last.callback(one.start)
                    two.start()
                    two.promote()
                    lines = []
                    with contextlib.suppress(Failure, OSError):
                        while True:
                            lines.append(follower.read_line())
                    check(any(b"event.gone" in line for line in lines), "%r", lines)
                for d in a, b:
                    wait_until(lambda: b"cached state is stale" in d.log() and d.log().count(b" started ") == 2, "a new start")
                check(not alive(int(read(f("pid")))), "the program of a lost task runs")
                same(caller.faults, [], "refused")
                with a.connect() as here, b.connect() as there:
                    for c in here, there:
                        same(found(c, "anna"), ["Anna runs"], "memories")
                        same(len(ids(c)), 1, "tasks")
                    for n in range(5):
                        here.call("task.add", {"prompt": "x", "stash": True})
                        there.call("task.add", {"prompt": "x", "stash": True})
                    add(there, "Anna walks")
                    for c in here, there:
                        wait_until(lambda: found(c, "anna") == ["Anna runs", "Anna walks"], "the new memory")
                        wait_until(lambda: len(ids(c)) == 11 == len(set(ids(c))), "the new tasks")
                        same(c.call("health")["status"], "ok", "health")


def test_restored_database_starts_a_running_host_anew():
    """The schema is replaced under a running koined by an older copy of it."""
    with Server() as server:
        url = server.database("koine")
        with Daemon("--store", url, possible=["database unreachable", "call failed"],
                    announced=["cached state is stale", "lease lost"]) as d:
            with d.connect() as c:
                add(c, "Anna runs")
                dump = subprocess.run(["pg_dump", "--schema=koine", "-d", url], check=True, stdout=subprocess.PIPE).stdout
                add(c, "Anna swims")
            server.sql("DROP SCHEMA koine CASCADE", "koine")
            subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", url], input=dump, check=True,
                           stdout=subprocess.DEVNULL)
            wait_until(lambda: d.log().count(b" started ") == 2, "a new start")
            with d.connect() as c:
                same(found(c, "anna"), ["Anna runs"], "memories")


ANEW = dict(possible=["database unreachable", "call failed", "waiting for the store", "the database "],
            announced=["cached state is stale", "lease lost"])


def test_log_whose_last_event_is_another_one_starts_a_running_host_anew():
    """A copy of the server's files that has gone on: what is known of its log has the same numbers, but other times."""
    with Server() as server:
        with Daemon("--store", server.database("koine"), **ANEW) as d:
            with d.connect() as c:
                add(c, "Anna runs")
            server.sql("UPDATE koine.event SET time_ms = time_ms + 1;"
                       "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'koined'", "koine")
            wait_until(lambda: d.log().count(b" started ") == 2, "a new start")


def test_files_that_are_put_back_start_a_running_host_anew():
    """A snapshot of the server's disk: its identity and timeline are what they were."""
    with Server() as server:
        url = server.database("koine")
        with Daemon("--store", url, **ANEW) as d:
            with d.connect() as c:
                add(c, "Anna runs")
                server.stop("fast")
                subprocess.run(["cp", "-a", server.folder + "/data", server.folder + "/copy"], check=True)
                server.start()
                wait_until(lambda: "result" in said(c, "memory.add", {"content": "Anna swims"}), "it to go on")
                c.call("task.add", {"prompt": "lost", "stash": True})
                server.stop("immediate")
            shutil.rmtree(server.folder + "/data")
            os.rename(server.folder + "/copy", server.folder + "/data")
            server.start()
            wait_until(lambda: d.log().count(b" started ") == 2, "a new start")
            with d.connect() as c:
                same(found(c, "anna"), ["Anna runs"], "memories")
                same(ids(c), [], "tasks")
                same(c.call("task.add", {"prompt": "x", "stash": True})["id"], ids(c)[0], "a new task")


def dump_in_two(server):
    """Tables with rows, as statements; and what a dump makes after them."""
    text = subprocess.run(["pg_dump", "--inserts", "--schema=koine", "-d", server.url("koine")], check=True,
                          stdout=subprocess.PIPE).stdout
    # psql's own commands open and close what it reads; each part is read by another one.
    text = b"".join(line for line in text.splitlines(True) if not line.startswith(b"\\"))
    at = text.index(b"ADD CONSTRAINT")
    at = text.rindex(b"ALTER TABLE", 0, at)
    return text[:at], text[at:]


def restore(server, part):
    subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", server.local_url("koine")], input=part, check=True,
                   stdout=subprocess.DEVNULL)


def test_restore_is_waited_for_before_a_new_start():
    """One that began in its middle would read half of the rows, and hear of the others never."""
    with Server() as server:
        with Daemon("--store", server.database("koine"), **ANEW) as d:
            with d.connect() as c:
                add(c, "Anna runs")
                rows, rules = dump_in_two(server)
                add(c, "Anna swims")
                server.sql("DROP SCHEMA koine CASCADE", "koine")
                restore(server, rows)
                wait_until(lambda: "incomplete" in c.call("daemon.status")["store"]["answers"], "the fault")
                begun = c.call("daemon.status")["uptime_seconds"]
                wait_until(lambda: c.call("daemon.status")["uptime_seconds"] > begun + 2, "several tries")
                same(c.call("daemon.status")["health"], "degraded", "health")
                check(b"cached state is stale" not in d.log(), "it has not waited")
                restore(server, rules)
            wait_until(lambda: d.log().count(b" started ") == 2, "a new start")
            with d.connect() as c:
                same(found(c, "anna"), ["Anna runs"], "memories")
                same(c.call("daemon.status")["health"], "healthy", "health")


def test_host_starts_beside_the_row_of_one_that_has_written_since_a_restore():
    """Its writer's number was given out before, and the sequence is that of the dump again."""
    with Server() as server:
        url = server.database("koine")
        with Daemon("--store", url, env={"KOINE_HOST_NAME": "alpha"}) as a, a.connect() as c:
            add(c, "Anna runs")
            server.sql("SELECT setval(pg_get_serial_sequence('koine.writer', 'id'), 1, false)", "koine")
            with Daemon("--store", url, env={"KOINE_HOST_NAME": "beta"}) as b, b.connect() as there:
                same(found(there, "anna"), ["Anna runs"], "memories")
                add(there, "Anna swims")


def test_new_start_waits_for_a_database_that_is_gone_again():
    """Sessions go on to the end, and no new one is let in: as by a fail-over that is not over."""
    with Server() as server:
        url = server.database("koine")
        with Daemon("--store", url, **ANEW) as d:
            with d.connect() as c:
                add(c, "Anna runs")
                dump = b"".join(dump_in_two(server))
                add(c, "Anna swims")
            with open(server.folder + "/data/pg_hba.conf") as f:
                rules = f.read()
            write_rules(server, "host koine all samenet reject\n" + rules)
            server.sql("DROP SCHEMA koine CASCADE", "koine")
            restore(server, dump)
            wait_until(lambda: b"waiting for the store" in d.log(), "it to wait")
            # The beginning of another restore, in which the schema is not yet koine's.
            server.sql("DROP SCHEMA koine CASCADE; CREATE SCHEMA koine; CREATE TABLE koine.first (x int)", "koine")
            with d.connect() as c:
                c.send(request("ping") + b"\n")
                write_rules(server, rules)
                wait_until(lambda: b"belongs to another program" in d.log() or d.process.poll() is not None, "it to look")
                restore(server, b"BEGIN; SET LOCAL client_min_messages = warning; DROP SCHEMA koine CASCADE;\n" + dump + b"COMMIT;\n")
                check(b"pong" in c.read_line(), "no answer")
                same(found(c, "anna"), ["Anna runs"], "memories")


def write_rules(server, text):
    with open(server.folder + "/data/pg_hba.conf", "w") as f:
        f.write(text)
    server.sql("SELECT pg_reload_conf()")


def test_host_that_missed_deleted_events_reads_everything_again():
    """Whatever they reported: of tasks, requests and memories. Its clients stay connected."""
    with Server() as server:
        url = server.database("koine")
        with Daemon("--store", url, env={"KOINE_HOST_NAME": "alpha"}) as a, \
                Daemon("--store", url, env={"KOINE_HOST_NAME": "beta", "KOINE_HOST_LEASE": "60"},
                       possible=["database unreachable"], announced=["events were deleted before"]) as b, \
                a.connect() as here, b.connect() as there, Client(b.address("unix")) as follower, \
                Client(a.address("unix")) as asker, Client(b.address("unix")) as waiter, contextlib.ExitStack() as stack:
            add(there, "Anna runs")
            running = there.call("task.run", {"command": ["sleep", "1000"]})["id"]
            wait_until(lambda: there.call("task.stats")["running"] == 1, "it to run")
            kept = [here.call("task.add", {"prompt": "x", "stash": True})["id"] for _ in range(2)]
            wait_until(lambda: set(kept) <= set(ids(there)), "the tasks at beta")
            kept_there = there.call("task.add", {"prompt": "x", "stash": True, "project": b.root})["id"]
            there.call("memory.search", {"query": "anna"})
            waiter.send(request("task.wait", {"id": kept[0]}) + b"\n")
            follower.send(request("event.subscribe", {}) + b"\n")
            follower.read_line()
            os.kill(b.pid, signal.SIGSTOP)
            stack.callback(os.kill, b.pid, signal.SIGCONT)
            here.call("task.cancel", {"taskId": kept[0]})
            new = [here.call("task.add", {"prompt": "x", "stash": True})["id"] for _ in range(20)]
            over = here.call("task.add", {"prompt": "x", "project": b.root})["id"]  # which beta never sees open
            here.call("task.cancel", {"taskId": over, "project": b.root})
            asker.send(request("approval.request", {"tool": "Bash", "input": {"command": "ls"}}) + b"\n")
            wait_until(lambda: here.call("approval.list", {"status": "pending"})["approvals"], "the request")
            add(here, "Anna swims")
            server.sql("DELETE FROM koine.event WHERE seq <= (SELECT max(seq) - 1 FROM koine.event)", "koine")
            os.kill(b.pid, signal.SIGCONT)
            check(b"cancelled" in waiter.read_line(), "the waiter was not answered")
            wait_until(lambda: ids(there) == ids(here), "tasks")
            aiwg = stack.enter_context(Client(b.address("unix", "aiwg")))
            wait_until(lambda: [task["id"] for task in aiwg.call("task.list")] == [over, kept_there], "its project's list")
            same(there.call("task.stats")["running"], 1, "running tasks")
            wait_until(lambda: found(there, "anna") == ["Anna runs", "Anna swims"], "memories")
            gone = follower.read_line()
            while b"event.gone" not in gone:
                gone = follower.read_line()
            one = there.call("approval.list", {"status": "pending"})["approvals"][0]["id"]
            there.call("approval.decide", {"id": one, "decision": "approve"})
            check(b"approved" in asker.read_line(), "the asker was not answered")
            same(b.log().count(b" started "), 1, "starts")
            there.call("task.cancel", {"taskId": running, "project": ""})


def read(path):
    with open(path) as text:
        return text.read()


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


# ---- a role that may do no more than it must ----


def test_a_role_with_a_password_that_owns_the_database():
    with Server() as server, Folder() as f:
        server.sql("CREATE ROLE keeper LOGIN PASSWORD 'open-sesame'")
        server.sql("CREATE DATABASE ours OWNER keeper")
        hba = server.folder + "/data/pg_hba.conf"
        with open(hba) as known:
            others = known.read()
        with open(hba, "w") as out:
            out.write("host all keeper 127.0.0.1/32 scram-sha-256\n" + others)
        server.sql("SELECT pg_reload_conf()")
        with open(f("pass"), "w") as out:
            os.chmod(f("pass"), 0o600)
            out.write("127.0.0.1:%d:ours:keeper:open-sesame\n" % server.port)
        env = {"PGPASSFILE": f("pass")}
        url = server.url("ours", "keeper")
        wait_until(lambda: b"password" in run_koined("--root", f("other"), "--check", "--store", url).stdout, "the rule")
        with Daemon("--store", url, env=env) as d, d.connect() as c:
            c.call("memory.add", {"content": "Anna runs"})
            same([m["content"] for m in c.call("memory.search", {"query": "anna"})], ["Anna runs"], "found")
            task = c.call("task.run", {"command": ["true"]})
            same(c.call("task.wait", {"id": task["id"]})["state"], "completed", "a task")
            with open("/proc/%d/cmdline" % d.process.pid) as words:
                check("sesame" not in words.read(), "the password is seen")
            check(b"sesame" not in d.log(), "the password is logged")


def test_tables_are_not_changed_while_others_use_them():
    with Server() as server, Folder() as f:
        url = server.database("koine")
        with Daemon("--store", url, env={"KOINE_HOST_NAME": "first"}):
            server.sql("UPDATE koine.koine_schema SET version = version - 1", "koine")
            done = run_koined("--root", f("other"), "--store", url, env=dict(os.environ, KOINE_HOST_NAME="second"))
            check(done.returncode != 0 and b"stop those hosts first" in done.stderr, "%r", done.stderr)
            checked = run_koined("--root", f("other"), "--check", "--store", url, env=dict(os.environ, KOINE_HOST_NAME="second"))
            same(checked.returncode, done.returncode, "exit status of --check")
            check(b"stop those hosts first" in checked.stdout, "%r", checked.stdout)
            server.sql("UPDATE koine.koine_schema SET version = version + 1", "koine")


# ---- a disk ----


class SmallDisk:
    """One that is soon full, for a `with`; as root."""

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip("only root makes a small disk")
        self.folder = Folder().__enter__()
        os.chmod(self.folder.path, 0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0777", "none", self.folder.path], check=True)
        return self

    def grow(self):
        subprocess.run(["mount", "-o", "remount,size=64m", self.folder.path], check=True)

    def __exit__(self, *exc):
        subprocess.run(["umount", "-l", self.folder.path], check=True)
        self.folder.__exit__()


def test_a_disk_that_is_full_loses_nothing():
    with SmallDisk() as disk, Server() as server:
        shutil.chown(disk.folder.path, "postgres")
        server.sql("CREATE TABLESPACE small LOCATION '%s'" % disk.folder.path)
        server.sql("CREATE DATABASE koine TABLESPACE small")
        with Daemon("--store", server.url("koine"), announced=["call failed"]) as d, d.connect() as c:
            kept, error = [], None
            for i in range(200):
                # What cannot be made smaller by the server.
                text = "note %d %s" % (i, os.urandom(60000).hex())
                answer = json.loads(c.call_text(request("memory.add", {"content": text}, 1)))
                error = answer.get("error")
                if error:
                    break
                kept.append(text[:20])
            check(error, "the disk is never full")
            check("No space left" in error["message"], "%r", error)
            same(c.call("memory.search", {"query": "note 0"})[0]["content"][:6], "note 0", "it still reads")
            disk.grow()
            kept.append("there is room")
            wait_until(lambda: "result" in json.loads(c.call_text(
                request("memory.add", {"content": kept[-1]}, 1))), "room")
            rows = server.sql("SELECT left(content, 20) FROM koine.memory", "koine").splitlines()
            same(sorted(rows), sorted(kept), "what is kept")


def test_a_start_on_a_full_disk_names_the_cause():
    for exists in False, True:
        with SmallDisk() as disk, Folder() as folder:
            args = ("--root", folder.path, "--store", "sqlite:" + disk.folder("koine.db"))
            if exists:
                same(run_koined(*args, "--init-store").returncode, 0, "a store")
            for size in 65536, 4096:
                with open(disk.folder("filler"), "ab", buffering=0) as f, contextlib.suppress(OSError):
                    while True:
                        f.write(bytes(size))
            done = run_koined(*args)
            check(done.returncode != 0 and b"koine.db: no space left on device" in done.stderr, "%r", done)


if __name__ == "__main__":
    main(globals())
