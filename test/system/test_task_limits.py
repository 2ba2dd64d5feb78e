#!/usr/bin/env python3
"""What tasks are refused, and what they may not do: bad input, full queues, agents gone wrong."""
import json
import os
import resource
import signal
import socket

from harness import (MIB, check, main, note, only_in_a_file, peak_rss, request, rss,
                     same, wait_until)
from task_world import UNTIL, World, add, end, says, state, world
from test_aiwg import connect

KIB = 1 << 10


# ---- input ----


def test_bad_input_is_refused_and_nothing_comes_of_it():
    with world() as (w, d, c):
        missing = (-32602, "Missing required parameter: prompt")
        for value in ("null", '""', "0", "false"):
            same(c.refused("task.submit", '{"prompt":%s}' % value), missing, value)
        for value in ("5", "-1", "1e999", "true", "[]", "{}", '["a"]', '"a\\u0000b"', '"\\u0000"'):
            same(c.refused("task.submit", '{"prompt":%s}' % value)[0], -32602, value)
        for more in ('"agent":5', '"agent":{}', '"agent":"a\\u0000b"', '"priority":"1"',
                     '"priority":[1]', '"priority":true', '"priority":1e999',
                     '"agent":"%s"' % ("x" * 2000)):
            got = c.refused("task.submit", '{"prompt":"x",%s}' % more)
            same(got[0], -32602, more[:50])
        for id in ('"task-0000"', '"x"', '"task-0000\\u0000"', '"%s"' % ("y" * 100000),
                   "\"' OR 1=1 --\"", '"../../etc/passwd"', '"%s%n%d"'):
            for method in ("task.get", "task.cancel"):
                same(c.refused(method, '{"taskId":%s}' % id)[0], -32000, id[:50])
        for id in ("5", "[]", "{}", "true"):
            for method in ("task.get", "task.cancel"):
                same(c.refused(method, '{"taskId":%s}' % id)[0], -32602, id)
        same(c.call("task.stats")["total"], 0, "tasks")
        same(c.told, [], "told")


def test_odd_lines_are_answered_and_the_connection_goes_on():
    with world() as (w, d, c):
        for line in ("null", "[]", "[null]", "[[]]", "5", '"x"', "{", "}", '{"jsonrpc":"2.0"}',
                     '{"jsonrpc":"2.0","method":null,"id":1}', "\x00", '{"a":' * 2000, "nul",
                     '{"jsonrpc":"2.0","method":"task.submit","params":{"prompt":"x"},"id":1}}'):
            answer = json.loads(c.ask_text(line))
            error = answer[0]["error"] if isinstance(answer, list) else answer["error"]
            check(error["code"] in (-32700, -32600), "%r: %r", line[:50], answer)
        c.call("ping")
        same(c.call("task.stats")["total"], 0, "tasks")


def test_two_megabytes_are_taken_and_nine_are_not():
    with world() as (w, d, c):
        same(c.finished("x" * (2 * MIB))["state"], "completed", "2 MiB")
        same(c.finished("x" * (8 * MIB))["state"], "completed", "8 MiB")
        same(os.path.getsize(w("input")), 8 * MIB, "what the agent read")
        code, message = c.refused("task.submit", {"prompt": "x" * (8 * MIB + 1)})
        same((code, "longer" in message), (-32602, True), "more (%r)" % message)
        same(c.call("task.stats")["total"], 2, "tasks")


def test_numbers_out_of_bounds_are_refused_or_kept_in_bounds():
    with world() as (w, d, c):
        k = d.connect()

        def told(**params):
            k.send(request("task.add", {"prompt": ":", "project": w("root"), **params}) + b"\n")
            return json.loads(k.read_line())

        for params in ({"timeout": -1}, {"delay": -1}, {"retries": -1}, {"retry_delay": -1},
                       {"retries": 1001}, {"timeout": "5"}, {"retries": 1.5}, {"delay": 1e300},
                       {"after": "task-0000"}, {"after": [5]}, {"after": ["x"] * 65},
                       {"env": {"": "x"}}, {"env": {"A=B": "x"}}, {"env": {"A": 5}},
                       {"env": {"A": "a\0b"}}, {"env": {"A\0B": "x"}}, {"env": ["A=B"]},
                       {"env": {"V%d" % i: "x" for i in range(257)}}, {"cwd": "relative"},
                       {"cwd": ""}, {"cwd": "/a\0b"}, {"group": "g" * 129}, {"group": "a\0b"},
                       {"runner": "nobody"}, {"project": "/no/such/project"}, {"metadata": [1]}):
            answer = told(**params)
            check("error" in answer and answer["error"]["code"] == -32602, "%.80r: %r", params,
                  answer)
        same(c.call("task.stats")["total"], 0, "tasks")
        for name in "timeout", "delay", "retry_delay":
            for ms in (2 ** 63 - 1, 2 ** 53, 101 * 366 * 86400000):
                same(told(**{name: ms})["error"]["code"], -32602, "%s of %d" % (name, ms))
        same(c.call("task.stats")["total"], 0, "tasks")
        century = 100 * 365 * 86400000
        late = told(delay=century)["result"]["id"]
        for params in ({"timeout": century}, {"retry_delay": century, "retries": 1},
                       {"priority": 1e308}, {"priority": -1e308}):
            same(end(k, told(**params)["result"]["id"])["state"], "completed", "%r" % params)
        same(state(c, late), "queued", "in a hundred years")


def test_a_full_queue_is_said_and_has_room_again():
    with world("tasks.queue=5", "tasks.project_parallel=1") as (w, d, c):
        k = d.connect()
        c.submit(UNTIL % "go")
        late = add(k, ":", delay=3600000)
        waiting = [c.submit(":") for _ in range(4)]
        for _ in range(3):
            same(c.refused("task.submit", {"prompt": ":"}), (-32002, "Queue full: 5/5"), "refusal")
            same(c.refused("chat.send", {"message": ":"})[0], -32002, "a chat")
        k.send(request("task.add", {"prompt": ":"}) + b"\n")
        same(json.loads(k.read_line())["error"]["code"], -32003, "koine's")
        k.call("task.cancel", {"taskId": late, "project": ""})
        waiting.append(c.submit(":"))
        # Many at once are counted before they are on disk.
        c.send(b"".join(request("task.submit", {"prompt": ":"}, i) + b"\n" for i in range(50)))
        codes = [json.loads(c.answer_text()).get("error", {}).get("code") for _ in range(50)]
        same(set(codes), {-32002}, "answers")
        w.touch("go")
        for task in waiting:
            same(c.ended(task)["state"], "completed", "what waited")
        same(c.call("task.stats")["total"], 6, "tasks")


def test_clients_that_leave_after_submitting_are_served():
    with world("tasks.project_parallel=8") as (w, d, c):
        for i in range(30):
            m = connect(d)
            m.send(request("task.submit", {"prompt": "echo x >>$WORLD/order"}) + b"\n" +
                   request("task.get", {"taskId": "task-%04d" % i}) + b"\n")
            if i % 3 == 0:
                m.socket.shutdown(socket.SHUT_WR)
                m.read_rest()
            elif i % 3 == 1:
                m.answer_text()
                m.reset()
            else:
                m.answer_text()
                m.close()
        wait_until(lambda: c.call("task.stats")["completed"] == 30, "the end of all")
        same(w.read("order"), "x\n" * 30, "runs")


# ---- agents ----


def test_an_agent_that_is_missing_is_a_task_that_failed():
    with World() as w:
        os.unlink(w("bin", "claude"))
        with w.daemon(env={"PATH": w("bin")}) as d:
            c, k = connect(d), d.connect()
            # Asked for by name.
            task = add(k, "hello", runner="claude", project=w("root"))
            same((end(k, task)["state"], end(k, task)["error"], end(k, task)["exit_status"]),
                 ("failed", "claude: command not found", 127), "no program")
            t = c.call("task.get", {"taskId": task})
            same((t["state"], t["error"]), ("failed", "spawn claude ENOENT"), "in aiwg's words")
            same([t["error"] for t in c.call("task.list")], ["spawn claude ENOENT"], "in aiwg's list")
            same(c.heard("event.taskFailed", task),
                 {"taskId": task, "error": "spawn claude ENOENT"}, "event")
            for text, mode in (("#!/no/such/shell\n", 0o755), ("\x7fELF", 0o755), ("", 0o644)):
                w.program("claude", text)
                os.chmod(w("bin", "claude"), mode)
                ended = end(k, add(k, "hello", runner="claude", project=w("root")))
                same((ended["state"], bool(ended["error"])), ("failed", True), "%r" % text)
            os.unlink(w("bin", "claude"))
            check("no agent is configured: " in c.finished("hello")["error"], "by nobody's name")
            k.ping()


def test_an_agent_that_prints_without_end_is_bounded_on_disk_and_in_memory():
    with world("tasks.output_bytes=1m", "tasks.interrupt_time=1") as (w, d, c):
        before = rss(d.pid)
        t = c.finished("echo first; yes 0123456789abcdef | head -c 100000000; echo last; "
                       "echo why >&2; exit 3")
        kept = sum(os.path.getsize(os.path.join(at, name))
                   for at, _, names in os.walk(w("root", "koine.db.tasks")) for name in names)
        check(MIB // 2 < kept <= 2 * MIB + 200, "%d bytes on disk", kept)
        grown = peak_rss(d.pid) - before
        note("100 MB printed: %d KiB kept, %d MiB more at most" % (kept // KIB, grown // MIB))
        check(grown < 24 * MIB, "grew by %d MiB", grown // MIB)
        same((t["state"], t["error"]), ("failed", "why\n"), "task")
        with d.connect() as k:
            result = k.call("task.show", {"id": t["id"]})["result"]
            check(result.endswith("last\n"), "%r", result[-20:])
            check(len(result) <= MIB and len(t["output"]) <= 256 * KIB, "%d %d", len(result),
                  len(t["output"]))
            got = k.call("task.output", {"id": t["id"], "offset": 0})
            check(got["end"] == 100000000 + 15 and got["offset"] > 90000000, "%r",
                  {n: v for n, v in got.items() if n != "text"})
        # It never ends by itself, and is ended while it prints.
        task = c.submit("echo $$ >$WORLD/pid; exec yes")
        says(w, "pid")
        c.call("task.cancel", {"taskId": task})
        c.heard("event.taskCancelled", task)
        c.call("ping")


def test_errors_without_end_are_cut():
    with world() as (w, d, c):
        t = c.finished("head -c 5000000 /dev/zero | tr '\\0' e >&2; echo end >&2; exit 1")
        check(t["error"].endswith("eend\n") and len(t["error"]) <= 64 * KIB, "%d", len(t["error"]))
        told = c.heard("event.taskFailed", t["id"])
        check(len(told["error"]) <= 64 * KIB, "%d", len(told["error"]))


def test_a_disk_that_is_full_of_output_harms_nobody():
    """The daemon may write files of 8 MiB and no more: an agent's output is lost, its end is not."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8 * MIB, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with world("tasks.output_bytes=64m", announced=["could not store output"], preexec_fn=limit) as (w, d, c):
        t = c.finished("yes | head -c 20000000; echo last")
        same((t["state"], t["result"][-5:]), ("completed", "last\n"), "task")
        same(c.finished("echo fine")["result"], "fine\n", "another")


def test_an_agent_that_ignores_everything_ends_at_its_time_limit():
    with world("tasks.interrupt_time=1") as (w, d, c):
        k = d.connect()
        prompt = "trap '' TERM INT HUP; echo x >>$WORLD/order; while :; do sleep 0.05; done"
        task = add(k, prompt, timeout=300, retries=1, retry_delay=1, project=w("root"))
        ended = end(k, task)
        same((ended["state"], ended["error"]), ("failed", "Task timed out after 300ms"), "end")
        same(w.read("order"), "x\nx\n", "tries")
        same(w.agents(d), {}, "left")


def test_an_agent_that_does_not_read_its_prompt_is_no_fault():
    with World() as w:
        w.program("claude", "#!/bin/sh\nexec echo done\n")
        with w.daemon() as d:
            same(connect(d).finished("x" * (4 * MIB))["result"], "done\n", "result")


def test_an_agent_sees_nothing_of_ours():
    """No descriptor, no signal kept away, no settings that a daemon of its own would follow."""
    with world() as (w, d, c):
        many = [connect(d) for _ in range(10)]
        for m in many:
            m.call("ping")
        t = c.finished("ls -l /proc/self/fd; grep Sig /proc/self/status; umask")
        lines = t["result"].splitlines()
        fds = [line.split(" -> ")[0].split()[-1] for line in lines if " -> " in line]
        check(set(fds) <= {"0", "1", "2", "3"}, "%r", fds)  # 3: the folder that ls reads
        check("socket:" not in t["result"] and "koine.db" not in t["result"], "%r", t["result"])
        masks = dict(line.split(":\t") for line in lines if line.startswith("Sig"))
        same((int(masks["SigBlk"], 16), int(masks["SigIgn"], 16)), (0, 0), "signals")


def test_a_prompt_is_never_taken_for_an_option_or_a_shells_words():
    with World() as w:
        w.program("claude", "#!/bin/sh\nfor a; do printf '[%s]' \"$a\"; done\n")
        with w.daemon() as d:
            c = connect(d)
            for prompt in ("--help", "-x; touch $WORLD/pwned", "$(touch pwned)`touch pwned`", "a\nb",
                           "' \" \\", "*", "--agent evil", '--settings={"hooks":{}}', "--"):
                same(c.finished(prompt, agent="me")["result"],
                     "[-p][--agent][me][--][%s]" % prompt, "arguments")
            same(c.finished("hi", agent="--settings=x")["result"],
                 "[-p][--agent=--settings=x][--][hi]", "an agent's name")


def test_what_is_kept_has_an_end():
    with world() as (w, d, c):
        before = None
        for _ in range(8):
            c.send(b"".join(request("task.submit", {"prompt": ": " + "p" * 4000}) + b"\n"
                            for _ in range(100)))
            for _ in range(100):
                c.answer_text()
            wait_until(lambda: c.call("task.stats")["queued"] + c.call("task.stats")["running"] == 0,
                       "the end")
            if before is None:
                before = rss(d.pid)
        grown = rss(d.pid) - before
        check(grown < 12 * MIB, "grew by %d MiB in 700 tasks", grown // MIB)


def test_a_second_project_with_a_flood_does_not_starve_the_first():
    with World() as w:
        os.mkdir(w("flood"))
        with w.daemon("tasks.parallel=4", "tasks.project_parallel=3", "--project", w("flood")) as d:
            flood, c = connect(d, w("flood")), connect(d)
            for _ in range(100):
                flood.send(request("task.submit", {"prompt": UNTIL % "go", "priority": 9}) + b"\n")
            for _ in range(100):
                flood.answer_text()
            same(c.finished("echo mine")["result"], "mine\n", "of the first")
            w.touch("go")
            flood.call("daemon.stop", {"force": True})
            d.wait_exit()


# ---- the clock ----


def test_a_clock_that_is_set_back_an_hour_confuses_nobody():
    only_in_a_file("a server's clock counts; hosts_fences.py has wrong ones")
    with World() as w:
        with w.daemon(clock=0) as d:
            c, k = connect(d), d.connect()
            running = c.submit("echo up >$WORLD/up; " + UNTIL % "go")
            says(w, "up")
            delayed = add(k, ":", delay=300, project=w("root"))
            tried = add(k, "echo x >>$WORLD/tries; [ -e $WORLD/go ]", retries=1, retry_delay=300,
                        project=w("root"))
            limited = add(k, "sleep 600", timeout=300, project=w("root"))
            wait_until(lambda: w.read("tries"), "the first try")
            first = c.call("ping")["timestamp"]
            d.move_clocks(steady=0, day=-3600)
            check(c.call("ping")["timestamp"] < first, "the clock has not moved")
            w.touch("go")
            for task in running, delayed, tried:
                same(end(k, task)["state"], "completed", task)
            same(end(k, limited)["error"], "Task timed out after 300ms", "its time is over")
            check(c.heard("event.taskCompleted", running)["duration"] >= 0, "less than no time")
            t = c.call("task.get", {"taskId": running})
            check(t["createdAt"] <= t["startedAt"] <= t["completedAt"], "%r", t)
            late = add(k, "echo late", delay=1000, project=w("root"))
            c.submit(":")
            same([t["id"] for t in c.call("task.list", {"limit": 2})],
                 ["task-%04d" % 5, late], "newest first")
            c.call("daemon.stop", {"force": True})
            d.wait_exit()
        with w.daemon(clock=-7200) as d:
            same(connect(d).ended(late)["result"], "late\n", "no later than it was to be")


if __name__ == "__main__":
    main(globals())
