"""Tasks of several hosts: each is run once, by whoever claims it first, and nobody's late result counts."""
import contextlib
import json
import os
import signal

from harness import Client, check, request, same, wait_until
from hosts import Hosts
from hosts_sharing import states
from task_world import dead, read_bytes

LONG = 300


def task(node, id):
    return node.ask("task.show", {"id": id})[0] or {}


def add(hosts, node, seconds=0.05, **params):
    """A node hears of a new host with its next beat."""
    answers = []

    def added():
        answers.append(hosts.run(node, seconds, **params))
        return answers[-1][0] or "there is no host" not in answers[-1][1]["message"]
    wait_until(added, "the host is known")
    found, error = answers[-1]
    check(found, "not added: %r", error)
    return found["id"]


def in_state(node, id, *states):
    wait_until(lambda: task(node, id).get("state") in states, "%s is %s" % (id, states), 120)
    return task(node, id)


def counts(node):
    return node.ask("task.find")[0]["counts"]


def runs_at(hosts, id):
    """Where its newest attempt has begun, and its process."""
    found = {attempt: lines[-1] for (name, attempt), lines in hosts.journal.attempts().items() if name == id}
    return (found[max(found)][0], found[max(found)][3]) if found else (None, None)


def test_each_is_run_once_and_by_several(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        ids = [add(hosts, (alpha, beta)[i % 2]) for i in range(40)]
        same(len(set(ids)), 40, "ids")
        for id in ids:
            in_state(alpha, id, "completed")
            same(in_state(beta, id, "completed")["host"], runs_at(hosts, id)[0], "the host")
        same(hosts.journal.faults(), [], "what ran")
        same({runs_at(hosts, id)[0] for id in ids}, {"alpha", "beta"}, "who ran them")
        same({attempt for _, attempt in hosts.journal.attempts()}, {1}, "attempts")
        wait_until(lambda: counts(alpha) == counts(beta), "the same counts")


def test_where_it_may_run(server):
    with Hosts(2, server=server, env={"KOINE_HOST_LABELS": ""}) as hosts:
        alpha, beta = hosts.nodes
        wait_until(lambda: len(alpha.ask("host.list")[0]["hosts"]) == 2, "alpha sees beta")
        for node, host in ((alpha, "beta"), (beta, "alpha"), (alpha, "alpha")):
            id = add(hosts, node, host=host)
            same(in_state(node, id, "completed")["host"], host, "the host")
        id = add(hosts, alpha, cwd=hosts.folder)
        end = in_state(beta, id, "completed")
        same((end["host"], end.get("on_host")), ("alpha", "alpha"), "where its folder is")
        _, error = hosts.run(alpha, host="nobody")
        check("host not found: 'nobody'" in error["message"], "%r", error)
        waits = add(hosts, alpha, on="gpu")
        same(task(beta, waits).get("on_label"), "gpu", "what it waits for")
        for node in hosts.nodes:
            # One that has not heard of it yet shows the store's row, and no reason.
            wait_until(lambda node=node: "waits" in task(node, waits), "%s has heard of it" % node.name)
            same(task(node, waits)["waits"], {"for": "label", "on": "gpu", "text": "no host has label gpu"}, "why")
        same(alpha.ask("task.edit", {"id": waits, "on": "", "host": "beta"})[1], None, "edited")
        same(in_state(alpha, waits, "completed")["host"], "beta", "the host")


def test_a_retry_at_another_host_queues_what_was_skipped(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        first = add(hosts, alpha, LONG, host="alpha")
        behind = add(hosts, beta, after=[first])
        wait_until(lambda: runs_at(hosts, first)[0] == "alpha", "it runs at alpha")
        pid = runs_at(hosts, first)[1]
        os.kill(pid, signal.SIGTERM)
        in_state(alpha, behind, "skipped")
        # alpha says so before its commit is done; until then beta refuses because it is queued.
        wait_until(lambda: first in beta.ask("task.retry", {"id": behind})[1]["message"], "the refusal names it")
        same(beta.ask("task.retry", {"id": first})[0]["tasks"], [first, behind], "queued again")
        wait_until(lambda: runs_at(hosts, first)[1] != pid, "it runs again")
        same(in_state(beta, behind, "queued")["state"], "queued", "what waits for it")
        os.kill(runs_at(hosts, first)[1], signal.SIGTERM)
        in_state(beta, behind, "skipped")
        same(hosts.journal.started(behind), [], "what comes after it")


def test_what_a_killed_one_ran_goes_on_elsewhere(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        again = add(hosts, beta, LONG, host="alpha", retries=1)
        once = add(hosts, beta, LONG, host="alpha")
        behind = add(hosts, alpha, after=[once])
        for id in (again, once):
            wait_until(lambda id=id: runs_at(hosts, id)[0] == "alpha", "it runs at alpha")
        alpha.kill()
        same(in_state(beta, once, "failed")["error"], "host alpha was declared dead", "why")
        in_state(beta, behind, "skipped")
        same(in_state(beta, again, "queued")["on_host"], "alpha", "it waits for its host")
        same(beta.ask("task.edit", {"id": again, "host": "any"})[1], None, "edited")
        wait_until(lambda: runs_at(hosts, again)[0] == "beta", "it runs at beta")
        same(hosts.journal.started(again), [1, 2], "attempts")
        same(hosts.journal.faults(), [], "what ran")
        alpha.up()
        same(in_state(alpha, again, "running")["host"], "beta", "as alpha sees it")
        same(alpha.ask("task.cancel", {"taskId": again})[1], None, "cancelled")
        in_state(alpha, again, "cancelled")
        in_state(beta, again, "cancelled")


def test_a_late_result_counts_for_nothing(server):
    """koined and its guard stand still; the program goes on, and ends well."""
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        go = os.path.join(hosts.folder, "go")
        line = "echo $KOINE_HOST $$; while ! [ -e %s ]; do sleep 0.05; done; echo $KOINE_HOST" % go
        found, error = alpha.ask("task.run", {"command": ["sh", "-c", line], "host": "alpha", "retries": 1})
        check(found, "%r", error)
        id = found["id"]
        wait_until(lambda: task(beta, id).get("pid"), "it runs")
        pid = task(beta, id)["pid"]
        frozen = [alpha.pid] + [p for p in alpha.tree() if parent(p) == alpha.pid and p != pid]
        for p in frozen:
            os.kill(p, signal.SIGSTOP)
        in_state(beta, id, "queued")
        check(not dead(pid), "its program is still there")
        with open(go, "w"):
            pass
        wait_until(lambda: ended(pid), "its program has ended")
        same(beta.ask("task.edit", {"id": id, "host": "beta"})[1], None, "edited")
        for p in reversed(frozen):
            os.kill(p, signal.SIGCONT)
        end = in_state(beta, id, "completed")
        same((end["host"], end["attempts"], end["result"].split()[-1]), ("beta", 2, "beta"), "whose result it is")
        in_state(alpha, id, "completed")
        same(task(alpha, id), task(beta, id), "the same at both")
        wait_until(lambda: states(beta)["alpha"] == "alive", "alpha joins again")


def stat(pid):
    """State and parent."""
    return (read_bytes("/proc/%d/stat" % pid).decode().rpartition(")")[2].split() + ["X", "0"])[:2]


def parent(pid):
    return int(stat(pid)[1])


def ended(pid):
    """Also one that nobody has waited for yet."""
    return stat(pid)[0] in "ZX"


def test_cancelled_and_awaited_from_another(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        id = add(hosts, alpha, LONG, host="alpha", retries=3)
        wait_until(lambda: runs_at(hosts, id)[0] == "alpha", "it runs at alpha")
        in_state(beta, id, "running")
        pid = runs_at(hosts, id)[1]
        with Client("unix:" + beta.path, timeout=120) as c:
            c.send(request("task.wait", {"id": id}) + b"\n")
            same(beta.ask("task.cancel", {"taskId": id})[1], None, "cancelled")
            same(json.loads(c.read_line())["result"]["state"], "cancelled", "its end")
        check(dead(pid), "its program has ended")
        check(beta.ask("task.cancel", {"taskId": id})[1], "it is cancelled already")
        same(alpha.ask("task.retry", {"id": id})[1], None, "again")
        wait_until(lambda: hosts.journal.started(id) == [1], "attempts count from one again")
        wait_until(lambda: runs_at(hosts, id)[1] != pid, "it runs again")
        wait_until(lambda: beta.ask("task.cancel", {"taskId": id})[1] is None, "beta cancels it")
        in_state(alpha, id, "cancelled")
        # What waits is cancelled, stashed and paused from anywhere.
        waits = add(hosts, alpha, stash=True)
        wait_until(lambda: beta.ask("task.enqueue", {"id": waits})[1] is None, "beta enqueues it")
        in_state(alpha, waits, "completed")
        same(alpha.ask("task.pause")[1], None, "paused")
        wait_until(lambda: beta.ask("task.find")[0]["paused"], "beta is paused, too")
        same(beta.ask("task.resume")[1], None, "resumed")
        wait_until(lambda: not alpha.ask("task.find")[0]["paused"], "alpha goes on")
        same(beta.ask("task.clean")[0]["cleaned"], 2, "forgotten")
        wait_until(lambda: counts(alpha) == counts(beta), "the same counts")
        same(alpha.ask("task.find")[0]["tasks"], [], "alpha forgot them, too")


def test_counts_are_read_again_after_tasks_are_deleted_that_are_not_in_memory(server):
    """The last 200 that ended are."""
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        with Client("unix:" + alpha.path, timeout=120) as c:
            for _ in range(202):
                c.call("task.cancel", {"taskId": c.call("task.add", {"prompt": "x", "stash": True})["id"]})
        wait_until(lambda: counts(beta)["cancelled"] == 202, "beta knows all")
        same(alpha.ask("task.clean")[0]["cleaned"], 202, "deleted")
        wait_until(lambda: counts(beta)["total"] == 0, "none is counted")


@contextlib.contextmanager
def unheard(node, method, id):
    """What is done meanwhile the node has not heard of when it is asked this. Its answer is appended."""
    answers = []
    with Client("unix:" + node.path, timeout=120) as c:
        same(json.loads(c.call_text(request("ping")))["result"]["pong"], True, "ping")
        node.freeze(programs=False)
        try:
            yield answers
            c.send(request(method, {"taskId": id, "id": id, "label": "x"}) + b"\n")
        finally:
            node.thaw()
        answers.append(json.loads(c.read_line()))


def test_cancelled_by_a_host_that_has_not_heard_of_it(server):
    """Whatever became of it meanwhile, it is cancelled, or the answer says what a single host would say."""
    stored = "SELECT state FROM koine.task WHERE id = '%s'"
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes

        def waits(seconds, **params):
            same(alpha.ask("task.pause", {"group": "g"})[1], None, "paused")
            id = add(hosts, alpha, seconds, host="alpha", group="g", **params)
            wait_until(lambda: counts(beta)["queued"] == 1, "beta has heard of it")
            return id

        def runs(id):
            same(alpha.ask("task.resume", {"group": "g"})[1], None, "resumed")
            wait_until(lambda: runs_at(hosts, id)[0] == "alpha", "it runs at alpha")

        # Claimed: beta knows it as one that waits.
        id = waits(LONG, retries=3)
        with unheard(beta, "task.cancel", id) as answers:
            runs(id)
        check("result" in answers[0], "%r", answers)
        in_state(alpha, id, "cancelled")
        in_state(beta, id, "cancelled")
        wait_until(lambda: dead(runs_at(hosts, id)[1]), "its program has ended")
        same(hosts.journal.started(id), [1], "attempts")
        # Queued again: beta knows it as one that runs.
        id = waits(LONG, retries=3, retry_delay=3600)
        runs(id)
        wait_until(lambda: counts(beta)["running"] == 1, "beta has heard of it")
        with unheard(beta, "task.cancel", id) as answers:
            os.kill(runs_at(hosts, id)[1], signal.SIGKILL)
            wait_until(lambda: hosts.sql(stored % id) == "0", "it is queued again")
        check("result" in answers[0], "%r", answers)
        in_state(alpha, id, "cancelled")
        in_state(beta, id, "cancelled")
        # Ended.
        id = waits(0.05)
        with unheard(beta, "task.cancel", id) as answers:
            same(alpha.ask("task.resume", {"group": "g"})[1], None, "resumed")
            wait_until(lambda: hosts.sql(stored % id) == "2", "its end is stored")
        check("error" in answers[0], "%r", answers)
        same(answers[0]["error"]["message"].split(": ")[-1], "Task %s is already completed" % id, "why")
        # What runs cannot be edited, and the words for it are those of a single host.
        id = waits(LONG)
        with unheard(beta, "task.edit", id) as answers:
            runs(id)
        same(answers[0]["error"]["message"].split(": ")[-1],
             "Task %s is running; only queued tasks can be edited" % id, "why")
        same(hosts.journal.faults(), [], "what ran")


def test_what_it_comes_after_may_be_unheard_of(server):
    """What another host added a moment ago is in the store; whoever comes after it waits for it."""
    with Hosts(2, server=server) as hosts:
        nodes = hosts.nodes
        pairs = []
        for i in range(20):
            here, there = nodes[i % 2], nodes[1 - i % 2]
            first = add(hosts, here, stash=True)
            pairs.append((here, first, add(hosts, there, after=[first])))
        same([p[2] for p in pairs if task(nodes[0], p[2])["state"] != "queued"], [], "those that do not wait")
        # The same for one that waits already.
        last = add(hosts, nodes[1], stash=True)
        for i in range(5):
            first = add(hosts, nodes[0], stash=True)
            wait_until(lambda: nodes[1].ask("task.edit", {"id": last, "after": [first]})[1] is None, "edited")
            same(task(nodes[1], last)["state"], "queued", "it waits")
            pairs.append((nodes[0], first, last))
        same(nodes[1].ask("task.enqueue", {"id": last})[1], None, "enqueued")
        for node, first, second in pairs:
            same(node.ask("task.enqueue", {"id": first})[1], None, "enqueued")
        for _, first, second in pairs:
            in_state(nodes[0], second, "completed")
        same(hosts.journal.faults(), [], "what ran")


def test_what_it_prints_is_read_anywhere(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        go = os.path.join(hosts.folder, "go")
        line = "echo one; while ! [ -e %s ]; do sleep 0.05; done; echo two; yes ab | head -c 2000001; echo end" % go
        found, error = alpha.ask("task.run", {"command": ["sh", "-c", line], "host": "alpha"})
        check(found, "%r", error)
        id = found["id"]
        with Client("unix:" + beta.path, timeout=120) as c:
            wait_until(lambda: task(beta, id).get("state") == "running", "it runs")
            c.send(request("task.follow", {"id": id}) + b"\n")
            got = json.loads(c.read_line())["params"]
            same((got["offset"], got["text"]), (0, "one\n"), "the first piece")
            same(beta.ask("task.output", {"id": id})[0]["text"], "one\n", "what there is so far")
            with open(go, "w"):
                pass
            text = ""
            while "params" in (told := json.loads(c.read_line())):
                text += told["params"]["text"]
            same(told["result"]["state"], "completed", "its end")
        check(text.endswith("ab\nend\n"), "the end of what it printed: %r", text[-20:])
        for node in (alpha, beta):
            end = node.ask("task.output", {"id": id, "offset": -8})[0]
            same((end["text"], end["end"]), ("\nab\nend\n", 2000013), "at " + node.name)
        size = int(hosts.sql("SELECT sum(length(bytes)) FROM koine.task_chunk"))
        check(size < 3 << 19, "%d bytes are kept", size)
        same(beta.ask("task.clean")[0]["cleaned"], 1, "forgotten")
        same(hosts.sql("SELECT count(*) FROM koine.task_chunk").strip(), "0", "chunks")


def test_what_is_stopped_with_its_host_goes_on_elsewhere(server):
    with Hosts(2, server=server) as hosts:
        alpha, beta = hosts.nodes
        again = add(hosts, alpha, LONG, host="alpha", retries=1)
        once = add(hosts, alpha, LONG, host="alpha")
        for id in (again, once):
            wait_until(lambda id=id: runs_at(hosts, id)[0] == "alpha", "it runs at alpha")
        in_state(beta, again, "running")
        alpha.stop()
        same(in_state(beta, once, "failed")["error"], "Killed during shutdown", "why")
        same(in_state(beta, again, "queued")["attempts"], 0, "attempts that count")
        wait_until(lambda: beta.ask("task.edit", {"id": again, "host": "beta"})[1] is None, "beta has heard of it")
        wait_until(lambda: runs_at(hosts, again)[0] == "beta", "it runs at beta")
        same(hosts.journal.faults(), [], "what ran")


def test_a_start_that_was_stored_unheard_is_given_back(server):
    """The commit of a claim happened, and its answer never came: nothing has begun, and something must."""
    with Hosts(1, server=server) as hosts:
        alpha, = hosts.nodes
        id = add(hosts, alpha, stash=True)
        hosts.sql("UPDATE koine.task SET state = 1, attempts = 1, version = version + 1, stashed = 0, host = 'alpha',"
                  " epoch = (SELECT epoch FROM koine.host WHERE name = 'alpha') WHERE id = '%s'" % id)
        alpha.ask("task.enqueue", {"id": id})
        same(in_state(alpha, id, "completed")["attempts"], 1, "attempts")
        same(hosts.journal.faults(), [], "what ran")


def test_who_lost_an_attempt_is_told_so(server):
    """As a host sees it whose task another one has taken while it could not be reached."""
    with Hosts(1, server=server) as hosts:
        alpha = hosts.nodes[0]
        go = os.path.join(hosts.folder, "go")
        line = "while ! [ -e %s ]; do sleep 0.05; done; echo $KOINE_ATTEMPT" % go
        found, error = alpha.ask("task.run", {"command": ["sh", "-c", line], "retries": 5})
        check(found, "%r", error)
        id = found["id"]
        wait_until(lambda: task(alpha, id).get("pid"), "it runs")
        hosts.sql("INSERT INTO koine.host (name, epoch, state, boot, labels, version, since_ms, seen_ms, lease_ms,"
                  " running, parallel) VALUES ('ghost', 999, 0, '', '', '', 0, 0, %d, 0, 0)" % (1 << 60))
        hosts.sql("UPDATE koine.task SET epoch = 999, host = 'ghost', attempts = 2, version = version + 1")
        with open(go, "w"):
            pass
        fenced = "SELECT count(*) FROM koine.event WHERE type = 'task.fenced' AND run = '%s'" % id
        wait_until(lambda: hosts.sql(fenced).strip() == "1", "the event")
        now = in_state(alpha, id, "running")
        same((now["host"], now["attempts"], now["result"]), ("ghost", 2, None), "whose it is")
        hosts.sql("UPDATE koine.host SET state = 2 WHERE name = 'ghost'")
        end = in_state(alpha, id, "completed")
        same((end["host"], end["attempts"], end["result"]), ("alpha", 3, "3\n"), "its end")
