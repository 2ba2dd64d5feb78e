"""What several hosts meet at a bad server: passwords, limits, silence."""
import socket
import subprocess

from harness import KOINED, PATIENCE, SANITIZER, Folder, check, clean_environment, same, wait_until
from hosts import Hosts


def refused(url, words, env=None, wrapper=()):
    """What it says; wrapper: of the host that it is started on."""
    with Folder() as f:
        done = subprocess.run([*wrapper, KOINED, "--root", f("root"), "--store", url], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE, env=clean_environment(env))
    said = done.stderr.decode()
    check(done.returncode != 0, "it started")
    check(not SANITIZER.search(done.stderr), "%s", said)
    check(words in said, "%r is not in %r", words, said)
    return said


def test_a_wrong_password_is_said_and_not_shown(server):
    server.sql("CREATE ROLE careful LOGIN PASSWORD 'right'")
    url, here = server.url("postgres", "careful"), server.network.wrapper(0)
    with server.first_rule("host all careful samenet scram-sha-256"):
        said = refused(url, "password authentication failed", {"PGPASSWORD": "geheim"}, here)
        check("geheim" not in said, "%s", said)
        refused(url, "no password supplied", wrapper=here)


def test_a_server_that_says_nothing_is_given_up():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(8)
        said = refused("postgresql://127.0.0.1:%d/koine" % s.getsockname()[1], "timeout expired")
        check("127.0.0.1" in said, "%s", said)


def test_a_limit_of_the_role_is_not_ours(server):
    """Who waits a moment for another's lock is not cut off in the middle."""
    server.sql("CREATE ROLE hasty LOGIN SUPERUSER IN ROLE koine; ALTER ROLE hasty SET statement_timeout = '100ms'; "
               "ALTER ROLE hasty SET lock_timeout = '100ms'")
    with Hosts(0, spare=1, server=server) as hosts:
        node = hosts.node(0, url=server.url(hosts.name, "hasty")).up()
        same(node.ask("memory.add", {"content": "before"})[1], None, "a refusal")
        holder = subprocess.Popen([*server.wrapper, "psql", "-qX", "-d", server.url(hosts.name), "-c",
                                   "BEGIN; LOCK koine.memory IN EXCLUSIVE MODE; SELECT pg_sleep(1); COMMIT"],
                                  stdout=subprocess.DEVNULL)
        wait_until(lambda: hosts.sql("SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND granted"
                                     " AND relation = 'koine.memory'::regclass") == "1", "the lock")
        result, error = node.ask("memory.add", {"content": "during"})
        holder.wait()
        check(result, "%r", error)


def test_a_renewal_that_fails_is_no_lost_lease(server):
    with Hosts(1, server=server) as hosts:
        node = hosts.nodes[0]
        task = hosts.run(node, 600)[0]["id"]
        wait_until(lambda: hosts.journal.started(task), "the program")
        before = hosts.sql("SELECT epoch FROM koine.host")
        hosts.sql("ALTER TABLE koine.host RENAME TO away")
        try:
            wait_until(lambda: b"database unreachable" in node.log(), "a renewal that fails")
        finally:
            hosts.sql("ALTER TABLE koine.away RENAME TO host")
        wait_until(lambda: b"database reachable again" in node.log(), "a renewal that succeeds")
        check(b"lease lost" not in node.log(), "%s", node.log().decode())
        same(hosts.sql("SELECT epoch FROM koine.host"), before, "its epoch")
        same(node.ask("task.show", {"id": task})[0]["state"], "running", "the task")
        same(hosts.journal.started(task), [1], "attempts")
