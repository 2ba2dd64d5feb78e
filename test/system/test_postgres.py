"""PostgreSQL as the store: the store's own tests on it, what is kept, and what is refused."""
import concurrent.futures
import json
import os
import signal
import subprocess
import threading

from harness import (MIB, SANITIZED, Client, Daemon, Failure, Folder, KOINE, check, main, note, peak_rss, request,
                     run_koined, same, wait_until)
from postgres_server import Server, shared_server

BUILD = os.environ["KOINE_BUILD"]
# With a sanitizer those that use every part of the driver are enough: the queries are the same.
SUITES = ["memory", "task", "approval"] if SANITIZED else [
    "approval", "chat", "event", "history", "host", "job", "memory", "session", "tally", "task",
    "vector"]


def test_the_stores_own_tests_pass_on_it():
    if not os.path.exists(os.path.join(BUILD, "test/unit/store/test_store_memory")):
        raise Failure("the unit tests are not built")
    with shared_server() as server:
        for name in ["engine/test_event"] + ["store/test_store_" + suite for suite in SUITES]:
            env = dict(os.environ, KOINE_TEST_STORE=server.database(name.replace("/", "_")))
            done = subprocess.run([os.path.join(BUILD, "test/unit", name)], env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            check(done.returncode == 0, "%s: %s", name,
                  "\n".join(line for line in done.stdout.decode(errors="replace").splitlines()
                            if " OK " not in line and "RUN" not in line)[-3000:])


def add(client, text):
    return client.call("memory.add", {"content": text})["id"]


def found(client, text):
    return [m["content"] for m in client.call("memory.search", {"query": text})]


def test_everything_is_there_after_a_kill():
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url, exit_status=-signal.SIGKILL) as d:
            with d.connect() as c:
                add(c, "Anna runs along the fjord")
                task = c.call("task.add", {"prompt": "where does anna run", "runner": "recall"})
                c.call("task.wait", {"id": task["id"]})
                c.call("send", {"content": "My name is Alice"})
            d.signal(signal.SIGKILL)
            d.wait_exit()
        with Daemon("--store", url) as d, d.connect() as c:
            same(found(c, "fjord"), ["Anna runs along the fjord"], "memories")
            same(c.call("task.get", {"taskId": task["id"]})["state"], "completed", "the task")
            check("Alice" in c.call("send", {"content": "What is my name?"})["content"], "chat")
            same(c.call("daemon.status")["store"]["path"],
                 "postgresql://127.0.0.1:%d/koine" % server.port, "what is shown")


def test_any_text_comes_back():
    with shared_server() as server:
        with Daemon("--store", server.database("koine")) as d, d.connect() as c:
            texts = ["a\0b", "\0", "\U0010ffff", "\U0010ffffff\0", "'; DROP SCHEMA koine; --", "$1 :id",
                     "ä€😀"]
            ids = [add(c, t) for t in texts]
            got = [c.call("memory.get", {"memory_id": i})["content"] for i in ids]
            same(got, texts, "texts")


def test_times_are_wider_than_a_number_beside_them():
    """A server takes a parameter that is compared with 0 for as wide as that 0."""
    with shared_server() as server:
        with Daemon("--store", server.database("koine")) as d, d.connect() as c:
            then = "2023-05-07T08:00:00Z"
            kept = c.call("memory.add", {"content": "Anna runs", "created_at": then})["id"]
            again = c.call("memory.add", {"content": "Anna runs", "created_at": then})["id"]
            same(again, kept, "the same memory")
            same(found(c, "anna"), ["Anna runs"], "now")
            hits = c.call("memory.search", {"query": "anna", "at": "2023-05-08T00:00:00Z"})
            same([m["content"] for m in hits], ["Anna runs"], "then")
            same(c.call("memory.search", {"query": "anna", "at": "2022-01-01T00:00:00Z"}), [], "before")
        with open(server.folder + "/log") as log:
            check("out of range" not in log.read(), "a number is too narrow")


def test_a_server_that_restarts_loses_and_doubles_nothing():
    """Clients write while it is stopped without a word to anybody; what was answered is there, once."""
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url, announced=["call failed"], possible=["the hosts' database"]) as d:
            stop = threading.Event()
            kept = []

            def write(who):
                n = 0
                while not stop.is_set():
                    n += 1
                    text = "note %d of writer %d" % (n, who)
                    with Client(d.address("unix")) as c:
                        answer = json.loads(c.call_text(request("memory.add", {"content": text}, 1)))
                    if "result" in answer:
                        kept.append(text)

            threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
            for t in threads:
                t.start()
            try:
                for _ in range(3):
                    before = len(kept)
                    wait_until(lambda: len(kept) > before + 20, "writes")
                    server.stop("immediate")
                    server.start()
                before = len(kept)
                wait_until(lambda: len(kept) > before + 20, "writes after the last restart")
            finally:
                stop.set()
                for t in threads:
                    t.join()
        rows = server.sql("SELECT content FROM koine.memory", "koine").splitlines()
        missing = [t for t in kept if t not in set(rows)]
        same(missing, [], "answered and lost")
        same(len(set(rows)), len(rows), "each once")


def test_who_comes_after_a_restart_does_not_notice_it():
    """Connections that ended meanwhile are made again before anything is asked, not after it has failed."""
    with shared_server() as server:
        with Daemon("--store", server.database("koine"),
                    possible=["the hosts' database", "error=Input/output error"]) as d, d.connect() as c:
            for mode in "immediate", "fast":
                add(c, "Anna runs (%s)" % mode)
                server.stop(mode)
                server.start()
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    def read(_):
                        with d.connect() as one:
                            return [one.call("event.list", {"since": 0})["events"][0]["type"] for _ in range(5)]
                    same({kind for kinds in pool.map(read, range(8)) for kind in kinds}, {"memory.added"}, "events")
                add(c, "Anna walks (%s)" % mode)
                same(len(found(c, "anna")), 2 if mode == "immediate" else 4, "found")


def test_large_answers_are_not_held_whole():
    """A queue, a log and a list of memories of 100 MiB and more each: koined reads them row by row."""
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url) as d, d.connect() as c:
            for n in range(60):
                c.call("task.add", {"prompt": "x", "stash": True})
                add(c, "memory %d" % n)
            small = peak_rss(d.pid)
        server.sql("UPDATE koine.task SET prompt = repeat('x', 2097152);"
                   "INSERT INTO koine.event (seq, type, time_ms, data) SELECT n + 1000, 'large', koine.koine_now(), decode(repeat('00', 250000), 'hex')"
                   " FROM generate_series(1, 150) AS n; UPDATE koine.event_counter SET last_seq = 1150", "koine")
        with Daemon("--store", url) as d, d.connect() as c:
            same(c.call("task.find", {"limit": 100})["counts"]["total"], 60, "tasks")
            since, n = 0, 0
            while True:
                page = c.call("event.list", {"since": since, "limit": 1000})
                n += len(page["events"])
                since = page["last"]
                if not page["more"]:
                    break
            same(n, 270, "events")
            grown = peak_rss(d.pid) - small
            note("%d MiB more than for small ones" % (grown // MIB))
            check(SANITIZED or grown < 40 * MIB, "%d MiB", grown // MIB)


def test_a_commit_whose_answer_is_lost_is_found_out():
    """It is done, and nobody is told; then the server ends, or the connection."""
    def restart(server):
        server.stop("immediate")
        server.start()

    def end_connection(server):
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                   " AND application_name = 'koined'")

    with Server() as server:
        with Daemon("--store", server.database("koine"), possible=["the hosts' database"]) as d, d.connect() as c:
            add(c, "before")
            # Who began to use the store long ago, and whose row others have deleted since.
            server.sql("DELETE FROM koine.writer", "koine")
            for end in restart, end_connection:
                server.hold_commits()
                with d.connect() as one, concurrent.futures.ThreadPoolExecutor() as pool:
                    asked = pool.submit(add, one, "Anna runs")
                    wait_until(lambda: server.held() == 1, "a commit that waits")
                    server.free_commits()
                    end(server)
                    server.sql("SELECT pg_reload_conf()")
                    same(server.sql("SELECT id FROM koine.memory WHERE content = 'Anna runs'", "koine"), asked.result(), "what is there")
                c.call("memory.delete", {"memory_id": asked.result()})


def test_a_write_that_fails_late_fails_its_batch():
    """Events are stored with the commit; where they cannot be, nothing is kept, and all goes on after."""
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url, announced=["call failed"]) as d, d.connect() as c:
            add(c, "Anna runs")
            server.sql("ALTER TABLE koine.event RENAME TO away", "koine")
            for _ in range(3):
                answer = json.loads(c.call_text(request("memory.add", {"content": "Anna swims"}, 1)))
                check("error" in answer, "%r", answer)
            server.sql("ALTER TABLE koine.away RENAME TO event", "koine")
            add(c, "Anna walks")
            same(sorted(found(c, "anna")), ["Anna runs", "Anna walks"], "what is kept")
        same(server.sql("SELECT seq FROM koine.event ORDER BY seq", "koine").split(),
             ["1", "2"], "numbers have no gap")


# What was added behind the counter.
WITHOUT_HOSTS = """DROP TABLE koine.host, koine.task_chunk, koine.writer; DELETE FROM koine.meta WHERE key = 'host_epoch';
    ALTER TABLE koine.event DROP host; ALTER TABLE koine.session DROP host, DROP epoch, DROP wish;
    ALTER TABLE koine.approval DROP host; ALTER TABLE koine.visitor DROP host;
    ALTER TABLE koine.conversation DROP epoch, DROP host;
    ALTER TABLE koine.task DROP version, DROP epoch, DROP cancel, DROP host, DROP on_host, DROP on_label;
    SET search_path = koine; DROP VIEW koine_tallied; DROP TABLE koine_tally_next, koine_tally_change;
    DROP FUNCTION koine_kinds, koine_counted, koine_owners, koine_tally_fold, koine_tally_often, task_tally,
        memory_tally, conversation_tally, message_call_tally, session_tally;
    CREATE FUNCTION memory_changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE FUNCTION memory_change_old() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"""


def test_an_older_store_is_brought_up_to_date():
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url) as d, d.connect() as c:
            add(c, "Anna runs")
        # As the version before the counter of events left it, with three of them swept away.
        server.sql(WITHOUT_HOSTS + "DROP TABLE koine.event_counter; UPDATE koine.event SET seq = seq + 3;"
                   "INSERT INTO koine.meta (key, value) VALUES ('event_last', '3');"
                   "UPDATE koine.koine_schema SET version = 8", "koine")
        with Daemon("--store", url) as d, d.connect() as c:
            add(c, "Anna swims")
        same(server.sql("SELECT seq FROM koine.event ORDER BY seq", "koine").split(), ["4", "5"], "numbers")


def refused(args, words, env=None):
    with Folder() as f:
        done = run_koined("--root", f("root"), *args, env=env)
    said = done.stderr.decode()
    check(done.returncode != 0, "it started")
    check(words in said, "%r is not in %r", words, said)
    return said


def test_what_cannot_be_a_store_is_refused():
    with shared_server() as server:
        refused(["--store", server.url("nowhere")], 'database "nowhere" does not exist')
        refused(["--store", "postgresql://127.0.0.1:1/x"], "onnection refused")
        said = refused(["--store", "postgresql://koine:geheim@127.0.0.1/x"],
                       "must not contain a password")
        check("geheim" not in said, "%s", said)
        said = refused(["--check", "--store", "postgresql://koine:geheim@127.0.0.1/x"], "password")
        check("geheim" not in said, "%s", said)
        refused(["--store", "postgresql://[x"], "does not understand")
        url = server.database("theirs")
        server.sql("CREATE SCHEMA koine; CREATE TABLE koine.memory (x int)", "theirs")
        refused(["--store", url], "another program's")
        url = server.database("closed")
        server.sql("CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE closed FROM PUBLIC", "closed")
        refused(["--store", server.url("closed", "guest")], "permission denied")
        url = server.database("readonly")
        server.sql("ALTER DATABASE readonly SET default_transaction_read_only = on")
        refused(["--store", url], "read-only")


def test_an_older_program_leaves_a_newer_store_alone():
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url):
            pass
        server.sql("UPDATE koine.koine_schema SET version = 999", "koine")
        refused(["--store", url], "newer koine")


def test_two_daemons_do_not_share_a_name():
    with shared_server() as server:
        url = server.database("koine")
        with Daemon("--store", url, env={"KOINE_HOST_LEASE": "12"}) as d:
            refused(["--store", url], "another koined is host", dict(os.environ, KOINE_HOST_LEASE="12"))
            d.alive()


def identity(server):
    return server.sql("SELECT value FROM koine.meta WHERE key = 'identity'", "koine").split()


def test_databases_of_two_servers_are_two_stores():
    """What a store starts is marked by its identity: two with the same one would end each other's."""
    with shared_server() as one, Server() as other:
        for server in (one, other):
            with Daemon("--store", server.database("koine")):
                pass
        dump = subprocess.run(["pg_dump", "--schema=koine", "-d", one.url("koine")], check=True,
                              stdout=subprocess.PIPE).stdout
        other.sql("DROP SCHEMA koine CASCADE", "koine")
        subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", other.url("koine")], input=dump,
                       check=True, stdout=subprocess.DEVNULL)
        same(identity(other), identity(one), "the copy's, before it is opened")
        with Daemon("--store", other.url("koine")):
            pass
        check(identity(other)[0] != identity(one)[0], "the copy has the original's identity")


def test_a_backup_says_what_to_do():
    with shared_server() as server, Daemon("--store", server.database("koine")) as d, Folder() as f:
        done = subprocess.run([KOINE, "-s", d.socket_path, "backup", f("copy")],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(b"pg_dump" in done.stdout and done.returncode != 0, "%r", done)


if __name__ == "__main__":
    main(globals())
