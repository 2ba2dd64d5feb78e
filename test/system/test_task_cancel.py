#!/usr/bin/env python3
"""
Cancel leaves no process behind, whatever the agent does not to be found; nor does a time limit, or
a stop. And it hits nobody else.
"""
import os
import signal
import subprocess
import time

from harness import Failure, Skip, check, main, note, request, same, wait_until
from task_world import UNTIL, World, add, dead, end, says, state, until, world
from test_aiwg import connect

# Runs what follows in a process that nobody waits for: forked twice, in a session of its own, with
# nothing open and in another folder. Its arguments still name this world, for the test to see.
DAEMONISE = """#!/usr/bin/env python3
import os, resource, signal, sys, time
how = sys.argv[1].split(",")
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    if "limit" in how:
        hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        resource.setrlimit(resource.RLIMIT_RTTIME, (hard, hard))
    if "deaf" in how:
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
    open(sys.argv[2] + "/up." + str(os.getpid()), "w").close()
    if "bare" in how:
        loop = "trap '' TERM; while :; do sleep 0.05; done"
        os.execve("/bin/sh", ["sh", "-c", loop, sys.argv[2]], {})
    while "leave" in how:
        if os.fork() > 0:
            os._exit(0)
        time.sleep(0.001)
    while "breed" in how:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        time.sleep(0.02)
    time.sleep(600)
os.wait()
"""

AGENTS = {
    "sleeps": "touch $WORLD/up; exec sleep 600",
    "forks": "sleep 600 & (sleep 600 & sleep 600) & touch $WORLD/up; wait",
    "has children in sessions of their own":
        "setsid sleep 600 & setsid sleep 600 & touch $WORLD/up; wait",
    "ignores signals": "trap '' TERM INT HUP QUIT; touch $WORLD/up; while :; do sleep 0.05; done",
    "clears its environment": "env -i setsid sleep 600 & touch $WORLD/up; exec env -i sleep 600",
    "daemonises": "daemonise x $WORLD; sleep 600",
    "daemonises, deaf": "daemonise deaf $WORLD; trap '' TERM; while :; do sleep 0.05; done",
    "daemonises without an environment": "daemonise bare $WORLD; sleep 600",
    "daemonises without an environment, deaf": "daemonise bare,deaf $WORLD; sleep 600",
    "forks and leaves again and again": "daemonise leave,deaf $WORLD; sleep 600",
    "has ever more children": "daemonise breed,deaf $WORLD; sleep 600",
    "ends at once when told, its daemon does not":
        "trap 'exit 0' TERM; daemonise deaf $WORLD; while :; do sleep 0.05; done",
}


class Jungle(World):
    def __enter__(self):
        super().__enter__()
        self.program("daemonise", DAEMONISE)
        return self

    def wait_up(self):
        wait_until(lambda: any(n.startswith("up") for n in os.listdir(self.path)), "the agent")

    def clear(self):
        for name in os.listdir(self.path):
            if name.startswith("up"):
                os.unlink(self(name))

    def gone(self, d, but=()):
        """Nobody is left; the notice must not come before that is so."""
        left = {pid: words for pid, words in self.agents(d).items() if pid not in but}
        same(left, {}, "left")


def each_agent(d, w, c, end_it, agents):
    for name, prompt in agents.items():
        w.clear()
        task = c.submit(prompt)
        try:
            w.wait_up()
            end_it(task)
            w.gone(d)
        except Failure as why:
            raise Failure("%s: %s" % (name, why)) from None


def test_cancel_leaves_no_process_whatever_the_agent_does():
    with Jungle() as w, w.daemon("tasks.interrupt_time=1") as d:
        c = connect(d)

        def cancel(task):
            same(c.call("task.cancel", {"taskId": task}), {"cancelled": True}, "answer")
            c.heard("event.taskCancelled", task)
            same(state(c, task), "cancelled", "state")

        each_agent(d, w, c, cancel, AGENTS)


def test_a_time_limit_leaves_no_process():
    some = ("ignores signals", "daemonises without an environment, deaf", "has ever more children")
    with Jungle() as w, w.daemon("tasks.interrupt_time=1", "tasks.timeout=1") as d:
        c = connect(d)

        def wait(task):
            c.heard("event.taskTimeout", task)
            told = c.heard("event.taskFailed", task)
            same(told["error"], "Task timed out after 1000ms", "error")

        each_agent(d, w, c, wait, {name: AGENTS[name] for name in some})


def test_a_stop_leaves_no_process():
    for force in (True, False):
        with Jungle() as w:
            with w.daemon("tasks.interrupt_time=1", "tasks.project_parallel=20",
                          "limits.stop_time=1") as d:
                c = connect(d)
                tasks = []
                for prompt in AGENTS.values():
                    w.clear()
                    tasks.append(c.submit(prompt))
                    w.wait_up()
                same(c.call("daemon.stop", {"force": force}), {"stopping": True}, "answer")
                same(d.wait_exit(), 0, "exit status")
                same(w.processes(), {}, "left, force %s" % force)
            with w.daemon() as d:
                c = connect(d)
                same({state(c, t) for t in tasks}, {"failed"}, "states")


def test_an_agent_that_hides_from_every_mark_is_held_by_its_cgroup():
    if not os.access("/sys/fs/cgroup/unified/cgroup.procs", os.W_OK) and \
            not os.access("/sys/fs/cgroup/cgroup.procs", os.W_OK):
        raise Skip("no cgroup of version 2 that can be written")
    with Jungle() as w, w.daemon("tasks.interrupt_time=1") as d:
        c = connect(d)
        task = c.submit("daemonise limit,bare,deaf $WORLD; sleep 600")
        w.wait_up()
        c.call("task.cancel", {"taskId": task})
        c.heard("event.taskCancelled", task)
        w.gone(d)


def test_cancel_hits_nobody_else():
    with Jungle() as w, w.daemon() as d:
        c = connect(d)
        other = c.submit("daemonise x $WORLD; echo $$ >$WORLD/pid; exec sleep 600")
        w.wait_up()
        says(w, "pid")
        wait_until(lambda: len(w.agents(d)) == 2, "the other agent")
        others = set(w.agents(d))
        stranger = subprocess.Popen(["sleep", "600"], cwd=w.path)
        try:
            w.clear()
            task = c.submit("daemonise x $WORLD; sleep 600")
            w.wait_up()
            c.call("task.cancel", {"taskId": task})
            c.heard("event.taskCancelled", task)
            same(set(w.agents(d)), others | {stranger.pid}, "alive")
            same(state(c, other), "running", "the other")
        finally:
            stranger.kill()
            stranger.wait()
        c.call("task.cancel", {"taskId": other})
        c.heard("event.taskCancelled", other)


def test_a_cancelled_task_ends_cancelled_however_its_program_exits():
    with world() as (w, d, c):
        for prompt in ("trap 'exit 0' TERM", "trap 'exit 7' TERM",
                       "trap 'echo it broke >&2; exit 1' TERM", "trap 'kill -9 $$' TERM"):
            task = c.submit(prompt + "; touch $WORLD/up; while :; do sleep 0.02; done")
            wait_until(lambda: os.path.exists(w("up")), "the agent")
            c.call("task.cancel", {"taskId": task})
            same(c.heard("event.taskCancelled", task), {"taskId": task}, "event")
            t = c.call("task.get", {"taskId": task})
            same((t["state"], t["error"]), ("cancelled", None), prompt)
            os.unlink(w("up"))


def test_a_cancel_while_the_time_is_over_is_a_cancel():
    """Told to end for its time, it takes long; who cancels meanwhile is not told of a retry."""
    with world("tasks.interrupt_time=30") as (w, d, c):
        k = d.connect()
        prompt = "trap 'echo told >$WORLD/told' TERM; %s" % (UNTIL % "go")
        task = add(k, prompt, project=w("root"), timeout=300, retries=9, retry_delay=1)
        says(w, "told")  # by the first try, or by a later one where a shell is slow to begin
        tried = k.call("task.show", {"id": task})["attempts"]
        same(c.call("task.cancel", {"taskId": task}), {"cancelled": True}, "answer")
        w.touch("go")
        same(end(k, task)["state"], "cancelled", "state")
        same(k.call("task.show", {"id": task})["attempts"], tried, "attempts")


def test_a_cancel_between_two_tries_is_a_cancel():
    with world() as (w, d, c):
        k = d.connect()
        task = add(k, "echo x >>$WORLD/tries; exit 1", project=w("root"), retries=5,
                   retry_delay=600000)
        wait_until(lambda: w.read("tries") and state(c, task) == "queued", "the first try")
        same(c.call("task.cancel", {"taskId": task}), {"cancelled": True}, "answer")
        same(end(k, task)["state"], "cancelled", "state")
        same(c.refused("task.cancel", {"taskId": task})[0], -32001, "again")
        same(w.read("tries"), "x\n", "tries")


def test_a_cancel_as_soon_as_it_is_submitted():
    """In one piece with the submit: it is queued, about to start, or has just started."""
    with world("tasks.project_parallel=4") as (w, d, c):
        for long in (False, True):
            first = c.call("task.stats")["total"]
            prompt = "sleep 600 & sleep 600 # " + "x" * (100000 if long else 0)
            c.send(b"".join(request("task.submit", {"prompt": prompt}, 2 * i) + b"\n" +
                            request("task.cancel", {"taskId": "task-%04d" % (first + i)}, 2 * i + 1)
                            + b"\n" for i in range(30)))
            for _ in range(60):
                c.answer_text()
            for i in range(30):
                c.heard("event.taskCancelled", "task-%04d" % (first + i))
            same(w.agents(d), {}, "left")
        same(c.call("task.stats")["cancelled"], 60, "cancelled")


def test_many_cancel_the_same():
    with world() as (w, d, c):
        task = c.submit("sleep 600")
        many = [connect(d) for _ in range(20)]
        for m in many:
            m.send(request("task.cancel", {"taskId": task}) + b"\n")
        for m in many:
            answer = m.answer_text()
            check('"cancelled":true' in answer or "-32001" in answer, "%r", answer)
        for m in many:
            m.heard("event.taskCancelled", task)
        c.call("ping")
        same(sum(m["method"] == "event.taskCancelled" for m in c.told), 1, "told")


def test_what_one_attempt_left_does_not_go_on_beside_the_next():
    with world() as (w, d, c):
        k = d.connect()
        task = add(k, "[ -e $WORLD/pid ] && exit 0; "
                      "setsid sh -c 'echo $$ >$WORLD/pid; exec sleep 600' </dev/null >/dev/null 2>&1 & "
                      "while [ ! -s $WORLD/pid ]; do :; done; exit 3",
                   project=w("root"), retries=1, retry_delay=1)
        same(end(k, task)["state"], "completed", "state")
        check(dead(int(w.read("pid"))), "what the first attempt left is there")


def test_a_process_that_outlives_its_completed_task_ends_with_the_daemon():
    with Jungle() as w:
        with w.daemon() as d:
            c = connect(d)
            t = c.finished("daemonise x $WORLD; "
                           "while ! ls $WORLD/up.*; do :; done >/dev/null 2>&1; echo done")
            same((t["state"], t["result"]), ("completed", "done\n"), "task")
            same(len(w.agents(d)), 1, "while the daemon runs")
        same(w.processes(), {}, "left")


def test_output_held_open_by_a_daemon_does_not_hold_up_the_end():
    with world() as (w, d, c):
        t = c.finished("setsid sh -c 'touch $WORLD/up; exec sleep 600' & "
                       "while [ ! -e $WORLD/up ]; do :; done; echo done")
        same((t["state"], t["result"]), ("completed", "done\n"), "task")
        same(len(w.agents(d)), 1, "the one that holds it open")


def test_a_program_killed_by_others_is_told():
    with world() as (w, d, c):
        task = c.submit("echo $$ >$WORLD/pid; exec sleep 600")
        os.kill(int(says(w, "pid")), signal.SIGSEGV)
        c.heard("event.taskFailed", task)
        t = c.call("task.get", {"taskId": task})
        check("signal 11" in t["error"], "%r", t)
        until(c, task, "failed")


def test_the_daemon_serves_others_while_it_cancels():
    """A jungle of processes is looked through, but nobody waits for that."""
    with Jungle() as w, w.daemon("tasks.interrupt_time=1", "tasks.project_parallel=10") as d:
        c, other = connect(d), connect(d)
        tasks = [c.submit("for i in 1 2 3 4 5 6 7 8 9 10; do setsid sleep 600 & done; "
                          "trap '' TERM; while :; do sleep 0.05; done") for _ in range(10)]
        wait_until(lambda: len(w.agents(d)) > 100, "the agents")
        slowest = 0.0
        for t in tasks:
            c.send(request("task.cancel", {"taskId": t}) + b"\n")
        for t in tasks:
            c.answer_text()
        while c.call("task.stats")["cancelled"] < 10:
            began = time.monotonic()
            other.call("ping")
            slowest = max(slowest, time.monotonic() - began)
        same(w.agents(d), {}, "left")
        note("slowest ping %.0f ms" % (slowest * 1000))


if __name__ == "__main__":
    main(globals())
