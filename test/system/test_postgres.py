"""PostgreSQL as the store: the store's own tests on it, what is kept, and what is refused."""
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import threading
import time

from harness import (MIB, SANITIZED, Client, Daemon, Failure, Folder, KOINE, check, main, note, peak_rss, post, request,
                     run_koined, same, wait_until)
from libpq import query
from postgres_server import Server, shared_server

BUILD = os.environ["KOINE_BUILD"]
# Those that take long first. The server ends transactions that are idle for 10 s, which a sanitizer makes of the largest.
SUITES = ["store/test_store_" + name for name in (
    "event", "memory", "task", "session", "chat", "approval", "history", "host", "job", "vector")] + ["engine/test_event"]
if not SANITIZED:
    SUITES = ["store/test_store_tally"]


def test_the_stores_own_tests_pass_on_it():
    if not all(os.path.exists(os.path.join(BUILD, "test/unit", name)) for name in SUITES):
        raise Failure("the unit tests are not built")
    def run(name):
        # All of them, whatever is chosen here.
        env = dict(os.environ, KOINE_TEST_STORE=urls[name], TEST_FUNCTION="")
        done = subprocess.run([os.path.join(BUILD, "test/unit", name)], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == 0, "%s: %s", name,
              "\n".join(line for line in done.stdout.decode(errors="replace").splitlines()
                        if " OK " not in line and "RUN" not in line)[-3000:])

    with shared_server() as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        urls = {name: server.store(name.replace("/", "_")) for name in SUITES}
        for done in [pool.submit(run, name) for name in SUITES]:
            done.result()


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
        with Daemon("--store", server.store("koine")) as d, d.connect() as c:
            texts = ["a\0b", "\0", "\U0010ffff", "\U0010ffffff\0", "'; DROP SCHEMA koine; --", "$1 :id",
                     "ä€😀"]
            ids = [add(c, t) for t in texts]
            got = [c.call("memory.get", {"memory_id": i})["content"] for i in ids]
            same(got, texts, "texts")


def test_times_are_wider_than_a_number_beside_them():
    """A server takes a parameter that is compared with 0 for as wide as that 0."""
    with shared_server() as server:
        with Daemon("--store", server.store("koine")) as d, d.connect() as c:
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
        url = server.store("koine")
        with Daemon("--store", url, announced=["call failed"], possible=["database unreachable"]) as d:
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
        with Daemon("--store", server.store("koine"),
                    possible=["database unreachable", "call failed"]) as d, d.connect() as c:
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


def test_call_says_that_the_database_is_away():
    with shared_server() as server:
        with Daemon("--store", server.database("koine"), announced=["call failed"],
                    possible=["database unreachable"]) as d, d.connect() as c:
            add(c, "Anna runs")
            server.stop("immediate")
            try:
                answer = json.loads(c.call_text(request("memory.add", {"content": "Anna swims"}, 1)))
                check("the database is not responding" in answer["error"]["message"], "%r", answer)
                check("is not responding" in c.call("daemon.status")["store"]["writes"], "daemon.status")
                check(b"Input/output error" not in b"".join(l for l in d.log().splitlines() if b"call failed" in l), "%r", d.log())
            finally:
                server.start()
            wait_until(lambda: "result" in json.loads(c.call_text(request("memory.add", {"content": "Anna swims"}, 1))),
                       "a write")


# By dialect: what its clients call.
CALLS = {
    "koine": ["memory.add content=x", "memory.search query=anna", "task.add prompt=x", 'task.run {"command":["true"]}', "task.find",
              "chat.send message=hello", "session.launch query=hello", 'approval.request {"tool":"Bash","input":{}}',
              "event.list", "memory.export", "task.output id=task-0001", "approval.list", "session.list", "host.list"],
    "ash": ["memory.add content=x", "memory.search query=anna", "memory.list", "memory.delete memory_id=00000000"],
    "nexus": ["create_agent", "list_agents", "get_tokens agent_id=default", "get_messages agent_id=default",
              "send content=hello"],
    "ocg": ["Agent.MemoryStore Text=x", "Agent.MemorySearch Query=anna", "Agent.MemoryGet Path=00000000",
            "RPCService.Stats"],
    "hld": ["launchSession query=hello", "listSessions", "getConversation session_id=x", "fetchApprovals",
            'createApproval {"run_id":"x","tool_name":"Bash","tool_input":{}}', "getRecentPaths"],
    "aiwg": ["task.submit prompt=x", "task.list", "task.stats", "task.get taskId=task-0001", "chat.send message=hello"],
}
FRAMINGS = {"koine": "line", "ash": "length", "ocg": "gob", "hld": "line", "aiwg": "line"}


def said_by_each(d):
    """(dialect, call) to what the command line prints for it."""
    def one(asked):
        dialect, call = asked
        if dialect == "nexus":
            method, *params = call.split(" ")
            with Client(d.address("http", dialect)) as c:
                return asked, post(c, request(method, dict(p.split("=") for p in params))).body.decode()
        done = subprocess.run([KOINE, "--framing", FRAMINGS[dialect], "-s", d.address("unix", dialect)[len("unix:"):],
                               "call", *call.split(" ")], capture_output=True, timeout=120)
        return asked, (done.stdout + done.stderr).decode()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(pool.map(one, [(dialect, call) for dialect, calls in CALLS.items() for call in calls]))


NUMBERS_WORDS = ("Input/output error", "Read-only file system", "Stale file handle", "Bad message", "Invalid argument", "No such device")


def test_no_dialect_answers_in_words_of_this_machines_disk():
    """A server that only reads, one without the tables, and one that was stopped: each call says what is the matter, or works."""
    with shared_server() as server:
        with Daemon("--store", server.store("koine"), env={"PATH": os.environ["PATH"]},
                    possible=["database unreachable", "call failed", "error=", "lease lost", "reason="]) as d, d.connect() as c:
            add(c, "Anna runs")
            c.call("task.add", {"prompt": "x", "stash": True})
            for away, words in ((server_read_only, "read-only"), (tables_away, "tables of the store are missing"),
                                (server_stopped, "is not responding")):
                with away(server):
                    answer = json.loads(c.call_text(request("memory.add", {"content": "x"}, 1)))
                    check(words in answer["error"]["message"], "%r", answer)
                    said = said_by_each(d)
                    for asked, text in said.items():
                        check(not any(w in text for w in NUMBERS_WORDS), "%r: %s", asked, text)
                    # No new session is made with a server that only reads.
                    for dialect in CALLS:
                        check(any(w in text for (of, _), text in said.items() for w in (words, "is not responding") if of == dialect),
                              "%s: %r", dialect, {asked: text for asked, text in said.items() if asked[0] == dialect})
                wait_until(lambda: "result" in json.loads(c.call_text(request("memory.add", {"content": "x"}, 1))), "a write")
            log = d.log().decode()
            check(not any(w in log for w in NUMBERS_WORDS), "%s", log)


@contextlib.contextmanager
def server_stopped(server):
    server.stop("immediate")
    try:
        yield
    finally:
        server.start()


@contextlib.contextmanager
def tables_away(server):
    server.sql("ALTER SCHEMA koine RENAME TO away", "koine")
    try:
        yield
    finally:
        server.sql("ALTER SCHEMA away RENAME TO koine", "koine")


@contextlib.contextmanager
def server_read_only(server):
    """As a primary is that was made a standby, for sessions that it still has."""
    def set_to(what):
        server.sql("ALTER SYSTEM SET default_transaction_read_only = " + what)
        server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: server.sql("SHOW default_transaction_read_only") == what, "the setting")

    set_to("on")
    try:
        yield
    finally:
        set_to("off")


def hosts_lines(d):
    return [line for line in d.log().decode().splitlines() if "database unreachable" in line or "database reachable" in line]


def test_nothing_is_alive_or_healthy_while_the_database_is_away():
    """The log has one line when it goes and one when it is back, and both are words, although the lease ends meanwhile."""
    with shared_server() as server:
        with Daemon("--store", server.database("koine"), env={"KOINE_HOST_LEASE": "5"},
                    announced=["database unreachable", "lease lost"],
                    possible=["the database is not responding"]) as d, d.connect() as c:
            same([h["state"] for h in c.call("host.list")["hosts"]], ["alive"], "hosts before")
            same(c.call("daemon.status")["health"], "healthy", "health before")
            server.stop("immediate")
            try:
                wait_until(lambda: c.call("daemon.status")["store"]["answers"] != "ok", "the fault")

                def still_away():
                    """For several of its tries, until the lease is over."""
                    status = c.call("daemon.status")
                    same(status["health"], "degraded", "health")
                    check("connection" in status["store"]["answers"], "%r", status["store"])
                    same([h["state"] for h in c.call("host.list")["hosts"]], ["unknown"], "hosts")
                    return not status["store"]["lease"]

                wait_until(still_away, "the end of the lease")
                shown = subprocess.run([KOINE, "--socket", d.socket_path, "hosts"], capture_output=True, check=True)
                check(b"alive" not in shown.stdout and b"unknown" in shown.stdout, "%r", shown.stdout)
                check(b"is not responding" in shown.stderr, "%r", shown.stderr)
                same(len(hosts_lines(d)), 1, "lines of the log")
                check("Input/output error" not in hosts_lines(d)[0], "%r", hosts_lines(d))
            finally:
                server.start()
            wait_until(lambda: c.call("daemon.status")["health"] == "healthy", "health")
            wait_until(lambda: [h["state"] for h in c.call("host.list")["hosts"]] == ["alive"], "hosts afterwards")
            same(len(hosts_lines(d)), 2, "lines of the log")


def test_hung_writer_is_not_healthy():
    with shared_server() as server:
        with Daemon("--store", server.database("koine"), possible=["database unreachable"]) as d, d.connect() as c:
            with d.connect() as other:
                writer = threading.Thread(target=add, args=(other, "Anna swims"))
                with backends_stand_still(server):
                    writer.start()
                    wait_until(lambda: "has blocked all other writes" in c.call("daemon.status")["store"]["writes"], "the word")
                    same(c.call("daemon.status")["health"], "degraded", "health")
                writer.join()
            wait_until(lambda: c.call("daemon.status")["health"] == "healthy", "health")


@contextlib.contextmanager
def backends_stand_still(server):
    """Of all koined, for a `with`."""
    pids = [int(p) for p in server.sql("SELECT pid FROM pg_stat_activity WHERE datname = 'koine'"
                                       " AND application_name = 'koined'").split()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_host_that_stood_still_is_not_healthy_before_it_has_asked():
    """What others have done meanwhile is not known to it when it answers first."""
    with shared_server() as server:
        with Daemon("--store", server.store("koine"), possible=["database unreachable"]) as d, d.connect() as c:
            same(c.call("daemon.status")["health"], "healthy", "health before")
            os.kill(d.pid, signal.SIGSTOP)
            with backends_stand_still(server):
                c.send(request("daemon.status") + b"\n" + request("host.list", id=2) + b"\n")
                time.sleep(4)
                os.kill(d.pid, signal.SIGCONT)
                status, hosts = (json.loads(c.read_line())["result"] for _ in range(2))
                same(status["health"], "degraded", "health")
                check("no response" in status["store"]["answers"], "%r", status["store"])
                same([h["state"] for h in hosts["hosts"]], ["unknown"], "hosts")
            wait_until(lambda: c.call("daemon.status")["health"] == "healthy", "health")


WAITS = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'koined'"


@contextlib.contextmanager
def locked(server, table):
    """Holds a lock of this table: LOCK's own words."""
    with subprocess.Popen(["psql", "-qAtX", "-d", server.url("koine")], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as holder:
        holder.stdin.write(b"BEGIN; LOCK koine.%s; SELECT 'held';\n" % table.encode())
        holder.stdin.flush()
        same(holder.stdout.readline().strip(), b"held", "the lock")
        yield
        holder.stdin.close()


def test_task_that_could_not_be_read_at_its_start_is_queued_again():
    """Its host has claimed it, and the database goes away before it answers with the command."""
    with shared_server() as server:
        with Daemon("--store", server.store("koine"), possible=["database unreachable"]) as d, d.connect() as c:
            with locked(server, "task_chunk"):
                # A long command is only in the store.
                task = c.call("task.run", {"command": ["true", "x" * 100000]})["id"]
                wait_until(lambda: server.sql("SELECT count(*) " + WAITS) != "0", "the question")
                server.sql("SELECT pg_terminate_backend(pid) " + WAITS)
                wait_until(lambda: server.sql("SELECT state FROM koine.task", "koine") == "0", "it is queued again")
            same(c.call("task.wait", {"id": task})["state"], "completed", "the task")


def test_start_waits_for_a_lock_of_a_suspended_host():
    """As a running koined does with its writes. The server ends each wait after 30 s; here somebody does before."""
    with shared_server() as server:
        url = server.store("koine")
        for table, setting in ("meta", "opening the store"), ("event_counter", "settling a task that was running"):
            with Daemon("--store", url, exit_status=-signal.SIGKILL) as d, d.connect() as c:
                c.call("task.run", {"command": ["sleep", "1000"]})
                wait_until(lambda: server.sql("SELECT count(*) FROM koine.task WHERE state = 1", "koine") == "1", "it to run")
                d.signal(signal.SIGKILL)
                d.wait_exit()
            with contextlib.ExitStack() as lock:
                lock.enter_context(locked(server, table))
                with Daemon("--store", url, announced=["waiting for locks of other hosts"], wait=False) as d:
                    wait_until(lambda: server.sql("SELECT count(*) " + WAITS) != "0", setting)
                    server.sql("SELECT pg_cancel_backend(pid) " + WAITS)
                    wait_until(lambda: b"waiting for locks" in d.log() or d.process.poll() is not None, setting)
                    lock.close()
                    d.wait_ready()
                    with d.connect() as c:
                        same(c.call("task.find", {"limit": 1})["tasks"][0]["error"], "daemon restarted", setting)


def test_page_of_events_from_other_hosts_costs_two_queries():
    """One reads the events, one the rows of all tasks that they name; not one for each of them."""
    with Server("-c log_statement=all -c log_line_prefix=%a:") as server:
        url = server.store("koine")
        with Daemon("--store", url, env={"KOINE_HOST_NAME": "alpha"}) as a, \
                Daemon("--store", url + "?application_name=beta", env={"KOINE_HOST_NAME": "beta", "KOINE_HOST_LEASE": "60"},
                       possible=["database unreachable"]) as b:
            with a.connect() as here, b.connect() as there:
                here.call("task.pause")
                os.kill(b.pid, signal.SIGSTOP)
                for _ in range(50):
                    here.call("task.run", {"command": ["true"]})
                before = os.path.getsize(server.folder + "/log")
                os.kill(b.pid, signal.SIGCONT)
                wait_until(lambda: there.call("task.stats")["queued"] == 50, "the tasks at beta")
            with open(server.folder + "/log") as log:
                log.seek(before)
                reads = [line for line in log if line.startswith("beta:") and " execute " in line and
                         ("FROM event WHERE seq >" in line or "FROM task WHERE" in line)]
            check(2 <= len(reads) <= 6, "%d queries: %s", len(reads), "".join(reads))


def test_two_hosts_restore_a_memory_once():
    """Both have found it before one of them has restored it."""
    with shared_server() as server:
        url = server.store("koine")
        with Daemon("--store", url, env={"KOINE_HOST_NAME": "one"}) as one, one.connect() as c:
            with Daemon("--store", url, env={"KOINE_HOST_NAME": "two"}) as two, two.connect() as other:
                restore = request("memory.restore", {"memory_id": add(c, "Anna runs")}) + b"\n"
                c.call("memory.delete", json.loads(restore)["params"])
                with locked(server, "memory_deleted IN SHARE MODE"):
                    c.send(restore)
                    other.send(restore)
                    wait_until(lambda: server.sql("SELECT count(*) " + WAITS) == "2", "both wait")
                answers = [json.loads(x.read_line()).get("error", {}).get("message", "restored") for x in (c, other)]
                check(sorted(a.split(":")[0] for a in answers) == ["deleted memory not found", "restored"], "%r", answers)
                same(found(c, "anna"), ["Anna runs"], "found")


def test_large_answers_are_not_held_whole():
    """A queue, a log and a list of memories of 100 MiB and more each: koined reads them row by row."""
    with shared_server() as server:
        url = server.store("koine")
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
        with Daemon("--store", server.store("koine"), possible=["database unreachable"]) as d, d.connect() as c:
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
        url = server.store("koine")
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
    DROP TABLE koine.memory_deleted_version, koine.memory_deleted, koine.observed; DROP INDEX koine.task_after_by_id;
    ALTER TABLE koine.approval DROP bond, DROP waiter_pid, DROP waiter_started;
    ALTER TABLE koine.conversation DROP epoch, DROP host;
    ALTER TABLE koine.task DROP skipped, DROP stops, DROP version, DROP epoch, DROP cancel, DROP host, DROP on_host, DROP on_label;
    SET search_path = koine; DROP VIEW koine_tallied; DROP TABLE koine_tally_next, koine_tally_change;
    DROP FUNCTION koine_kinds, koine_counted, koine_owners, koine_tally_fold, koine_tally_often, task_tally,
        memory_tally, conversation_tally, message_call_tally, session_tally;
    CREATE FUNCTION memory_changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE FUNCTION memory_change_old() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"""


def test_an_older_store_is_brought_up_to_date():
    with shared_server() as server:
        url = server.store("koine")
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
        refused(["--store", "postgresql://[x"], "invalid PostgreSQL address")
        url = server.database("theirs")
        server.sql("CREATE SCHEMA koine; CREATE TABLE koine.memory (x int)", "theirs")
        refused(["--store", url], "belongs to another program")
        url = server.database("closed")
        server.sql("CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE closed FROM PUBLIC", "closed")
        refused(["--store", server.url("closed", "guest")], "permission denied")
        url = server.database("readonly")
        server.sql("ALTER DATABASE readonly SET default_transaction_read_only = on")
        refused(["--store", url], "read-only")


def test_an_older_program_leaves_a_newer_store_alone():
    with shared_server() as server:
        url = server.store("koine")
        with Daemon("--store", url):
            pass
        server.sql("UPDATE koine.koine_schema SET version = 999", "koine")
        said = refused(["--store", url], "newer koine")
        check("postgresql://" in said, "%s", said)
        with Folder() as f:
            done = run_koined("--root", f("root"), "--check", "--store", url)
        same(done.returncode, 69, "exit status of --check")
        check(b"newer koine" in done.stdout, "%r", done.stdout)


def rows(server, table, name):
    return int(server.sql("SELECT count(*) FROM koine." + table, name))


def test_init_store_makes_tables_without_data():
    """Copies of such a database are stores of their own, so it can be a template."""
    with shared_server() as server:
        url = server.database("plain")
        for _ in range(2):
            done = run_koined("--init-store", "--store", url)
            same((done.returncode, done.stderr), (0, b""), "status and errors")
            same(done.stdout.decode(), "initialized %s\n" % url, "output")
            same({t: rows(server, t, "plain") for t in ("host", "writer", "visitor", "event", "tally", "memory")},
                 dict.fromkeys(("host", "writer", "visitor", "event", "tally", "memory"), 0), "rows")
            same(server.sql("SELECT key, value FROM koine.meta ORDER BY key", "plain"), "clean|1\nhost_epoch|0", "meta")
        server.sql("CREATE DATABASE koine TEMPLATE plain")
        server.made.append("koine")
        for name in "plain", "koine":
            with Daemon("--store", server.url(name)) as d, d.connect() as c:
                add(c, "Anna runs")
                same(run_koined("--init-store", "--store", server.url(name)).returncode, 0, "beside a daemon")
                same(found(c, "anna"), ["Anna runs"], name)
        first, second = (server.sql("SELECT value FROM koine.meta WHERE key = 'identity'", n) for n in ("plain", "koine"))
        check(first.split()[0] != second.split()[0], "both stores have the identity %s", first)
        server.sql("UPDATE koine.koine_schema SET version = 999", "koine")
        done = run_koined("--init-store", "--store", server.url("koine"))
        same(done.returncode, 69, "status for a newer store")
        check(b"newer koine" in done.stderr, "%r", done.stderr)


def test_two_daemons_do_not_share_a_name():
    with shared_server() as server:
        url = server.store("koine")
        with Daemon("--store", url, env={"KOINE_HOST_LEASE": "12"}) as d:
            refused(["--store", url], "another koined already uses the host name", dict(os.environ, KOINE_HOST_LEASE="12"))
            d.alive()


def identity(server):
    return server.sql("SELECT value FROM koine.meta WHERE key = 'identity'", "koine").split()


def test_databases_of_two_servers_are_two_stores():
    """What a store starts is marked by its identity: two with the same one would end each other's."""
    with shared_server() as one, Server() as other:
        for server in (one, other):
            with Daemon("--store", server.store("koine")):
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
    with shared_server() as server, Daemon("--store", server.store("koine")) as d, Folder() as f:
        done = subprocess.run([KOINE, "-s", d.socket_path, "backup", f("copy")],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(b"pg_dump" in done.stdout and done.returncode != 0, "%r", done)


# ---- a schema that another role has made ----

# A role with its own account in the same database, which prepared the schema before koined came.
PREPARED = """
    INSERT INTO koine.task (project, id, state, priority, created_ms, started_ms, completed_ms, pid, pid_started,
        exit_status, signal, output_bytes, timeout_ms, attempts, max_attempts, retry_ms, not_before_ms, n_after, agent,
        prompt, command) SELECT project, 'task-6666', 0, 0, created_ms, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, agent,
        prompt, command FROM koine.task LIMIT 1;
    CREATE TABLE koine.seen (who TEXT);
    CREATE FUNCTION koine.act() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO koine.seen VALUES (current_user); RETURN NEW; END';
    CREATE TRIGGER act AFTER UPDATE ON koine.meta FOR EACH ROW EXECUTE FUNCTION koine.act();
    GRANT USAGE, CREATE ON SCHEMA koine TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA koine TO PUBLIC;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA koine TO PUBLIC;"""


@contextlib.contextmanager
def database_of_two(server):
    """Two ordinary roles in one database: (its name, the second one's url)."""
    server.sql("CREATE ROLE mallory LOGIN; CREATE ROLE victim LOGIN")
    try:
        url = server.database("ours")
        server.sql("GRANT CREATE ON DATABASE ours TO mallory, victim", "ours")
        yield server.url("ours", "mallory"), url.replace("koine@", "victim@")
    finally:
        server.sql("DROP DATABASE ours WITH (FORCE)")
        server.made.remove("ours")
        server.sql("DROP ROLE mallory; DROP ROLE victim")


def prepare_as_mallory(server, theirs, mark):
    with Daemon("--store", theirs) as d, d.connect() as c:
        c.call("task.run", {"command": ["touch", mark], "stash": True})
    query(server_url(server, "mallory"), PREPARED)


def server_url(server, role):
    return "postgresql://%s@/ours?host=%s&port=%d" % (role, server.folder, server.port)


def test_schema_of_another_role_is_refused():
    with shared_server() as server, Folder() as f, database_of_two(server) as (theirs, ours):
        prepare_as_mallory(server, theirs, f("mark"))
        for args in ["--store", ours], ["--check", "--store", ours]:
            with Folder() as root:
                done = run_koined("--root", root("root"), *args)
            same(done.returncode, 69, "exit status of %r" % args)
            said = (done.stdout + done.stderr).decode()
            check("belongs to role 'mallory'" in said and "koine store adopt" in said, "%s", said)
        check(not os.path.exists(f("mark")), "the queued command ran")
        same(server.sql("SELECT count(*) FROM koine.seen WHERE who = 'victim'", "ours"), "0", "the trigger's runs")


def test_object_of_another_role_in_our_schema_is_refused():
    """A table, a function or a type that somebody else could put into our schema."""
    made = {"table": "CREATE TABLE koine.more (x INT)", "function": "CREATE FUNCTION koine.length(x BIGINT)"
            " RETURNS INT LANGUAGE sql AS 'SELECT 1'", "type": "CREATE TYPE koine.mood AS ENUM ('good')",
            "sequence": "CREATE SEQUENCE koine.numbers", "operator": "CREATE OPERATOR koine.=== (LEFTARG = bigint,"
            " RIGHTARG = bigint, FUNCTION = int8eq)"}
    with shared_server() as server, database_of_two(server) as (_, ours):
        with Daemon("--store", ours):
            pass
        server.sql("GRANT USAGE, CREATE ON SCHEMA koine TO mallory", "ours")
        for kind, statement in made.items():
            query(server_url(server, "mallory"), statement)
            said = refused(["--store", ours], "belongs to role 'mallory'")
            check(kind in said, "%r is not in %r", kind, said)
            server.sql("DROP OWNED BY mallory; GRANT USAGE, CREATE ON SCHEMA koine TO mallory", "ours")
        server.sql("CREATE FUNCTION public.act() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
                   "ALTER FUNCTION public.act() OWNER TO mallory; CREATE TRIGGER act AFTER UPDATE ON koine.meta"
                   " FOR EACH ROW EXECUTE FUNCTION public.act()", "ours")
        refused(["--store", ours], "trigger 'act'")
        server.sql("DROP TRIGGER act ON koine.meta", "ours")
        with Daemon("--store", ours) as d:
            d.alive()


# Operators that fit better than the server's own wherever a name is looked up in this schema.
FITTING = """
    CREATE TABLE {0}.seen (who TEXT); GRANT INSERT ON {0}.seen TO PUBLIC; GRANT USAGE ON SCHEMA {0} TO PUBLIC;
    CREATE FUNCTION {0}.spy(a OID, b REGNAMESPACE) RETURNS BOOLEAN LANGUAGE plpgsql AS
        'BEGIN INSERT INTO {0}.seen VALUES (current_user); RETURN true; END';
    CREATE FUNCTION {0}.spy(a TEXT, b OID) RETURNS TEXT LANGUAGE plpgsql AS
        'BEGIN INSERT INTO {0}.seen VALUES (current_user); RETURN a; END';
    CREATE FUNCTION {0}.spy(a TEXT, b BIGINT) RETURNS TEXT LANGUAGE plpgsql AS
        'BEGIN INSERT INTO {0}.seen VALUES (current_user); RETURN a; END';
    CREATE OPERATOR {0}.<> (LEFTARG = OID, RIGHTARG = REGNAMESPACE, FUNCTION = {0}.spy);
    CREATE OPERATOR {0}.|| (LEFTARG = TEXT, RIGHTARG = OID, FUNCTION = {0}.spy);
    CREATE OPERATOR {0}.|| (LEFTARG = TEXT, RIGHTARG = BIGINT, FUNCTION = {0}.spy);"""


def test_operators_of_another_role_do_not_run_while_its_schema_is_looked_at():
    with shared_server() as server, database_of_two(server) as (_, ours):
        query(server_url(server, "mallory"),
              "CREATE SCHEMA koine; CREATE TABLE koine.koine_schema (version INTEGER NOT NULL);" +
              FITTING.format("koine") + "CREATE FUNCTION koine.act() RETURNS trigger LANGUAGE plpgsql AS"
              " 'BEGIN RETURN NEW; END'; CREATE TRIGGER act AFTER UPDATE ON koine.koine_schema FOR EACH ROW"
              " EXECUTE FUNCTION koine.act();")
        for args in ["--store", ours], ["--check", "--store", ours]:
            with Folder() as f:
                done = run_koined("--root", f("root"), *args)
            check(b"belongs to role 'mallory'" in done.stdout + done.stderr, "%r", done)
        same(server.sql("SELECT count(*) FROM koine.seen", "ours"), "0", "what ran as another role")
        server.sql("DROP SCHEMA koine CASCADE", "ours")
        server.sql("ALTER SCHEMA public OWNER TO mallory", "ours")
        query(server_url(server, "mallory"), FITTING.format("public"))
        with Daemon("--store", ours) as d, d.connect() as c:
            add(c, "Anna runs")
            same(found(c, "anna"), ["Anna runs"], "found")
        same(server.sql("SELECT count(*) FROM public.seen", "ours"), "0", "what ran as another role")


def test_functions_that_the_databases_owner_puts_before_the_servers_do_not_run():
    with shared_server() as server, database_of_two(server) as (_, ours):
        server.sql("ALTER DATABASE ours OWNER TO mallory", "ours")
        query(server_url(server, "mallory"),
              "CREATE SCHEMA trap; CREATE TABLE trap.seen (who TEXT); GRANT INSERT ON trap.seen TO PUBLIC;"
              "GRANT USAGE ON SCHEMA trap TO PUBLIC; CREATE FUNCTION trap.set_config(a TEXT, b TEXT, c BOOLEAN) RETURNS TEXT"
              " LANGUAGE plpgsql AS 'BEGIN INSERT INTO trap.seen VALUES (current_user);"
              " RETURN pg_catalog.set_config(a, b, c); END';"
              "CREATE FUNCTION trap.current_database() RETURNS NAME LANGUAGE plpgsql AS 'BEGIN"
              " INSERT INTO trap.seen VALUES (current_user); RETURN pg_catalog.current_database(); END';"
              "CREATE FUNCTION trap.pg_backend_pid() RETURNS INTEGER LANGUAGE plpgsql AS 'BEGIN"
              " INSERT INTO trap.seen VALUES (current_user); RETURN pg_catalog.pg_backend_pid(); END';"
              "ALTER DATABASE ours SET search_path = trap, pg_catalog")
        for args in ["--check"], ["--init-store"]:
            with Folder() as f:
                same(run_koined("--root", f("root"), "--store", ours, *args).returncode, 0, "%s" % args)
        with Daemon("--store", ours) as d:
            d.alive()
        same(server.sql("SELECT count(*) FROM trap.seen", "ours"), "0", "what ran as another role")


def test_schema_of_a_role_that_we_are_a_member_of_is_used():
    with shared_server() as server, database_of_two(server) as (theirs, ours):
        with Daemon("--store", theirs) as d, d.connect() as c:
            add(c, "Anna runs")
        server.sql("GRANT mallory TO victim")
        with Daemon("--store", ours) as d, d.connect() as c:
            same(found(c, "anna"), ["Anna runs"], "found")


def test_superuser_does_not_take_the_schema_of_another_role():
    with shared_server() as server, database_of_two(server) as (theirs, _):
        with Daemon("--store", theirs):
            pass
        refused(["--store", server.url("ours")], "belongs to role 'mallory'")


def test_adopted_schema_is_used_and_its_tasks_are_held():
    with shared_server() as server, Folder() as f, database_of_two(server) as (theirs, ours):
        prepare_as_mallory(server, theirs, f("mark"))
        root = f("root")
        done = run_koined("--root", root, "--adopt", "--store", ours)
        same(done.returncode, 0, "%r" % done.stderr)
        check(b"mallory" in done.stdout and b"Held 2 tasks" in done.stdout, "%r", done.stdout)
        with Daemon("--store", ours, root=root) as d, d.connect() as c:
            tasks = c.call("task.find", {"limit": 10})["tasks"]
            same([(t["state"], t.get("held")) for t in tasks], [("queued", True)] * 2, "tasks")
        check(not os.path.exists(f("mark")), "the queued command ran")
        # Only there, only this database, and only what this role has made.
        refused(["--store", ours], "belongs to role 'mallory'")
        server.sql("CREATE ROLE eve; CREATE TABLE koine.more (x INT); ALTER TABLE koine.more OWNER TO eve", "ours")
        done = run_koined("--root", root, "--store", ours)
        check(b"table 'more' belongs to role 'eve'" in done.stderr, "%r", done.stderr)
        server.sql("DROP TABLE koine.more; DROP ROLE eve", "ours")


# What an adoption holds, switches off and deletes.
HELD = """SELECT (SELECT string_agg(concat_ws(' ', id, held), ', ' ORDER BY id) FROM koine.task),
    (SELECT string_agg(concat_ws(' ', name, enabled), ', ' ORDER BY name) FROM koine.rule),
    (SELECT count(*) FROM koine.approval_grant), (SELECT count(*) FROM koine.project_trust)"""


def refused_to_adopt(server, url, root, name, words):
    before = server.sql(HELD, name)
    done = run_koined("--root", root, "--adopt", "--store", url)
    check(done.returncode == 69 and words in done.stderr, "%r", done)
    same(server.sql(HELD, name), before, "the store after the refusal %r" % words)


def test_refused_adoption_changes_nothing():
    with shared_server() as server, Folder() as f, database_of_two(server) as (theirs, ours):
        prepare_as_mallory(server, theirs, f("mark"))
        server.sql("INSERT INTO koine.approval_grant (id, denies, created_ms, expires_ms, uses) VALUES ('g', 0, 0, 0, 0);"
                   "INSERT INTO koine.project_trust VALUES ('/work', 'd', 0); INSERT INTO koine.rule VALUES ('r', 0, 1)",
                   "ours")
        # Nothing belongs to another role.
        refused_to_adopt(server, theirs, f("own"), "ours", b"nothing to adopt")
        os.makedirs(f("root", "koine.db.adopted"))
        refused_to_adopt(server, ours, f("root"), "ours", b"koine.db.adopted")
        same(os.listdir(f("root")), ["koine.db.adopted"], "left")
        done = run_koined("--root", f("other"), "--adopt", "--store", server.database("fresh"))
        check(done.returncode == 69 and b"nothing to adopt" in done.stderr, "%r", done)
        same(server.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'koine'", "fresh"), "0", "tables")


def test_holder_of_the_stores_lock_is_named():
    """Any role that may connect can take a lock of the database: koined says whose session it is."""
    with shared_server() as server, database_of_two(server) as (theirs, ours):
        for number in 1, 2:
            holder = subprocess.Popen(["psql", "-qAtX", "-d", theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdin.write(b"SELECT pg_advisory_lock(%d, %d), pg_backend_pid();\n" % (0x6b6f696e, number))
            holder.stdin.flush()
            pid = holder.stdout.readline().decode().strip("|\n ")
            said = refused(["--store", ours], "role 'mallory' holds the store's lock")
            check(pid in said, "%r is not in %r", pid, said)
            holder.communicate()
        with Daemon("--store", ours) as d:
            d.alive()


def test_numbers_of_tasks_wait_for_no_lock_of_another_role():
    with shared_server() as server, database_of_two(server) as (theirs, ours):
        with Daemon("--store", ours) as d, d.connect() as c:
            holder = subprocess.Popen(["psql", "-qAtX", "-d", theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            holder.stdin.write(b"SELECT pg_advisory_lock(461430681189), 1;\n")
            holder.stdin.flush()
            holder.stdout.readline()
            added = c.call("task.add", {"prompt": "x", "stash": True})
            same((added["id"], holder.poll()), ("task-0000", None), "the task, while the lock is held")
            holder.communicate()


def test_remote_server_that_is_not_verified_is_noted():
    """0.0.0.0 stands for another machine: it is no loopback address, but leads to this one."""
    with shared_server() as server:
        server.database("koine")
        for host, remote in (("127.0.0.1", False), ("LOCALHOST", False), ("", False), ("0.0.0.0", True)):
            url = "postgresql://koine@%s:%d/koine" % (host, server.port) + (
                "" if host else "?host=" + server.folder)
            with Folder() as f:
                done = run_koined("--root", f("root"), "--check", "--store", url)
            same(done.returncode, 0, "%r" % done.stderr)
            same(b"add sslmode=verify-full" in done.stdout, remote, "%s: %r" % (url, done.stdout[:1000]))


def test_database_password_does_not_reach_tasks():
    env = {"PGPASSWORD": "open-sesame", "PGPASSFILE": "/tmp/no-such-file", "PGUSER": "koine",
           "PATH": os.environ["PATH"]}
    with shared_server() as server:
        with Daemon("--store", server.database("koine"), env=env) as d, d.connect() as c:
            task = c.call("task.run", {"command": ["env"]})
            c.call("task.wait", {"id": task["id"]})
            printed = c.call("task.output", {"id": task["id"]})["text"]
            check("PGUSER=koine" in printed, "%r", printed)
            check("sesame" not in printed and "PGPASSFILE" not in printed, "%r", printed)


if __name__ == "__main__":
    main(globals(), measured=(
        "the_stores_own_tests_pass_on_it",
        "a_server_that_restarts_loses_and_doubles_nothing",
        "large_answers_are_not_held_whole",))
