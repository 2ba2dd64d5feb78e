#!/usr/bin/env python3
"""The aiwg dialect byte by byte, its notifications, and the files that a project has of it."""
import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import time

from harness import (KOINE, MIB, SOURCE, Client, Daemon, Failure, Folder, Skip, check, main, note,
                     request, run_koined, same, wait_until)

TRANSCRIPT = os.path.join(SOURCE, "test", "vectors", "aiwg-transcript.json")
PAGE = os.path.join(SOURCE, "doc", "dialects", "aiwg.md")
NODE = os.path.join(SOURCE, "test", "system", "aiwg_client.mjs")

METHODS = ("ping", "daemon.status", "daemon.stop", "task.submit", "task.cancel", "task.list",
           "task.get", "task.stats", "automation.status", "automation.enable",
           "automation.disable", "chat.send")

TASK_KEYS = ["id", "prompt", "agent", "priority", "state", "createdAt", "startedAt",
             "completedAt", "pid", "result", "error", "output", "metadata"]

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

# What `claude -p [--agent NAME] -- PROMPT` is here. "sleep" and "begun" run until they are
# ended; "hold FILE" until the file is there.
CLAUDE = """#!/bin/sh
for prompt; do :; done
case "$prompt" in
sleep) exec sleep 600 ;;
begun) echo 'so far'; exec sleep 600 ;;
"hold "*) while [ ! -e "${prompt#hold }" ]; do sleep 0.02; done ;;
stubborn) trap '' TERM; echo ready; while :; do sleep 0.05; done ;;
fail) echo 'so far'; echo 'it broke' >&2; exit 3 ;;
where) pwd; exit 0 ;;
esac
for word; do printf '[%s]' "$word"; done
"""


class Place(Folder):
    """A folder for a daemon's root, with a claude of ours first in PATH."""

    def __enter__(self):
        super().__enter__()
        os.mkdir(self("bin"))
        with open(self("bin", "claude"), "w", encoding="utf-8") as f:
            f.write(CLAUDE)
        os.chmod(self("bin", "claude"), 0o755)
        os.mkdir(self("root"))
        return self

    def env(self, **more):
        return {"PATH": self("bin") + ":" + os.environ["PATH"], **more}

    def daemon(self, *args, root="root", **opts):
        return Daemon(*args, root=self(root), env=self.env(), **opts)

    def config(self, value, root="root"):
        os.makedirs(self(root, ".aiwg"), exist_ok=True)
        with open(self(root, ".aiwg", "daemon.json"), "w", encoding="utf-8") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))


@contextlib.contextmanager
def served(*args, config=None, **opts):
    with Place() as place:
        if config is not None:
            place.config(config)
        with place.daemon(*args, **opts) as d:
            d.place = place
            yield d


class Aiwg(Client):
    """Answers apart from notifications."""

    def __init__(self, address):
        super().__init__(address)
        self.told = []

    def answer_text(self):
        while True:
            line = self.read_line().decode()
            message = json.loads(line)
            if "method" not in message:
                return line
            self.told.append(message)

    def ask_text(self, text):
        self.send(text.encode() + b"\n" if isinstance(text, str) else text + b"\n")
        return self.answer_text()

    def call(self, method, params=None, id=1):
        answer = json.loads(self.ask_text(request(method, params, id)))
        check("result" in answer, "%s failed: %r", method, answer)
        same(list(answer), ["jsonrpc", "result", "id"], "keys")
        return answer["result"]

    def refused(self, method, params=None):
        answer = json.loads(self.ask_text(request(method, params)))
        check("error" in answer, "%s was not refused: %r", method, answer)
        same(list(answer), ["jsonrpc", "error", "id"], "keys")
        same(list(answer["error"]), ["code", "message"], "keys of the error")
        return answer["error"]["code"], answer["error"]["message"]

    def heard(self, method, task=None):
        """The first such notification that was not heard before."""
        def fits(message):
            return message["method"] == method and task in (None, message["params"].get("taskId"))

        while not any(fits(m) for m in self.told):
            message = json.loads(self.read_line())
            check("method" in message, "an answer to nothing: %r", message)
            self.told.append(message)
        found = next(m for m in self.told if fits(m))
        self.told.remove(found)
        return found["params"]

    def submit(self, prompt, **params):
        return self.call("task.submit", {"prompt": prompt, **params})["taskId"]

    def finished(self, prompt, **params):
        """Submits, waits for the end, and gets the task."""
        task = self.submit(prompt, **params)
        return self.ended(task)

    def ended(self, task):
        return wait_until(lambda: next((t for t in [self.call("task.get", {"taskId": task})]
                                        if t["state"] not in ("queued", "running")), None),
                          "the end of " + task)


def connect(d, root=None):
    if root is None:
        address = d.address("unix", "aiwg")
    else:
        address = "unix:" + os.path.join(root, ".aiwg", "daemon", "daemon.sock")
    client = Aiwg(address)
    d.clients.append(client)
    return client


def error_text(code, message, id="null"):
    return '{"jsonrpc":"2.0","error":{"code":%d,"message":%s},"id":%s}' % (
        code, json.dumps(message), id)


NO_VERSION = "Invalid Request: missing jsonrpc 2.0"
NO_METHOD = "Invalid Request: missing method"


# ---- envelopes ----

ENVELOPES = (
    ("not json", -32700, "Parse error", "null"),
    ('{"jsonrpc":"2.0"', -32700, "Parse error", "null"),
    ("\ufeff{}", -32700, "Parse error", "null"),
    ('{"method":"x","id":1}', -32600, NO_VERSION, "1"),
    ('{"jsonrpc":"1.0","method":"x","id":"a"}', -32600, NO_VERSION, '"a"'),
    ('{"jsonrpc":"2.0","id":2}', -32600, NO_METHOD, "2"),
    ('{"jsonrpc":"2.0","method":"","id":2}', -32600, NO_METHOD, "2"),
    ('{"jsonrpc":"2.0","method":5,"id":2}', -32600, NO_METHOD, "2"),
    ('{"jsonrpc":"2.0","method":"nope","id":3}', -32601, "Method not found: nope", "3"),
    ("5", -32600, NO_VERSION, "null"),
    ('"s"', -32600, NO_VERSION, "null"),
    ("true", -32600, NO_VERSION, "null"),
    ("{}", -32600, NO_VERSION, "null"),
    ("null", -32600, NO_VERSION, "null"),
    ("[]", -32600, NO_VERSION, "null"),
)


def test_what_is_no_request_is_refused_in_known_words():
    with served() as d:
        c = connect(d)
        for text, code, message, id in ENVELOPES:
            same(c.ask_text(text), error_text(code, message, id), "answer to %r" % text)


def test_ids_come_back_as_they_were_sent():
    with served() as d:
        c = connect(d)
        for id in ("0", "-1", '""', '"x\\u00e9"', "1.50", "12345678901234567890", '{"a":[1]}',
                   "[]", "true", "1e2"):
            got = c.ask_text('{"jsonrpc":"2.0","method":"task.stats","id":%s}' % id)
            check(got.endswith(',"id":%s}' % id), "%s came back in %s", id, got)


def test_notifications_are_never_answered_even_when_wrong():
    with served() as d:
        c = connect(d)
        for text in ('{"jsonrpc":"2.0","method":"ping"}',
                     '{"jsonrpc":"2.0","method":"ping","id":null}',
                     '{"jsonrpc":"2.0","method":"nope"}',
                     '{"jsonrpc":"2.0","method":"task.submit","params":{}}',
                     '{"jsonrpc":"2.0","method":"task.get","params":{"taskId":"x"},"id":null}',
                     "", "   ", "\t"):
            c.send(text.encode() + b"\n")
        same(json.loads(c.ask_text(request("task.stats", id=7)))["id"], 7, "the first answer")


def test_params_that_are_no_object_are_taken_for_none():
    with served() as d:
        c = connect(d)
        for params in ("null", "[]", '["do it"]', '"do it"', "5", "0", "false"):
            same(c.refused("task.submit", params), (-32602, "Missing required parameter: prompt"),
                 "answer to %s" % params)
            check(c.call("ping", params)["pong"], "no pong")


def test_a_batch_is_answered_before_the_events_it_caused():
    with served() as d:
        c = connect(d)
        c.send(b'[%s,%s,{"jsonrpc":"2.0","method":"ping"}]\n' % (
            request("task.submit", {"prompt": "a"}, 1), request("task.submit", {"prompt": "b"}, 2)))
        answers = json.loads(c.read_line())
        same([a["id"] for a in answers], [1, 2], "ids")
        for a in answers:
            c.heard("event.taskCompleted", a["result"]["taskId"])


def test_answers_keep_their_order():
    with served() as d:
        c = connect(d)
        lines = []
        for i in range(0, 60, 4):
            lines += [request("task.submit", {"prompt": "x"}, i), request("nope", id=i + 1),
                      request("task.get", {"taskId": "task-0000"}, i + 2), request("ping", id=i + 3)]
        c.send(b"\n".join(lines) + b"\n")
        same([json.loads(c.answer_text())["id"] for _ in lines], list(range(60)), "order")


def test_a_line_may_have_16_mib_and_no_more():
    with served() as d:
        c = connect(d)
        head = b'{"jsonrpc":"2.0","method":"ping","id":1,"params":"'
        body = head + b"x" * (16 * MIB - len(head) - 2) + b'"}'
        same(len(body), 16 * MIB, "length")
        check("pong" in c.ask_text(body), "no pong")
        c.send_all_it_takes(b"y" + body + b"\n")
        code = json.loads(c.answer_text())["error"]["code"]
        same(code, -32600, "code")
        c.read_rest()
        connect(d).call("ping")


def test_half_close_is_answered():
    with served() as d:
        c = connect(d)
        c.send(request("task.get", {"taskId": "x"}) + b"\n" + request("task.stats", id=2) + b"\n")
        c.half_close()
        same([json.loads(line)["id"] for line in c.read_rest().splitlines()], [1, 2], "ids")


# ---- tasks ----


def test_ping_and_status_have_what_the_command_line_shows():
    with served("--set", "tasks.project_parallel=2") as d:
        c = connect(d)
        pong = c.call("ping", {"whatever": 1})
        same(list(pong), ["pong", "timestamp"], "members")
        check(ISO.fullmatch(pong["timestamp"]), "%r", pong)
        tasks = [c.submit("sleep") for _ in range(3)]
        s = c.call("daemon.status")
        same(list(s), ["pid", "uptime_seconds", "started_at", "health", "subsystems"], "members")
        same((s["pid"], s["health"]), (d.pid, "healthy"), "status")
        check(ISO.fullmatch(s["started_at"]) and isinstance(s["uptime_seconds"], int), "%r", s)
        sub = s["subsystems"]
        same(list(sub), ["ipc", "supervisor", "automation", "file_watcher", "scheduler",
                         "messaging"], "subsystems")
        same(sub["ipc"], {"clients": 1}, "ipc")
        super_ = sub["supervisor"]
        same((super_["running"], super_["queued"], super_["maxConcurrency"]), (2, 1, 2), "tasks")
        same([t["id"] for t in super_["tasks"]["running"]], tasks[:2], "running")
        same(list(super_["tasks"]["running"][0]), ["id", "prompt", "agent", "startedAt", "pid"],
             "a running one")
        same(super_["tasks"]["queued"],
             [{"id": tasks[2], "prompt": "sleep", "agent": None, "priority": 0}], "queued")
        same(list(sub["automation"]), ["enabled", "ruleCount", "rules", "recentExecutions"],
             "automation")
        same([sub[k] for k in ("file_watcher", "scheduler", "messaging")],
             [{"enabled": False}] * 3, "what is off")
        for task in tasks:
            c.call("task.cancel", {"taskId": task})


def test_a_task_runs_claude_in_the_project_and_keeps_what_it_says():
    with served() as d:
        c = connect(d)
        answer = c.call("task.submit", {"prompt": "say 'hi' $HOME", "agent": "writer",
                                        "priority": 1.5, "unknown": True})
        same(answer, {"taskId": "task-0000", "state": "running"}, "answer")
        t = c.ended("task-0000")
        same(list(t), TASK_KEYS, "members")
        said = "[-p][--agent][writer][--][say 'hi' $HOME]"
        same((t["prompt"], t["agent"], t["priority"], t["state"], t["pid"], t["result"],
              t["error"], t["output"], t["metadata"]),
             ("say 'hi' $HOME", "writer", 1.5, "completed", None, said, None, said, {}), "task")
        check(all(ISO.fullmatch(t[k]) for k in ("createdAt", "startedAt", "completedAt")), "%r", t)
        same(c.finished("where")["result"], os.path.realpath(d.root) + "\n", "its folder")


def test_a_task_that_runs_shows_its_pid_and_output():
    with served() as d:
        c = connect(d)
        task = c.submit("stubborn")
        t = wait_until(lambda: next((t for t in [c.call("task.get", {"taskId": task})]
                                     if t["output"]), None), "output")
        same((t["state"], t["output"], t["result"]), ("running", "ready\n", None), "task")
        os.kill(t["pid"], 0)
        same(c.call("task.list", {"state": "running"})[0]["pid"], t["pid"], "pid in the list")
        c.call("task.cancel", {"taskId": task})
        c.heard("event.taskCancelled", task)
        t = c.call("task.get", {"taskId": task})
        same((t["state"], t["pid"]), ("cancelled", None), "task")


def test_a_task_that_runs_has_its_pid_right_after_submit():
    """And what the client is told of it still comes behind the answer."""
    with served() as d:
        c, other = connect(d), connect(d)
        other.call("ping")
        for _ in range(15):
            # In one write: the second is read before the first has begun.
            c.send(request("task.submit", {"prompt": "sleep"}, 1) + b"\n" +
                   request("task.list", {"limit": 1}, 2) + b"\n")
            submitted, listed = json.loads(c.read_line()), None
            same(submitted.get("id"), 1, "the answer is first (%r)" % submitted)
            same(submitted["result"]["state"], "running", "state")
            task, told = submitted["result"]["taskId"], []
            while listed is None or len(told) < 2:
                m = json.loads(c.read_line())
                if m.get("id") == 2:
                    listed = m["result"][0]
                else:
                    told.append(m)
            same([(m["method"], m["params"]["taskId"]) for m in told],
                 [("event.taskQueued", task), ("event.taskStarted", task)], "what is told")
            same((listed["id"], listed["pid"]), (task, told[1]["params"]["pid"]), "pid")
            os.kill(listed["pid"], 0)
            same(other.call("task.get", {"taskId": task})["pid"], listed["pid"], "task.get")
            c.call("task.cancel", {"taskId": task})
            c.heard("event.taskCancelled", task)
            other.heard("event.taskCancelled", task)


def test_a_submit_is_answered_whatever_becomes_of_the_task():
    """It cannot be started, it is no program, it waits, the daemon stops meanwhile."""
    agent = ("--set", "agent.no.kind=command", "--set", "agent.no.command=/nowhere/at/all")
    with served(*agent, announced=["agent unavailable  agent=no "]) as d:
        c = connect(d)
        for who, state in (("no", "failed"), ("recall", "running")):
            answer = c.call("task.submit", {"prompt": "hello", "agent": who})
            check(answer["state"] in (state, "completed"), "%s: %r", who, answer)
        c.ended(answer["taskId"])
        for n in range(4):
            state = c.call("task.submit", {"prompt": "sleep"})["state"]
            same(state, "running" if n < 3 else "queued", "number %d" % n)
        c.call("daemon.stop", {"force": True})
        same(d.wait_exit(), 0, "exit status")


def test_a_task_that_fails_says_why():
    with served() as d:
        c = connect(d)
        t = c.finished("fail")
        same((t["state"], t["error"]), ("failed", "it broke\n"), "task")
        same(c.heard("event.taskFailed"),
             {"taskId": t["id"], "error": "it broke\n", "exitCode": 3}, "event")


def test_only_what_has_completed_has_a_result():
    with served() as d:
        c = connect(d)
        failed = c.finished("fail")
        check("so far\n" in failed["output"], "%r", failed)
        task = c.submit("begun")
        wait_until(lambda: c.call("task.get", {"taskId": task})["output"], "its output")
        c.call("task.cancel", {"taskId": task})
        c.heard("event.taskCancelled", task)
        cancelled = c.call("task.get", {"taskId": task})
        same((failed["result"], cancelled["result"]), (None, None), "results")
        same([t["result"] for t in c.call("task.list")], [None, None], "results in a list")
        with d.connect() as k:
            same(k.call("task.show", {"id": failed["id"]})["result"], "so far\n", "koine's")


def test_prompts_that_cannot_be_are_refused():
    with served() as d:
        c = connect(d)
        missing = (-32602, "Missing required parameter: prompt")
        for params in (None, {}, {"prompt": ""}, {"prompt": None}, {"prompt": 0},
                       {"prompt": False}):
            same(c.refused("task.submit", params), missing, "%r" % params)
        for params in ({"prompt": 5}, {"prompt": ["x"]}, {"prompt": "a\0b"},
                       {"prompt": "x", "agent": 7}, {"prompt": "x", "priority": "high"}):
            same(c.refused("task.submit", params)[0], -32602, "%r" % params)
        same(c.refused("chat.send", {}), (-32602, "Missing required parameter: message"), "chat")
        same(c.refused("task.get", {}), (-32602, "Missing required parameter: taskId"), "get")
        same(c.refused("task.cancel", {"taskId": ""}),
             (-32602, "Missing required parameter: taskId"), "cancel")
        same(c.call("task.stats")["total"], 0, "tasks")


def test_a_prompt_of_two_megabytes_arrives():
    with served() as d:
        c = connect(d)
        prompt = "x" * (2 * MIB)
        t = c.finished(prompt)
        same((t["state"], len(t["prompt"])), ("completed", 2 * MIB), "task")


def test_lists_of_large_tasks_are_whole():
    with served() as d:
        c = connect(d)
        prompt = "\u00e4" * MIB
        tasks = [c.submit(prompt) for _ in range(7)][::-1]
        for task in tasks:
            c.ended(task)
        for limit in (0, 1000):
            got = c.call("task.list", {"limit": limit})
            same([t["id"] for t in got], tasks, "ids")
        same({t["prompt"] for t in got}, {prompt[:32 << 10]}, "prompts are cut")
        same(c.call("task.get", {"taskId": tasks[0]})["prompt"], prompt, "but not in task.get")
        with d.connect() as k:
            got = k.call("task.find", {"limit": 1000})["tasks"]
            same([t["id"] for t in got], tasks, "found")
            same({t["prompt"] for t in got}, {prompt[:100]}, "prompts are cut")


def test_cancel_twice_and_cancel_what_is_unknown():
    with served("--set", "tasks.project_parallel=1") as d:
        c = connect(d)
        running, queued = c.submit("sleep"), c.submit("never")
        same(c.call("task.cancel", {"taskId": queued}), {"cancelled": True}, "queued")
        same(c.call("task.get", {"taskId": queued})["state"], "cancelled", "state")
        same(c.call("task.cancel", {"taskId": running}), {"cancelled": True}, "running")
        c.heard("event.taskCancelled", running)
        for task in running, queued:
            same(c.refused("task.cancel", {"taskId": task})[0], -32001, "again")
        same(c.refused("task.cancel", {"taskId": "task-0042"}),
             (-32000, "Task not found: task-0042"), "unknown")
        same(c.refused("task.get", {"taskId": "nonsense"}), (-32000, "Task not found: nonsense"),
             "unknown")


def test_an_agent_that_ignores_sigterm_ends_cancelled():
    with served("--set", "tasks.interrupt_time=1") as d:
        c = connect(d)
        task = c.submit("stubborn")
        pid = c.heard("event.taskStarted", task)["pid"]
        c.call("task.cancel", {"taskId": task})
        c.heard("event.taskCancelled", task)
        check(not os.path.exists("/proc/%d" % pid), "it still runs")


def test_lists_are_newest_first_and_take_odd_limits():
    with served() as d:
        c = connect(d)
        tasks = [c.submit("x") for _ in range(25)]
        for task in tasks:
            c.ended(task)
        for limit, n in ((None, 20), (0, 20), ("", 20), (5, 5), ("5", 5), (2.9, 2), (25, 25),
                         (1000, 25), (5000, 25)):
            got = c.call("task.list", {"limit": limit})
            same([t["id"] for t in got], tasks[::-1][:n], "limit %r" % (limit,))
        for limit in (-1, "-1", "five", [], {}):
            same(c.refused("task.list", {"limit": limit})[0], -32602, "limit %r" % (limit,))
        same(list(got[0]), TASK_KEYS, "members")
        same(got[0]["output"], "", "output in a list")
        same(len(c.call("task.list", {"state": "completed", "limit": 3})), 3, "completed")
        for state in ("running", "failed", "no such", 5, ["queued"]):
            same(c.call("task.list", {"state": state}), [], "state %r" % (state,))
        same(c.call("task.stats"), {"total": 25, "queued": 0, "running": 0, "completed": 25,
                                    "failed": 0, "cancelled": 0}, "stats")


def test_higher_priorities_begin_first():
    with served("--set", "tasks.project_parallel=1") as d:
        c = connect(d)
        gate = d.place("gate")
        c.submit("hold " + gate)
        low, high, mid = (c.submit(p, priority=n) for p, n in (("l", -1), ("h", 2), ("m", 0.5)))
        open(gate, "w", encoding="utf-8").close()
        c.heard("event.taskCompleted", low)
        started = [m["params"]["taskId"] for m in c.told if m["method"] == "event.taskStarted"]
        same(started[1:], [high, mid, low], "order")


def test_a_full_queue_is_refused():
    config = {"daemon": {"max_parallel_actions": 1}, "supervisor": {"max_queue_depth": 2}}
    with served(config=config) as d:
        c = connect(d)
        running = c.submit("sleep")
        waiting = [c.submit("w") for _ in range(2)]
        same(c.refused("task.submit", {"prompt": "w"}), (-32002, "Queue full: 2/2"), "refusal")
        c.call("task.cancel", {"taskId": waiting[0]})
        c.submit("w")
        c.call("task.cancel", {"taskId": running})


def test_a_time_limit_of_the_project_is_kept():
    with served(config={"daemon": {"action_timeout_minutes": 0.005}}) as d:
        c = connect(d)
        t = c.finished("sleep")
        same((t["state"], t["error"]), ("failed", "Task timed out after 300ms"), "task")
        same(c.heard("event.taskTimeout"), {"taskId": t["id"]}, "event")


def test_chat_is_a_task_with_a_priority_and_a_source():
    with served() as d:
        c = connect(d)
        for params, priority in (({"message": "hi"}, 5), ({"message": "hi", "priority": 0}, 5),
                                 ({"message": "hi", "priority": -2}, -2)):
            answer = c.call("chat.send", params)
            same(list(answer), ["taskId"], "members")
            t = c.ended(answer["taskId"])
            same((t["priority"], t["metadata"], t["result"]),
                 (priority, {"source": "ipc-chat"}, "[-p][--][hi]"), "task")


NOBODY = ("no agent is configured: install claude, or name one in koine.conf "
          "([%s] runner, [chat] agent)")


def test_work_that_nobody_can_do_fails():
    with Daemon(env={"PATH": "/usr/bin:/bin"}) as d:
        c = connect(d)
        t = c.finished("hello")
        same((t["state"], t["pid"], t["result"], t["error"]),
             ("failed", None, None, NOBODY % "tasks"), "task")
        same(c.heard("event.taskFailed"), {"taskId": t["id"], "error": NOBODY % "tasks"}, "event")
        named = c.finished("hello", agent="recall")
        same(named["state"], "completed", "who names recall")
        check("offline responder" in named["result"], "%r", named["result"])


def test_work_is_refused_where_no_subsystem_could_do_it():
    for flags, why in ((("--agent", "none"), NOBODY % "tasks"),
                       (("--set", "daemon.programs=no"), "starting programs is disabled (to enable it, set [daemon] programs = yes)")):
        with Daemon(*flags, env={"PATH": "/usr/bin:/bin"}) as d:
            c = connect(d)
            for method, params in (("task.submit", {"prompt": "hello"}), ("chat.send", {"message": "hello"})):
                same(json.loads(c.call_text(request(method, params)))["error"],
                     {"code": -32003, "message": why}, "%s with %r" % (method, flags))
            same(c.call("task.list"), [], "tasks")
    with Daemon("--set", "daemon.programs=no", "--set", "tasks.runner=recall") as d:
        same(connect(d).finished("hello")["state"], "completed", "an agent that is no program")


def test_who_wants_recall_for_work_gets_it():
    for setting in ("tasks.runner=recall", "task.runner=recall"):
        with Daemon("--set", setting, env={"PATH": "/usr/bin:/bin"}) as d:
            t = connect(d).finished("hello")
            same((t["state"], t["pid"]), ("completed", None), "task")
            check("offline responder" in t["result"], "%r", t["result"])


def test_an_agent_of_the_settings_works_without_being_named():
    agent = ("--set", "agent.echo.kind=command", "--set", "agent.echo.command=echo {prompt}")
    for more in (("--agent", "echo"), ("--set", "tasks.runner=echo")):
        with Daemon(*agent, *more, env={"PATH": "/usr/bin:/bin"}) as d:
            t = connect(d).finished("hello")
            same((t["state"], t["result"]), ("completed", "hello\n"), "task")
    done = run_koined("--check", "--set", "tasks.runner=nobody")
    check(done.returncode == 78 and b"tasks.runner = nobody: agent not found" in done.stderr,
          "%r", done.stderr)


# ---- notifications ----


def test_every_client_is_told_and_the_answer_comes_first():
    with served() as d:
        a, b = connect(d), connect(d)
        b.call("ping")
        line = a.call_text(request("task.submit", {"prompt": "p" * 100}))
        task = json.loads(line)["result"]["taskId"]
        for c in a, b:
            seen = [json.loads(c.read_line()) for _ in range(3)]
            same([m["method"] for m in seen],
                 ["event.taskQueued", "event.taskStarted", "event.taskCompleted"], "events")
            same(seen[0], {"jsonrpc": "2.0", "method": "event.taskQueued",
                           "params": {"taskId": task, "prompt": "p" * 80, "queueSize": 1}}, "queued")
            same(list(seen[1]["params"]), ["taskId", "pid"], "started")
            same(list(seen[2]["params"]), ["taskId", "result", "duration"], "completed")


def test_a_client_that_does_not_read_holds_nobody_up():
    with served("--set", "limits.queue_bytes=4k") as d:
        deaf, c = connect(d), connect(d)
        deaf.call("ping")
        for i in range(700):
            c.call("task.submit", {"prompt": "q" * 80})
        wait_until(lambda: c.call("task.stats")["completed"] == 700, "the end of all")
        listener = next(e for e in d.status()["listeners"] if e["dialect"] == "aiwg")
        check(listener["dropped"] > 0, "%r", listener)


def test_a_stop_is_told_to_all():
    with served() as d:
        a, b = connect(d), connect(d)
        b.call("ping")
        same(a.call("daemon.stop"), {"stopping": True}, "answer")
        same(b.heard("event.daemonStopping"), {"pid": d.pid}, "event")
        a.ended_stream = a.read_rest()
        same(a.ended_stream, b"", "more to the one who asked")
        same(d.wait_exit(), 0, "exit status")


# ---- the same tasks from koine ----


def koine(d, *args):
    done = subprocess.run([KOINE, "--socket", d.socket_path, *args], capture_output=True,
                          timeout=60)
    check(done.returncode == 0, "koine %r: %r", args, done.stderr)
    return json.loads(done.stdout)


def test_koine_and_aiwg_see_the_same_tasks():
    with served() as d:
        c = connect(d)
        task = c.submit("a task")
        c.ended(task)
        with d.connect() as k:
            got = k.call("task.get", {"taskId": task})
            same(list(got), TASK_KEYS + ["project", "cwd"], "members on koine's socket")
            same(got["project"], os.path.realpath(d.root), "project")
            same([t["id"] for t in k.call("task.list")], [task], "list")
            other = k.call("task.submit", {"prompt": "b", "project": os.path.realpath(d.root)})
            c.heard("event.taskCompleted", other["taskId"])
            none = k.call("task.submit", {"prompt": "of no project"})
            wait_until(lambda: k.call("task.stats")["completed"] == 3, "the third")
            same(k.call("task.stats", {"project": os.path.realpath(d.root)})["total"], 2, "stats")
            status = k.call("daemon.status")
            same(status["subsystems"]["supervisor"]["running"], 0, "supervisor")
            check("listeners" in status and "version" in status, "%r", list(status))
        same(len(c.call("task.list")), 2, "the project's own")
        same(none["taskId"], "task-0000", "numbers of each project")


def test_a_plain_node_client_plays_a_whole_scene():
    with served() as d:
        done = subprocess.run(["node", NODE, d.address("unix", "aiwg")[5:]], capture_output=True,
                              timeout=120)
        check(done.returncode == 0, "node: %r", done.stderr)
        out = json.loads(done.stdout)
        same(out["submitted"], {"taskId": "task-0000", "state": "running"}, "submit")
        same(out["order"], ["answer 3", "event.taskQueued", "event.taskStarted",
                            "event.taskCompleted"], "order")
        same(out["completed"], out["other"], "what both clients were told")
        said = "[-p][--agent][writer][--][say hello]"
        same((out["completed"]["result"], out["task"]["result"]), (said, said), "result")
        same([t["id"] for t in out["running"]], [out["long"]["taskId"]], "running")
        same(out["cancelled"], {"cancelled": True}, "cancel")
        same((out["again"]["code"], out["unknown"]["code"]), (-32001, -32000), "codes")
        same(out["unknown"]["message"], "Task not found: task-9999", "words")
        same(out["failed"]["exitCode"], 3, "exit code")
        same((out["chatted"]["priority"], out["chatted"]["metadata"]), (5, {"source": "ipc-chat"}),
             "chat")
        stats = {"total": 4, "queued": 0, "running": 0, "completed": 2, "failed": 1, "cancelled": 1}
        same(out["stats"], stats, "stats")
        # The same, side by side.
        with d.connect() as k:
            same(k.call("task.stats"), stats, "koine's stats")
            seen = [{n: v for n, v in t.items() if n not in ("project", "cwd")}
                    for t in k.call("task.list")]
            same(seen, out["list"], "koine's list")
        same(koine(d, "call", "task.stats"), stats, "koine call")


# ---- the project's files ----


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_a_project_looks_as_if_the_original_ran():
    with served() as d:
        aiwg = os.path.join(d.root, ".aiwg")
        same(read(os.path.join(aiwg, "daemon.pid")), str(d.pid), "daemon.pid")
        text = read(os.path.join(aiwg, "daemon", "state.json"))
        state = json.loads(text)
        same(text, json.dumps(state, indent=2), "its form")
        same(list(state), ["pid", "started_at", "last_heartbeat", "uptime_seconds",
                           "restart_count", "ipc", "agents", "task_stats", "monitors",
                           "automation", "health"], "members")
        same((state["pid"], state["restart_count"]), (d.pid, 0), "state")
        same(state["ipc"], {"socket": ".aiwg/daemon/daemon.sock", "clients": 0}, "ipc")
        same(list(state["agents"]), ["running", "queued", "max_concurrency", "tasks"], "agents")
        same(list(state["monitors"]), ["file_watcher", "webhook", "scheduler"], "monitors")
        same((state["health"]["status"], state["health"]["issues"]), ("healthy", []), "health")
        beat = json.loads(read(os.path.join(aiwg, "daemon", "heartbeat")))
        same(list(beat), ["pid", "timestamp", "uptime_seconds"], "heartbeat")
        mode = os.stat(os.path.join(aiwg, "daemon", "daemon.sock")).st_mode
        same((stat.S_ISSOCK(mode), mode & 0o777), (True, 0o600), "socket")
        same(d.stop(), 0, "exit status")
        same(sorted(os.listdir(aiwg)), ["daemon"], "what is left")
        same(sorted(os.listdir(os.path.join(aiwg, "daemon"))),
             ["daemon.log", "heartbeat", "state.json"], "what is left")
        same(json.loads(read(os.path.join(aiwg, "daemon", "state.json")))["health"]["status"],
             "stopped", "health")


def test_what_happens_is_in_the_log():
    with served() as d:
        path = os.path.join(d.root, ".aiwg", "daemon", "daemon.log")
        c = connect(d)
        c.finished("say\nhello\x1b[1m")
        wait_until(lambda: "completed" in read(path), "the end of the first")
        c.finished("fail")
        wait_until(lambda: "failed" in read(path), "the last line")
        same(d.stop(), 0, "exit status")
        lines = read(path).splitlines()
        check(all(re.match(r"\[%s\] " % ISO.pattern, line) for line in lines), "%r", lines)
        same([line[27:] for line in lines],
             ["Daemon started (PID: %d)" % d.pid,
              "Task task-0000 queued: say hello [1m", "Task task-0000 started",
              "Task task-0000 completed", "Task task-0001 queued: fail", "Task task-0001 started",
              "Task task-0001 failed: it broke ", "Daemon stopped (PID: %d)" % d.pid], "lines")
        same(os.stat(path).st_mode & 0o777, 0o600, "mode")


def test_a_log_that_cannot_be_written_is_no_matter():
    with Place() as place:
        os.makedirs(place("root", ".aiwg", "daemon", "daemon.log"))
        with place.daemon() as d:
            same(connect(d).finished("x")["state"], "completed", "task")


def test_the_heart_beats():
    with served(config={"daemon": {"heartbeat_interval_seconds": 0.1}}) as d:
        path = os.path.join(d.root, ".aiwg", "daemon", "heartbeat")
        first = read(path)
        wait_until(lambda: read(path) != first, "another heartbeat")
        connect(d).submit("sleep")
        state = os.path.join(d.root, ".aiwg", "daemon", "state.json")
        wait_until(lambda: json.loads(read(state))["agents"]["running"] == 1, "the state to follow")


def test_a_pid_file_of_somebody_else_stays():
    with served() as d:
        path = os.path.join(d.root, ".aiwg", "daemon.pid")
        with open(path, "w", encoding="utf-8") as f:
            f.write("1")
        same(d.stop(), 0, "exit status")
        same(read(path), "1", "daemon.pid")


def test_one_project_has_one_daemon():
    with Place() as place:
        os.mkdir(place("p"))
        with place.daemon("--project", place("p")) as d:
            other = run_koined("--root", place("other"), "--project", place("p"))
            same(other.returncode, 69, "exit status")
            check(b"daemon.sock" in other.stderr, "%r", other.stderr)
            connect(d, place("p")).call("ping")
            same(read(place("p", ".aiwg", "daemon.pid")), str(d.pid), "daemon.pid")


def test_a_dead_socket_and_stale_files_are_no_obstacle():
    with Place() as place:
        with place.daemon(exit_status=-9) as d:
            d.signal(signal.SIGKILL)
            d.wait_exit()
        check(os.path.exists(place("root", ".aiwg", "daemon.pid")), "nothing was left")
        with open(place("root", ".aiwg", "daemon", ".lock"), "w", encoding="utf-8") as f:
            f.write("4711")
        with place.daemon() as d:
            connect(d).call("ping")
            same(read(place("root", ".aiwg", "daemon.pid")), str(d.pid), "daemon.pid")


def test_several_projects_have_tasks_of_their_own():
    with Place() as place:
        for name in "one", "two":
            os.mkdir(place(name))
        with place.daemon("--project", place("one"), "--project", place("two"),
                          "--project", place("one") + "/.") as d:
            same(sum(dialect == "aiwg" for dialect, _ in d.addresses), 3, "listeners")
            one, two = connect(d, place("one")), connect(d, place("two"))
            two.call("ping")
            same(one.finished("where")["result"], os.path.realpath(place("one")) + "\n", "folder")
            same(two.call("task.list"), [], "the other's")
            same(two.call("task.stats")["total"], 0, "the other's")
            same(two.refused("task.get", {"taskId": "task-0000"})[0], -32000, "the other's")
            same(two.submit("x"), "task-0000", "id")
            two.heard("event.taskCompleted")
            one.heard("event.taskCompleted")
            one.call("ping")
            same(len(one.told), 2, "told to one: of its own task, and of no other")


def test_a_deep_project_is_served():
    """Below a folder whose path is longer than a socket's name may be, as its own clients see it."""
    with Place() as place:
        deep = os.path.realpath(place("d" * 120, "e" * 60))
        os.makedirs(deep)
        aiwg = os.path.join(deep, ".aiwg", "daemon")
        with place.daemon("--project", deep) as d:
            same([a for _, a in d.addresses if deep in a], ["unix:%s/daemon.sock" % aiwg], "where")
            folder = os.open(aiwg, os.O_PATH)
            try:
                c = Aiwg("unix:/proc/self/fd/%d/daemon.sock" % folder)
            finally:
                os.close(folder)
            d.clients.append(c)
            same(c.finished("where")["result"], deep + "\n", "its folder")
            path = os.path.join(aiwg, "daemon.sock")
            same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")
            done = subprocess.run([KOINE, "--socket", path, "call", "ping"], capture_output=True)
            check(b"pong" in done.stdout, "%r", done)
            for args in (), ("--check",):
                other = run_koined("--root", place("other"), "--project", deep, *args)
                same(other.returncode, 69, "exit status")
                check(b"address in use" in other.stdout + other.stderr, "%r", other)
        same(sorted(os.listdir(aiwg)), ["daemon.log", "heartbeat", "state.json"], "what is left")


def test_the_current_folder_is_a_project_where_it_has_aiwg():
    with Place() as place:
        os.makedirs(place("here", ".aiwg"))
        os.mkdir(place("run"))
        env = place.env(XDG_RUNTIME_DIR=place("run"), XDG_STATE_HOME=place("state"))
        off = ["--set", "listen.nexus=off", "--set", "listen.ash=off"]
        done = run_koined("--check", *off, env=env)
        check(b"would listen  aiwg" not in done.stdout, "%r", done.stdout)
        done = subprocess.run([os.environ.get("KOINED", os.path.join(SOURCE, "build", "koined")),
                               "--check", *off], cwd=place("here"), env={**os.environ, **env},
                              capture_output=True)
        check(("would listen  aiwg unix:%s/.aiwg/daemon/daemon.sock" % os.path.realpath(
            place("here"))).encode() in done.stdout, "%r", done.stdout)


def test_a_project_that_is_none_is_refused_by_its_option_and_its_name():
    for folder, why in (("/no/such/folder", ": No such file or directory"),
                        ("/etc/passwd", " is not a folder")):
        done = run_koined("--check", "--project", folder)
        same((done.returncode, done.stderr.decode()),
             (78, "koined: --project %s%s\n" % (folder, why)), "exit status and words")


def make_victim(place):
    """Files that are nobody's but their owner's, with names that a project has, too."""
    os.mkdir(place("victim"))
    for name in ("state.json", "state.json.tmp", "heartbeat", "daemon.log", "daemon.pid", "daemon.json",
                 "tasks.json.imported"):
        with open(place("victim", name), "w", encoding="utf-8") as f:
            f.write("mine")
    with open(place("victim", "tasks.json"), "w", encoding="utf-8") as f:
        json.dump({"tasks": [{"id": "task-0000", "prompt": "p", "state": "completed"}]}, f)
    os.makedirs(place("victim", "daemon"))
    return contents(place("victim"))


def contents(folder):
    return {name: os.path.isfile(os.path.join(folder, name)) and read(os.path.join(folder, name))
            for name in os.listdir(folder)}


def not_served(place, project, said):
    """koined says so and starts without it, and --check says the same."""
    done = run_koined("--check", "--root", place("root"), "--project", project)
    same(done.returncode, 0, "exit status")
    check(b"would skip    aiwg" in done.stdout and said.encode() in done.stdout, "%r", done)
    with place.daemon("--project", project, announced=["could not serve project", said]) as d:
        connect(d).call("ping")
        check(not any(project in address for _, address in d.addresses), "%r", d.addresses)


def test_a_link_in_place_of_a_projects_folder_is_refused():
    for link in (".aiwg",), (".aiwg", "daemon"):
        with Place() as place:
            before = make_victim(place)
            os.makedirs(place("cloned", *link[:-1]))
            os.symlink(place("victim"), place("cloned", *link))
            not_served(place, place("cloned"), "project %s: %s is a symbolic link" % (
                os.path.realpath(place("cloned")), "/".join(link)))
            same(contents(place("victim")), before, "what it leads to")
            same(os.listdir(place("victim", "daemon")), [], "what it leads to")


def test_a_projects_folder_of_another_user_is_refused():
    if os.geteuid() != 0:
        raise Skip("only root may give a folder away")
    with Place() as place:
        os.makedirs(place("p", ".aiwg", "daemon"))
        os.chown(place("p", ".aiwg", "daemon"), 65534, 65534)
        not_served(place, place("p"), ".aiwg/daemon belongs to another user (uid 65534)")


def test_what_stands_in_place_of_a_projects_socket_stays():
    for name in "daemon.sock", "daemon.sock.lock":
        with Place() as place:
            os.makedirs(place("p", ".aiwg", "daemon"))
            with open(place("p", ".aiwg", "daemon", name), "w", encoding="utf-8") as f:
                f.write("mine")
            not_served(place, place("p"), "daemon.sock")
            same(read(place("p", ".aiwg", "daemon", name)), "mine", name)
        with Place() as place:
            os.makedirs(place("p", ".aiwg", "daemon", name))
            not_served(place, place("p"), "daemon.sock")


def test_a_link_that_comes_later_is_not_followed():
    with Place() as place:
        before = make_victim(place)
        with place.daemon() as d:
            os.rename(place("root", ".aiwg", "daemon"), place("root", ".aiwg", "moved"))
            os.symlink(place("victim"), place("root", ".aiwg", "daemon"))
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
        same(contents(place("victim")), before, "what it leads to")


def test_an_earlier_import_is_not_replaced():
    with Place() as place:
        os.makedirs(place("root", ".aiwg", "daemon"))
        path = place("root", ".aiwg", "daemon", "tasks.json")
        for text in ("first", "second"):
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"tasks": [{"id": "task-0000", "prompt": text, "state": "completed"}]}, f)
            with place.daemon() as d:
                connect(d).call("ping")
            check(not os.path.exists(path), "it is still there")
        check("first" in read(path + ".imported"), "the first")
        check("second" in read(path + ".imported.2"), "the second")


def test_settings_of_a_project_that_are_wrong_are_told_and_left_out():
    with served(config='{\n"daemon": oops}', announced=["daemon.json:2: "]) as d:
        connect(d).call("ping")


def test_settings_in_yaml_are_told_to_be_unread():
    for name in "daemon.yaml", "daemon.yml":
        with Place() as place:
            os.mkdir(place("root", ".aiwg"))
            with open(place("root", ".aiwg", name), "w", encoding="utf-8") as f:
                f.write("daemon:\n  max_parallel_actions: 1\n")
            said = ".aiwg/%s reason=only .aiwg/daemon.json is read" % name
            with place.daemon(announced=[said]) as d:
                connect(d).call("ping")


def test_tasks_of_an_earlier_original_are_taken_over_once():
    old = {"version": 1, "updatedAt": "2026-02-09T10:00:00.000Z", "tasks": [
        {"id": "task-0000", "prompt": "done long ago", "agent": "rev", "priority": 2,
         "state": "completed", "createdAt": "2026-02-09T09:00:00.000Z",
         "startedAt": "2026-02-09T09:00:01.000Z", "completedAt": "2026-02-09T09:00:02.000Z",
         "pid": 7, "result": "r", "error": None, "output": "r", "metadata": {"a": [1]}},
        {"id": "task-0001", "prompt": "was running", "agent": None, "priority": 0,
         "state": "running", "createdAt": "2026-02-09T09:00:03.000Z",
         "startedAt": "2026-02-09T09:00:04.000Z", "completedAt": None, "pid": 8, "result": None,
         "error": None, "output": "", "metadata": {}},
        {"id": "task-0002", "prompt": "waited", "agent": None, "priority": 0, "state": "queued",
         "createdAt": "2026-02-09T09:00:05.000Z", "startedAt": None, "completedAt": None,
         "pid": None, "result": None, "error": None, "output": "", "metadata": {}},
        {"id": "task-0003", "prompt": "failed", "agent": None, "priority": 0, "state": "failed",
         "createdAt": "2026-02-09T09:00:06.000Z", "startedAt": "2026-02-09T09:00:07.000Z",
         "completedAt": "2026-02-09T09:00:08.000Z", "pid": 9, "result": None, "error": "e",
         "output": "partial out", "metadata": {}}]}
    with Place() as place:
        os.makedirs(place("root", ".aiwg", "daemon"))
        path = place("root", ".aiwg", "daemon", "tasks.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(old, f, indent=2)
        with place.daemon("--set", "tasks.keep_days=0") as d:
            c = connect(d)
            t = c.call("task.get", {"taskId": "task-0000"})
            kept = TASK_KEYS[:8] + ["result", "error", "output", "metadata"]
            same([t[k] for k in kept], [old["tasks"][0][k] for k in kept], "task")
            t = c.call("task.get", {"taskId": "task-0003"})
            same([t[k] for k in kept], [old["tasks"][3][k] for k in kept], "what had failed")
            t = c.call("task.get", {"taskId": "task-0001"})
            same((t["state"], t["error"]), ("failed", "daemon restarted"), "what was running")
            same(c.call("task.get", {"taskId": "task-0002"})["state"], "queued", "what waited")
            trust(d)
            same(c.ended("task-0002")["result"], "[-p][--][waited]", "what waited")
            same(c.submit("new"), "task-0004", "the next id")
            same([t["id"] for t in c.call("task.list")],
                 ["task-0004", "task-0003", "task-0002", "task-0001", "task-0000"], "list")
        check(not os.path.exists(path), "it is still there")
        same(len(json.loads(read(path + ".imported"))["tasks"]), 4, "what was imported")
        with place.daemon("--set", "tasks.keep_days=0") as d:
            same(connect(d).call("task.stats")["total"], 5, "tasks")


def test_tasks_are_kept_for_so_many_days():
    old = {"tasks": [{"id": "task-%04d" % i, "prompt": "p", "state": "completed",
                      "createdAt": "2020-01-01T00:00:00.000Z",
                      "completedAt": "2020-01-01T00:00:01.000Z"} for i in range(250)]}
    with Place() as place:
        os.makedirs(place("root", ".aiwg", "daemon"))
        with open(place("root", ".aiwg", "daemon", "tasks.json"), "w", encoding="utf-8") as f:
            json.dump(old, f)
        with place.daemon("--set", "tasks.keep_days=0") as d:
            c = connect(d)
            same(c.call("task.stats")["completed"], 250, "tasks")
            same(c.finished("one more")["id"], "task-0250", "id")
        output = os.listdir(place("root", "koine.db.tasks"))
        same(len(output), 1, "files with output")
        with place.daemon("--set", "tasks.keep_days=1") as d:
            c = connect(d)
            wait_until(lambda: c.call("task.stats")["completed"] == 1, "the old ones to go")
            same([t["id"] for t in c.call("task.list")], ["task-0250"], "what is left")
            same(c.refused("task.get", {"taskId": "task-0249"})[0], -32000, "one of them")
            same(c.submit("x"), "task-0251", "an id that was not there yet")
        check(output[0] in os.listdir(place("root", "koine.db.tasks")), "output went, too")


# ---- rules ----

RULES = {
    "watch": {"enabled": True, "debounce_ms": 20,
              "paths": [{"path": "src/", "events": ["create", "modify"], "ignore": ["*.tmp"],
                         "extensions": [".c"]}]},
    "schedule": {"enabled": True, "jobs": [{"id": "yearly", "cron": "0 0 1 1 *", "action": "x"}]},
    "rules": [
        {"id": "changed", "trigger": {"source": "watch", "pattern": "^file\\.(create|modify):watch$"},
         "conditions": [{"field": "payload.path", "operator": "contains", "value": "src/"}],
         "action": {"type": "agent", "prompt": "look at {{payload.path}} {{no.such}}",
                    "agent": "rev", "priority": 4}},
        {"id": "broken", "trigger": {"type": "x"}, "action": {"type": "agent", "prompt": "p"},
         "conditions": [{"field": "a", "operator": "resembles", "value": 1}]},
        {"id": "off", "trigger": {"type": "file.create"}, "enabled": False, "cooldownMs": 50,
         "requiresApproval": True, "action": {"type": "agent", "prompt": "never"}},
    ],
}


@contextlib.contextmanager
def with_rules(config, *args, **opts):
    with Place() as place:
        os.mkdir(place("root", "src"))
        place.config(config)
        with place.daemon(*args, **opts) as d:
            d.place = place
            trust(d)
            yield d


def trust(d, folder=None, kept=0):
    """As somebody does who has looked at it; and waits until its rules can act, all but `kept`."""
    folder = os.path.realpath(folder or d.root)
    ready = d.log().count(b"rule state loaded")
    with d.connect(dialect="koine") as k:
        shown = k.call("project.show", {"folder": folder})
        same(k.call("project.trust", {"folder": folder, "digest": shown["digest"],
                                      "tasks": shown["held"]}),
             {"folder": folder, "trusted": True}, "trust")
    if len(shown["rules"]) > kept:
        wait_until(lambda: d.log().count(b"rule state loaded") > ready, "the rules")


def touch(d, name, text="x"):
    with open(os.path.join(d.root, "src", name), "w", encoding="utf-8") as f:
        f.write(text)


def test_rules_of_a_project_act_on_its_files():
    with with_rules(RULES, announced=["resembles"]) as d:
        c = connect(d)
        status = c.call("automation.status")
        same((status["enabled"], status["ruleCount"], status["recentExecutions"]), (True, 2, []),
             "automation")
        same(status["rules"][1], {
            "id": "off", "trigger": {"type": "file.create"},
            "action": {"type": "agent", "prompt": "never"}, "enabled": False, "cooldownMs": 50,
            "requiresApproval": True}, "a rule")
        touch(d, "skipped.tmp")
        touch(d, "skipped.md")
        touch(d, "a.c")
        told = c.heard("event.ruleExecuted")
        same((told["ruleId"], told["eventType"], told["status"]),
             ("changed", "file.create", "submitted"), "event")
        check(ISO.fullmatch(told["timestamp"]), "%r", told)
        t = c.ended(told["taskId"])
        same((t["prompt"], t["agent"], t["priority"]),
             ("look at src/a.c {{no.such}}", "rev", 4), "task")
        same(t["metadata"], {"ruleId": "changed", "eventType": "file.create"}, "metadata")
        status = c.call("automation.status")
        same([(e["ruleId"], e["status"], e["taskId"]) for e in status["recentExecutions"]],
             [("changed", "submitted", t["id"])], "executions")
        sub = c.call("daemon.status")["subsystems"]
        same((sub["file_watcher"]["enabled"], sub["file_watcher"]["paths"]), (True, ["src/"]),
             "watcher")
        check(sub["file_watcher"]["events_received"] > 0, "%r", sub)
        same(sub["scheduler"], {"enabled": True, "jobs": 1, "last_fires": {}}, "scheduler")
        same(c.call("task.stats")["total"], 1, "tasks")


def test_rules_are_shown_as_they_are_written():
    written = [({"source": "watch", "note": [1.50, None]}, {"type": "notify", "channel": "#dev"}),
               ({"pattern": "^file"}, {"type": "agent", "prompt": "p", "priority": 0, "x": {}})]
    rules = [{"id": "r%d" % i, "trigger": trigger, "action": action}
             for i, (trigger, action) in enumerate(written)]
    long = {"type": "agent", "prompt": "y" * (70 << 10)}
    hook = {"type": "webhook", "url": "http://127.0.0.1:9/y"}
    rules.append({"id": "long", "trigger": {}, "action": {**long, "unknown": 1}})
    rules.append({"id": "secret", "trigger": {}, "action": {**hook, "auth": "key"}})
    with with_rules({"rules": rules}, "--set", "project.webhooks=http://127.0.0.1:9/") as d:
        shown = connect(d).call("automation.status")["rules"]
        same([(r["trigger"], r["action"]) for r in shown], written + [({}, long), ({}, hook)],
             "rules")


@contextlib.contextmanager
def watched(*paths):
    """A project p beside the daemon's root, whose rule tells of every change below the paths."""
    rule = {"id": "any", "trigger": {"source": "watch"},
            "action": {"type": "agent", "prompt": "{{type}} {{payload.path}}"}}
    with Place() as place:
        for folder in ("src",), ("test",), (".aiwg", "working"):
            os.makedirs(place("p", *folder))
        os.symlink(place("p"), place("p", "link"))
        place.config({"daemon": {"heartbeat_interval_seconds": 0.05}, "rules": [rule],
                      "watch": {"enabled": True, "debounce_ms": 20, "paths": list(paths)}}, "p")
        with place.daemon("--project", place("p")) as d:
            trust(d, place("p"))
            yield place, connect(d, place("p"))


def change(path):
    with open(path, "w", encoding="utf-8"):
        pass


def told_of(client, n):
    tasks = [client.heard("event.ruleExecuted")["taskId"] for _ in range(n)]
    return sorted(client.ended(task)["prompt"] for task in tasks)


def test_a_project_that_is_watched_as_a_whole_does_not_tell_of_our_own_files():
    for path, told in (".", "a.ts"), ("../p", "../p/a.ts"), ("link", "link/a.ts"):
        with watched(path) as (place, c):
            beat = place("p", ".aiwg", "daemon", "heartbeat")
            first = os.stat(beat).st_ino
            wait_until(lambda: os.stat(beat).st_ino != first, "another heartbeat")
            change(place("p", ".aiwg", "working", "w.md"))
            change(place("p", "a.ts"))
            same(told_of(c, 1), ["file.create " + told], "what is told")
            same(c.call("task.stats")["total"], 1, "tasks")


def test_watched_paths_are_told_without_what_says_nothing():
    for path in "./src/", ".//src/.", "././src":
        with watched(path) as (place, c):
            change(place("p", "src", "a.ts"))
            same(told_of(c, 1), ["file.create src/a.ts"], path)


def test_what_the_original_watches_by_default_is_read_as_it_means_it():
    with watched({"path": ".aiwg/", "ignore": ["*.tmp", "plans/**", "drafts"]},
                 {"path": "test/", "extensions": [".test.ts", ".test.js"]}) as (place, c):
        for folder in "plans", "old-drafts":
            os.mkdir(place("p", ".aiwg", folder))
            change(place("p", ".aiwg", folder, "x.md"))
        for name in "x.tmp", "x.tmp2", "x.md":
            change(place("p", ".aiwg", name))
        same(told_of(c, 2), ["file.create .aiwg/plans", "file.create .aiwg/x.md"], "of .aiwg")
        for name in "a.js", "test.js", "a.test.js":
            change(place("p", "test", name))
        same(told_of(c, 1), ["file.create test/a.test.js"], "of test")
        same(c.call("task.stats")["total"], 3, "tasks")


def test_rules_are_switched_off_and_on():
    with with_rules({**RULES, "rules": RULES["rules"][:1]}) as d:
        c = connect(d)
        same(c.call("automation.disable", {"ruleId": "changed"}),
             {"enabled": False, "success": True}, "answer")
        same(c.call("automation.status")["rules"][0]["enabled"], False, "rule")
        same(c.call("automation.enable", {"ruleId": "changed"}),
             {"enabled": True, "success": True}, "answer")
        same(c.call("automation.disable"), {"enabled": False, "success": True}, "answer")
        same(c.call("automation.status")["enabled"], False, "engine")
        same(c.call("automation.enable", {}), {"enabled": True, "success": True}, "answer")
        for method in "automation.enable", "automation.disable":
            same(c.refused(method, {"ruleId": "nobody"}), (-32602, "Rule not found: nobody"),
                 method)
        touch(d, "b.c")
        c.heard("event.taskCompleted")


def test_sighup_reads_rules_again_and_keeps_them_when_it_cannot():
    with with_rules(RULES, announced=["resembles", "daemon.json:1: "]) as d:
        c = connect(d)
        d.place.config({"rules": RULES["rules"][:1]})
        d.signal(signal.SIGHUP)
        wait_until(lambda: c.call("automation.status")["ruleCount"] == 0, "another file")
        trust(d)
        same(c.call("automation.status")["ruleCount"], 1, "the new rules")
        same(c.call("daemon.status")["subsystems"]["file_watcher"], {"enabled": False}, "watcher")
        d.place.config("{")
        d.signal(signal.SIGHUP)
        wait_until(lambda: b"could not read project settings" in d.log(), "a complaint")
        same(c.call("automation.status")["ruleCount"], 1, "rules")


# ---- the end ----


def test_a_stop_waits_neither_for_a_stubborn_agent_nor_for_idle_clients():
    with Place() as place:
        # An agent's time at a stop is its own; that of calls is not what ends it.
        with place.daemon("--set", "limits.stop_time=3600") as d:
            c = connect(d)
            connect(d).call("ping")
            task = c.submit("stubborn")
            pid = c.heard("event.taskStarted", task)["pid"]
            begun = time.monotonic()
            d.signal(signal.SIGTERM)
            same(d.wait_exit(), 0, "exit status")
            note("a stop with a stubborn agent: %.1f s" % (time.monotonic() - begun))
            check(not os.path.exists("/proc/%d" % pid), "the agent still runs")
        with place.daemon() as d:
            t = connect(d).call("task.get", {"taskId": task})
            same((t["state"], t["error"]), ("failed", "Killed during shutdown"), "task")


def test_a_forced_stop_kills_at_once_and_what_waits_waits_on():
    with Place() as place:
        with place.daemon("--set", "tasks.project_parallel=1") as d:
            c = connect(d)
            running, queued = c.submit("stubborn"), c.submit("later")
            pid = c.heard("event.taskStarted", running)["pid"]
            same(c.call("daemon.stop", {"force": True}), {"stopping": True}, "answer")
            same(d.wait_exit(5), 0, "exit status")
            check(not os.path.exists("/proc/%d" % pid), "the agent still runs")
        with place.daemon() as d:
            c = connect(d)
            same(c.ended(running)["state"], "failed", "what ran")
            same(c.ended(queued)["result"], "[-p][--][later]", "what waited")


def test_sighup_reads_a_projects_limits_again():
    with Place() as place:
        with place.daemon() as d:
            c = connect(d)
            place.config({"daemon": {"max_parallel_actions": 7}})
            d.signal(signal.SIGHUP)
            wait_until(lambda: c.call("daemon.status")["subsystems"]["supervisor"]
                       ["maxConcurrency"] == 7, "the new limit")


def test_a_reload_reports_what_is_wrong_with_a_projects_settings():
    with Place() as place:
        with place.daemon(announced=["daemon.json:2: "]) as d, d.connect() as k:
            for text, states in (('{\n"daemon": oops}', ["invalid"]),
                                 ('{"rules": [\n{"id": "late", "trigger": {"type": "never"}}]}', ["invalid", "applied"])):
                place.config(text)
                told = k.call("daemon.reload")["settings"]
                same([(s["key"], s["state"]) for s in told], [(".aiwg/daemon.json", s) for s in states], "%r" % told)
                check(told[0]["reason"].startswith(place("root", ".aiwg", "daemon.json") + ":2: "), "%r", told)
            place.config({"rules": [{"id": "often", "trigger": {"type": "event", "event_type": "x"},
                                     "action": {"type": "agent", "prompt": "x"}}]})
            held = "; run `koine project trust` to activate the project's rules"
            same(k.call("daemon.reload")["settings"],
                 [{"key": ".aiwg/daemon.json", "state": "applied", "reason": place("root") + held}], "a rule")
            same(k.call("daemon.reload")["settings"], [], "no change")


def test_a_reload_that_raises_a_projects_limit_starts_what_waits():
    with Place() as place:
        place.config({"daemon": {"max_parallel_actions": 1}})
        with place.daemon() as d, d.connect() as k:
            c = connect(d)
            first, second = c.submit("sleep"), c.submit("sleep")
            c.heard("event.taskStarted", first)
            place.config({"daemon": {"max_parallel_actions": 2}})
            k.call("daemon.reload")
            c.heard("event.taskStarted", second)


# ---- the page ----


def transcript():
    with open(TRANSCRIPT, encoding="utf-8") as file:
        return json.load(file)["steps"]


def shown(step):
    lines = ["%s> %s\n" % (step["on"], step["send"])] if "send" in step else []
    return "".join(lines + ["%s< %s\n" % (step["on"], line) for line in step["lines"]])


def test_the_page_shows_the_transcript():
    page = read(PAGE)
    for part in sorted({s["part"] for s in transcript()}):
        text = "".join(shown(s) for s in transcript() if s["part"] == part)
        check("```\n%s```\n" % text in page, "the page shows something else for %r", part)


def without_what_varies(text):
    text = re.sub(r'("(?:pid|duration)":)\d+', r"\1N", text)
    return ISO.sub("TIME", text)


def test_the_transcript_is_what_happens():
    for part in sorted({s["part"] for s in transcript()}):
        with served() as d:
            on = {}
            for step in (s for s in transcript() if s["part"] == part):
                if step["on"] not in on:
                    on[step["on"]] = connect(d)
                c = on[step["on"]]
                if "send" in step:
                    c.send(step["send"].encode() + b"\n")
                for line in step["lines"]:
                    same(without_what_varies(c.read_line().decode()), without_what_varies(line),
                         "after %r" % step.get("send"))


def test_the_page_names_every_parameter():
    page = read(PAGE)
    with Daemon() as d:
        found = {m["name"]: m for m in d.connect().call("rpc.discover")["methods"]}
    for name in METHODS:
        part = page.partition("**`%s`**" % name)[2].partition("\n**`")[0]
        check(part, "%s is not on the page", name)
        for p in found[name]["params"]:
            check("`%s`" % p["name"] in part, "%s of %s is not on the page", p["name"], name)


if __name__ == "__main__":
    main(globals())
