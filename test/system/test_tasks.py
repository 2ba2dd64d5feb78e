#!/usr/bin/env python3
"""
Tasks as their users see them: who is next, what comes after what, tries, limits, projects,
notifications, stops; from both sockets at once.
"""
import json
import os
import signal
import subprocess
import threading

from harness import KOINE, MIB, Client, check, main, request, rss, same, wait_until
from task_world import UNTIL, World, add, end, says, state, until, world
from test_aiwg import connect
from test_events import listener

HERE = os.path.dirname(os.path.abspath(__file__))
LOG = 'echo %s >>"$WORLD/order"'


def order(w):
    return w.read("order").split()


# ---- who is next ----


def test_the_highest_priority_is_next_and_first_come_first_served_within_one():
    with world("tasks.project_parallel=1") as (w, d, c):
        c.submit(UNTIL % "go")
        wanted = []
        for i, p in enumerate((0, 5, -1, 5, 0.5, 0, -1, 5)):
            task = c.submit(LOG % i, priority=p)
            wanted.append((-p, i, task))
        w.touch("go")
        for _, _, task in wanted:
            c.ended(task)
        same(order(w), [str(i) for _, i, _ in sorted(wanted)], "order")


def test_a_group_has_its_own_limit_across_projects_and_holds_nobody_else_up():
    with World() as w:
        os.mkdir(w("other"))
        with w.daemon("group.narrow.parallel=1", "tasks.project_parallel=5", "--project",
                      w("other")) as d:
            k = d.connect()
            first = add(k, UNTIL % "go", group="narrow", project=w("root"))
            second = add(k, LOG % "second", group="narrow", project=w("other"))
            third = add(k, LOG % "third", group="narrow", project=w("root"), priority=1)
            free = add(k, LOG % "free", group="wide", project=w("root"), priority=-5)
            end(k, free, project=w("root"))
            shown = k.call("task.groups")["groups"]
            same([(g["group"], g["running"], g["queued"], g["completed"]) for g in shown],
                 [("narrow", 1, 2, 0), ("wide", 0, 0, 1)], "groups")
            w.touch("go")
            for task, project in ((first, "root"), (second, "other"), (third, "root")):
                same(end(k, task, project=w(project))["state"], "completed", "state")
            same(order(w), ["free", "third", "second"], "order")


def test_limits_hold_in_all_and_in_each_project():
    with World() as w:
        os.mkdir(w("other"))
        with w.daemon("tasks.parallel=5", "tasks.project_parallel=3", "--project",
                      w("other")) as d:
            a, b = connect(d), connect(d, w("other"))
            for c in a, b:
                for _ in range(6):
                    c.submit(UNTIL % "go")
            same((a.call("task.stats")["running"], b.call("task.stats")["running"]), (3, 2), "run")
            wait_until(lambda: len([p for p in w.agents(d).values() if "go" in p]) == 5,
                       "five agents")
            w.touch("go")
            for c in a, b:
                wait_until(lambda: c.call("task.stats")["completed"] == 6, "the end")


def test_what_comes_after_waits_for_all_of_them_and_fails_with_any():
    with world("tasks.project_parallel=10") as (w, d, c):
        k = d.connect()
        at = {"project": w("root")}
        a = add(k, UNTIL % "a", **at)
        b = add(k, UNTIL % "b" + "; exit 1", **at)
        both = add(k, "echo both", after=[a, b, a], **at)
        only_a = add(k, "echo only a", after=[a], **at)
        chain = add(k, "echo chain", after=[only_a], **at)
        deep = add(k, "echo deep", after=[both], **at)
        w.touch("a")
        same(end(k, chain)["state"], "completed", "what comes after one that went well")
        same({state(c, t) for t in (both, deep)}, {"queued"}, "the others")
        w.touch("b")
        for task in both, deep:
            ended = end(k, task)
            same(ended["state"], "skipped", "what comes after one that failed")
            check(ended["error"].startswith("dependency "), "%r", ended)
        # What is at its end already.
        same(end(k, add(k, "echo late", after=[a, chain], **at))["state"], "completed", "late")
        for after, why in ((["task-9999"], "not found"), ([b], "is failed")):
            k.send(request("task.add", {"prompt": "x", "after": after, **at}) + b"\n")
            error = json.loads(k.read_line())["error"]
            check(error["code"] == -32602 and why in error["message"], "%r", error)


def test_what_comes_after_never_waits_for_what_has_ended():
    """Submitted just while what it comes after ends: it runs, fails or is refused, but ends."""
    with world("tasks.project_parallel=8") as (w, d, c):
        ended = []

        def pairs(code):
            with Client(d.address()) as k:
                for _ in range(40):
                    first = add(k, "exit %d" % code)
                    k.send(request("task.add", {"prompt": ":", "after": [first]}) + b"\n")
                    answer = json.loads(k.read_line())
                    if "result" in answer:
                        ended.append((code, answer["result"]["id"]))

        threads = [threading.Thread(target=pairs, args=(code,)) for code in (0, 1, 1, 1)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        wait_until(lambda: d.connect().call("task.stats")["running"] == 0, "what runs")
        k = d.connect()
        # A list of many is the store's, which a change reaches a moment later.
        wait_until(lambda: k.call("task.stats")["queued"] == 0 and
                   k.call("task.list", {"state": "queued"}) == [], "what waits")
        for code, task in ended:
            same(end(k, task)["state"], "skipped" if code else "completed", task)


def test_a_delayed_task_waits_its_time_and_holds_nobody_up():
    with world("tasks.project_parallel=1") as (w, d, c):
        k = d.connect()
        hour = add(k, "echo never", delay=3600000, priority=10, project=w("root"))
        late = add(k, LOG % "late", delay=150, priority=9, project=w("root"))
        same(c.finished(LOG % "now")["state"], "completed", "what may begin")
        end(k, late)
        same(order(w), ["now", "late"], "order")
        same(state(c, hour), "queued", "the one of an hour")
        check(k.call("task.show", {"id": hour})["not_before"], "no time")
        c.call("task.cancel", {"taskId": hour})


# ---- tries ----


def test_a_task_is_tried_again_until_it_goes_well():
    with world() as (w, d, c):
        k = d.connect()
        prompt = 'echo x >>$WORLD/order; echo "try $(wc -l <$WORLD/order)"; [ $(wc -l <$WORLD/order) = 3 ]'
        task = add(k, prompt, retries=5, retry_delay=10, project=w("root"))
        same(end(k, task)["state"], "completed", "state")
        shown = k.call("task.show", {"id": task})
        same((shown["attempts"], shown["max_attempts"], shown["exit_status"]), (3, 6, 0), "tries")
        check(shown["result"].endswith("try 3\n"), "%r", shown["result"])
        types = [e["type"] for e in k.call("event.list", {"since": 0})["events"]
                 if e.get("run_id") == task]
        same(types, ["task.queued", "task.started", "task.retrying", "task.started", "task.retrying",
                     "task.started", "task.completed"], "events")


def test_tries_are_counted_and_further_apart_each_time():
    with world() as (w, d, c):
        k = d.connect()
        task = add(k, "date +%s%3N >>$WORLD/order; exit 4", retries=3, retry_delay=80,
                   project=w("root"))
        ended = end(k, task)
        same((ended["state"], ended["exit_status"]), ("failed", 4), "end")
        at = [int(t) for t in order(w)]
        same(len(at), 4, "tries")
        waits = [b - a for a, b in zip(at, at[1:])]
        # A quarter less at the least, doubled each time; how much more is the machine's affair.
        check(all(w_ >= 60 * 2 ** i for i, w_ in enumerate(waits)), "%r", waits)


def test_a_task_that_failed_is_queued_again_only_once():
    """Also one that is not at hand any more, and by many at once."""
    with world("tasks.project_parallel=8") as (w, d, c):
        k = d.connect()
        first = add(k, "echo x >>$WORLD/order; [ -e $WORLD/go ] && sleep 0.3; exit 1")
        end(k, first)
        for _ in range(5):
            for _ in range(50):
                k.send(request("task.add", {"prompt": ":"}) + b"\n")
            for _ in range(50):
                k.read_line()
        wait_until(lambda: k.call("task.stats")["completed"] == 250, "the others")
        w.touch("go")
        many = [d.connect() for _ in range(30)]
        for m in many:
            m.send(request("task.retry", {"id": first}) + b"\n")
        answers = [json.loads(m.read_line()) for m in many]
        same(sum("result" in a for a in answers), 1, "retried")
        same({a["error"]["code"] for a in answers if "error" in a}, {-32002}, "the others")
        end(k, first)
        same(order(w), ["x", "x"], "runs")
        same(k.call("task.stats")["total"], 251, "tasks")


# ---- how it runs ----


def test_a_task_has_its_folder_environment_and_exit_status():
    with world() as (w, d, c):
        k = d.connect()
        os.mkdir(w("there"))
        task = add(k, 'pwd; echo "$ONE|$KOINE_TASK|$KOINE_PROJECT|$KOINE_ATTEMPT|$AGENT"; exit 42',
                   project=w("root"), cwd=w("there"), env={"ONE": "a b\n", "KOINE_TASK": "mine"},
                   agent="helper")
        same(end(k, task), {"project": w("root"), "id": task, "state": "failed", "exit_status": 42,
                            "signal": None, "error": "Process exited with code 42"}, "end")
        same(c.call("task.get", {"taskId": task})["output"],
             "%s\na b\n|%s|%s|1|helper\n" % (w("there"), task, w("root")), "output")
        at = {"project": w("root")}
        os.mkdir(w("soon gone"))
        first = add(k, "until test -e '%s'; do sleep 0.1; done; rmdir '%s'" %
                    (w("go"), w("soon gone")), **at)
        gone = add(k, "true", cwd=w("soon gone"), after=[first], **at)
        w.touch("go")
        check("no such directory" in end(k, gone)["error"], "a folder that is not there any more")
        w.touch("a file")
        for cwd, words in ((w("nowhere"), "No such file or directory"),
                           (w("a file"), "Not a directory")):
            error = json.loads(k.call_text(request("task.add", {"prompt": "true", "cwd": cwd,
                                                                **at})))["error"]
            same(error["data"]["field"], "cwd", "field")
            same(error["message"].partition(": ")[2], "cwd %s: %s" % (cwd, words), "words")
        task = add(k, "kill -SEGV $$", **at)
        same((end(k, task)["signal"], end(k, task)["exit_status"]), (11, None), "signal")


def test_a_long_prompt_reaches_the_agent_byte_for_byte():
    with world() as (w, d, c):
        for prompt in ("x" * (2 * MIB), "Zeile\n\t\"ü€𝄞\" \\ \x01\x7f\r\n'$HOME' " * 60000):
            t = c.finished(prompt)
            same((t["state"], t["prompt"] == prompt), ("completed", True), "task")
            with open(w("input"), "rb") as f:
                check(f.read() == prompt.encode(), "the agent got something else")
            os.unlink(w("input"))
        t = c.finished(prompt, agent="someone")
        same(t["state"], "completed", "with an agent's name")
        # Not by arguments alone: just below and above what one may hold.
        for n in (100 << 10, 127 << 10, 128 << 10, 129 << 10):
            t = c.finished(": " + "y" * n)
            same((t["state"], t["error"]), ("completed", None), "%d bytes" % n)


def test_output_is_read_while_it_runs():
    with world() as (w, d, c):
        task = c.submit("echo one; echo two >&2; %s; echo three" % (UNTIL % "go"))
        t = wait_until(lambda: next((t for t in [c.call("task.get", {"taskId": task})]
                                     if len(t["output"]) == 8), None), "output")
        same((t["state"], sorted(t["output"].split())), ("running", ["one", "two"]), "task")
        with d.connect() as k:
            same(k.call("task.output", {"id": task, "offset": 4})["running"], True, "running")
        w.touch("go")
        t = c.ended(task)
        same((t["result"], t["output"][8:]), ("one\nthree\n", "three\n"), "at its end")


def test_output_that_is_no_text_is_told_as_text():
    with world() as (w, d, c):
        t = c.finished(r"printf 'a\000b\377\303'; printf 'e\000\376' >&2; exit 1")
        same(t["state"], "failed", "state")
        with d.connect() as k:
            shown = k.call("task.show", {"id": t["id"]})
            for text in (t["output"], t["error"], shown["result"]):
                check("\ufffd" in text or "\0" in text, "%r", text)
            k.call("event.list", {"since": 0})


# ---- projects ----


def test_projects_are_strangers_to_each_other():
    with World() as w:
        names = ("one", "two", "three")
        for name in names:
            os.mkdir(w(name))
        with w.daemon(*[a for n in names for a in ("--project", w(n))]) as d:
            clients = {n: connect(d, w(n)) for n in names}
            for c in clients.values():
                c.call("ping")
            for name, c in clients.items():
                tasks = [c.submit("pwd; " + UNTIL % "go") for _ in range(4)]
                same(tasks, ["task-%04d" % i for i in range(4)], "ids")
                # The limit is each one's own, and so is the queue that is told.
                same(c.call("task.stats")["running"], 3, "running in " + name)
                same(c.heard("event.taskQueued", "task-0003")["queueSize"], 1, "queue of " + name)
            clients["one"].call("task.cancel", {"taskId": "task-0000"})
            clients["one"].heard("event.taskCancelled", "task-0000")
            same(clients["two"].call("task.stats")["cancelled"], 0, "cancelled in two")
            w.touch("go")
            for name, c in clients.items():
                for i in range(name == "one", 4):
                    same(c.heard("event.taskCompleted", "task-%04d" % i)["result"], w(name) + "\n",
                         "folder")
                c.call("ping")
                ids = [(m["method"], m["params"]["taskId"]) for m in c.told]
                same(len(ids), len(set(ids)), "told to %s (%r)" % (name, ids))
            with d.connect() as k:
                same(k.call("task.stats")["total"], 12, "in all")
                k.send(request("task.cancel", {"taskId": "task-0002"}) + b"\n")
                error = json.loads(k.read_line())["error"]
                check(error["code"] == -32602 and "several" in error["message"], "%r", error)


# ---- lists ----


def test_a_list_has_no_holes_after_a_restart():
    with World() as w:
        with w.daemon("tasks.project_parallel=8") as d:
            c, k = connect(d), d.connect()
            late = [add(k, ":", delay=3600000, project=w("root")) for _ in range(3)]
            for _ in range(3):
                c.send(b"".join(request("task.submit", {"prompt": ":"}) + b"\n" for _ in range(50)))
                for _ in range(50):
                    c.answer_text()
            wait_until(lambda: c.call("task.stats")["completed"] == 150, "the end")
        with w.daemon() as d:
            c = connect(d)
            ids = ["task-%04d" % i for i in range(152, -1, -1)]
            for limit in (20, 99, 100, 101, 103, 120, 152, 153, 200, 300):
                same([t["id"] for t in c.call("task.list", {"limit": limit})], ids[:limit],
                     "limit %d" % limit)
            same([t["id"] for t in c.call("task.list", {"state": "queued"})], late[::-1], "queued")


def test_a_list_has_no_holes_when_there_are_many():
    with world("tasks.project_parallel=8") as (w, d, c):
        k = d.connect()
        add(k, ":", delay=3600000, project=w("root"))
        for _ in range(5):
            c.send(b"".join(request("task.submit", {"prompt": ":"}) + b"\n" for _ in range(50)))
            for _ in range(50):
                c.answer_text()
        wait_until(lambda: c.call("task.stats")["completed"] == 250, "the end")
        ids = ["task-%04d" % i for i in range(250, -1, -1)]
        for limit in (200, 201, 202, 230, 251, 256, 1000):
            same([t["id"] for t in c.call("task.list", {"limit": limit})], ids[:limit],
                 "limit %d" % limit)


# ---- notifications ----


def test_what_is_told_comes_after_the_answer_and_in_order():
    with world("tasks.project_parallel=4") as (w, d, c):
        n = 60
        c.send(b"".join(request("task.submit", {"prompt": ":"}, i) + b"\n" for i in range(n)))
        answered, seen = {}, {}
        while len(seen) < n or any(s[-1] != "event.taskCompleted" for s in seen.values()):
            m = json.loads(c.read_line())
            if "id" in m:
                answered[m["result"]["taskId"]] = m["id"]
                continue
            task = m["params"]["taskId"]
            check(task in answered, "told of %s before its answer", task)
            seen.setdefault(task, []).append(m["method"])
        same({tuple(s) for s in seen.values()},
             {("event.taskQueued", "event.taskStarted", "event.taskCompleted")}, "order")
        same(sorted(answered.values()), list(range(n)), "answers")


def test_clients_that_never_read_harm_nobody():
    with world("limits.queue_bytes=8k", "tasks.project_parallel=8") as (w, d, c):
        deaf = [connect(d) for _ in range(50)]
        for m in deaf:
            m.call("ping")
        before = rss(d.pid)
        for _ in range(6):
            c.send(b"".join(request("task.submit", {"prompt": "# " + "p" * 80}) + b"\n"
                            for _ in range(50)))
            for _ in range(50):
                c.answer_text()
        # Who reads is told of all.
        for i in range(300):
            c.heard("event.taskCompleted", "task-%04d" % i)
        same(c.call("task.stats")["completed"], 300, "completed")
        grown = rss(d.pid) - before
        check(grown < 16 * MIB, "grew by %d MiB", grown // MIB)


def raw_events(client, n):
    """So many lines as they came: all subscribers of one kind get the same bytes."""
    while client.got.count(b"\n") < n:
        check(client.more(), "the stream ended")
    return client.take(len(client.got))


def test_two_hundred_hear_all_of_two_hundred_tasks():
    n, tasks = 200, 200
    with world("tasks.project_parallel=8") as (w, d, c):
        deaf = [listener(d) for _ in range(20)]
        all = [listener(d) for _ in range(n)]
        for each in all + deaf:
            each.subscribe(types=["task.*"])
        for _ in range(4):
            c.send(b"".join(request("task.submit", {"prompt": ":"}) + b"\n" for _ in range(50)))
            for _ in range(50):
                c.answer_text()
        first = raw_events(all[0], 3 * tasks)
        events = [json.loads(line)["params"] for line in first.splitlines()]
        numbers = [e["seq"] for e in events]
        same(numbers, sorted(set(numbers)), "numbers")
        for i in range(tasks):
            same([e["type"] for e in events if e["run_id"] == "task-%04d" % i],
                 ["task.queued", "task.started", "task.completed"], "of one task")
        for each in all[1:]:
            check(raw_events(each, 3 * tasks) == first, "one heard something else")
        # Who did not read can still do so.
        check(raw_events(deaf[0], 3 * tasks) == first, "read late, it is something else")


# ---- both at once ----


def test_node_and_koine_side_by_side():
    with world() as (w, d, c):
        script = os.path.join(HERE, "node_task_client.mjs")
        path = d.address("unix", "aiwg")[len("unix:"):]
        node = subprocess.Popen(["node", script, path], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)
        try:
            def said():
                return json.loads(node.stdout.readline())

            theirs = said()["submitted"]
            env = dict(os.environ, **w.env(XDG_RUNTIME_DIR="/dev/null"))
            base = [KOINE, "--socket", d.socket_path, "task"]
            done = subprocess.run(base + ["cancel", theirs], capture_output=True, env=env,
                                  cwd=w("root"), timeout=20)
            same(done.returncode, 0, "cancel (%r)" % done.stderr)
            same(said(), {"cancelled": theirs}, "what node heard")
            done = subprocess.run(base + ["add", "--wait", "echo from koine"], capture_output=True,
                                  env=env, cwd=w("root"), timeout=20)
            same(done.returncode, 0, "add (%r)" % done.stderr)
            same(said(), {"completed": "from koine\n"}, "what node heard")
            node.stdin.close()
            same(node.wait(20), 0, "node's exit status")
        finally:
            node.kill()
            node.wait()
            node.stdout.close()


# ---- the end ----


def test_a_stop_in_the_middle_of_everything():
    for how in ("SIGTERM", "SIGTERM twice", "stop", "force"):
        with World() as w:
            with w.daemon("tasks.interrupt_time=1", "limits.stop_time=1") as d:
                c, k = connect(d), d.connect()
                stubborn = c.submit("trap '' TERM; echo up >$WORLD/up; while :; do sleep 0.05; done")
                quick = c.submit("trap 'exit 0' TERM; while :; do sleep 0.02; done")
                says(w, "up")
                late = add(k, ":", delay=3600000, project=w("root"))
                failing = add(k, "exit 1", retries=9, retry_delay=600000, project=w("root"))
                wait_until(lambda: [k.call("task.show", {"id": failing})[m]
                                    for m in ("state", "attempts")] == ["queued", 1],
                           "the first try to fail")
                cancelled = c.submit("trap '' TERM; echo up >$WORLD/deaf; sleep 600 & "
                                     "while :; do sleep 0.05; done")
                says(w, "deaf")
                queued = [c.submit("echo %d" % i) for i in range(5)]
                c.call("task.cancel", {"taskId": cancelled})
                if how == "stop":
                    c.call("daemon.stop")
                elif how == "force":
                    c.call("daemon.stop", {"force": True})
                else:
                    d.signal(signal.SIGTERM)
                    if "twice" in how:
                        d.signal(signal.SIGTERM)
                same(d.wait_exit(), 0, "exit status after " + how)
                same(w.processes(), {}, "left after " + how)
            with w.daemon() as d:
                c = connect(d)
                for task, wanted in ((stubborn, "failed"), (quick, "failed"), (late, "queued"),
                                     (cancelled, "cancelled"), (failing, "queued")):
                    same(state(c, task), wanted, "%s after %s" % (task, how))
                same(c.call("task.get", {"taskId": stubborn})["error"], "Killed during shutdown",
                     "error")
                for i, task in enumerate(queued):
                    same(c.ended(task)["result"], "%d\n" % i, "what waited")


def test_a_task_may_end_by_itself_while_the_daemon_stops():
    with World() as w:
        with w.daemon() as d:
            c = connect(d)
            task = c.submit("echo up >$WORLD/up; %s; echo whole" % (UNTIL % "go"))
            says(w, "up")
            c.call("daemon.stop")
            w.touch("go")
            same(d.wait_exit(), 0, "exit status")
        with w.daemon() as d:
            t = connect(d).call("task.get", {"taskId": task})
            same((t["state"], t["result"]), ("completed", "whole\n"), "task")


def test_nothing_new_begins_while_the_daemon_stops():
    with World() as w:
        with w.daemon("tasks.project_parallel=1") as d:
            c, other = connect(d), connect(d)
            other.call("ping")
            c.submit("echo up >$WORLD/up; " + UNTIL % "go")
            waiting = c.submit("echo ran >$WORLD/ran")
            says(w, "up")
            c.call("daemon.stop")
            other.heard("event.daemonStopping")
            w.touch("go")
            same(d.wait_exit(), 0, "exit status")
            same(w.read("ran"), "", "what waited")
        with w.daemon() as d:
            until(connect(d), waiting, "completed")


if __name__ == "__main__":
    main(globals())
