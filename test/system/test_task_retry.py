#!/usr/bin/env python3
"""Retrying tasks that come after others, skipped tasks, and what a stop of koined does to a task."""
import contextlib
import json

import test_task_cli
from harness import check, main, request, same, wait_until
from task_world import UNTIL, World, add, end, world

# Fails until the file is there.
UNLESS = 'test -e "$WORLD/%s"'


def show(k, task, **params):
    return k.call("task.show", {"id": task, **params})


def state(k, task, **params):
    return show(k, task, **params)["state"]


def refused(k, method, params):
    answer = json.loads(k.call_text(request(method, params)))
    check("error" in answer, "%s %r was not refused: %r", method, params, answer)
    return answer["error"]["message"]


@contextlib.contextmanager
def paused(k):
    """Nothing begins meanwhile, so that a task can be added behind one that fails at once."""
    k.call("task.pause")
    yield
    k.call("task.resume")


def test_retry_waits_for_dependencies_and_requeues_what_was_skipped():
    with world() as (w, d, c):
        k = d.connect()
        with paused(k):
            test = add(k, UNLESS % "mended")
            deploy = add(k, 'touch "$WORLD/deployed"', after=[test])
            notify = add(k, 'touch "$WORLD/notified"', after=[deploy])
        same((end(k, test)["state"], end(k, deploy)["state"], end(k, notify)["state"]),
             ("failed", "skipped", "skipped"), "states")
        told = show(k, deploy)
        same((told["skipped"], told["error"], told["attempts"]),
             (test, "dependency %s failed" % test, 0), "why it was skipped")
        why = refused(k, "task.retry", {"id": deploy})
        check(test in why, "%s", why)
        same(state(k, deploy), "skipped", "what was refused")
        # It fails once more: nothing that comes after it may run.
        same(k.call("task.retry", {"id": test})["tasks"], [test, deploy, notify], "queued again")
        same((end(k, test)["state"], end(k, notify)["state"]), ("failed", "skipped"), "again")
        check(not w.read("deployed") and state(k, deploy) == "skipped", "it ran")
        w.touch("mended")
        k.call("task.retry", {"id": test})
        same([end(k, t)["state"] for t in (test, deploy, notify)], ["completed"] * 3, "in the end")
        same(show(k, deploy).get("skipped"), None, "why it was skipped, after it ran")


def test_retry_leaves_what_another_dependency_holds_up():
    with world() as (w, d, c):
        k = d.connect()
        with paused(k):
            one, other = add(k, UNLESS % "one"), add(k, UNLESS % "other")
            both = add(k, "true", after=[one, other])
        same([end(k, t)["state"] for t in (one, other, both)], ["failed", "failed", "skipped"], "first")
        w.touch("one")
        w.touch("other")
        same(k.call("task.retry", {"id": one})["tasks"], [one], "queued with the first")
        same(end(k, one)["state"], "completed", "the first")
        check(other in refused(k, "task.retry", {"id": both}), "the one that failed is not named")
        same(k.call("task.retry", {"id": other})["tasks"], [other, both], "queued with the second")
        same([end(k, t)["state"] for t in (other, both)], ["completed"] * 2, "the end")


def test_retry_of_one_whose_dependency_is_completed_runs_it():
    with world() as (w, d, c):
        k = d.connect()
        a = add(k, "true")
        b = add(k, 'test -e "$WORLD/a-done"', after=[a])
        same((end(k, a)["state"], end(k, b)["state"]), ("completed", "failed"), "first")
        k.call("task.retry", {"id": b})
        same(end(k, b)["state"], "failed", "its dependency is completed: it ran")


def test_retry_of_a_dependency_holds_its_dependents_until_it_ends():
    with world() as (w, d, c):
        k = d.connect()
        with paused(k):
            a = add(k, "exit 1")
            b = add(k, 'touch "$WORLD/ran"', after=[a])
        same((end(k, a)["state"], end(k, b)["state"]), ("failed", "skipped"), "first")
        k.call("task.pause")
        k.call("task.retry", {"id": a})
        same((state(k, a), state(k, b)), ("queued", "queued"), "both wait")
        check("is queued" in refused(k, "task.retry", {"id": b}), "b is queued already")
        k.call("task.resume")
        same((end(k, a)["state"], end(k, b)["state"]), ("failed", "skipped"), "again")
        check(not w.read("ran"), "it ran")


def test_skipped_is_a_state_of_koines_methods_alone():
    with world() as (w, d, c):
        k = d.connect()
        at = {"project": w("root")}
        with paused(k):
            bad = add(k, "exit 3", **at)
            late = add(k, "true", after=[bad], **at)
        same((end(k, bad, **at)["state"], end(k, late, **at)["state"]), ("failed", "skipped"), "wait")
        find = lambda s: [t["id"] for t in k.call("task.find", {"state": s, **at})["tasks"]]
        same((find("failed"), find("skipped")), ([bad], [late]), "filters")
        same(c.call("task.get", {"taskId": late})["state"], "failed", "aiwg's state")
        same({t["id"] for t in c.call("task.list", {"state": "failed"})}, {bad, late}, "aiwg's list")
        same(c.call("task.stats")["failed"], 2, "stats")
        check("skipped" not in c.call("task.get", {"taskId": late}), "aiwg has its thirteen members")
        same(c.heard("event.taskFailed", late), {"taskId": late, "error": "dependency %s failed" % bad}, "aiwg's event")
        same([e["type"] for e in k.call("event.list")["events"] if e.get("run_id") == late],
             ["task.queued", "task.failed"], "events")


def test_skipped_after_a_kill():
    with World() as w:
        with w.daemon() as d, d.connect() as k:
            with paused(k):
                bad = add(k, "exit 3")
                late = add(k, "true", after=[bad])
            same((end(k, bad)["state"], end(k, late)["state"]), ("failed", "skipped"), "before")
        with w.daemon() as d, d.connect() as k:
            same(state(k, late), "skipped", "after a restart")
            k.call("task.retry", {"id": bad})
            same((end(k, bad)["state"], end(k, late)["state"]), ("failed", "skipped"), "retried")


def test_a_stop_requeues_what_may_be_retried_and_does_not_count_the_attempt():
    with World() as w:
        with w.daemon("limits.stop_time=1") as d, d.connect() as k:
            again = add(k, 'echo begun >>"$WORLD/begun"; ' + UNTIL % "go", retries=1)
            behind = add(k, "true", after=[again])
            once = add(k, "sleep 600")
            for task in again, once:
                wait_until(lambda task=task: show(k, task)["pid"], "it runs")
            wait_until(lambda: w.read("begun"), "it has begun")
        for n in (2, 3):
            with w.daemon("limits.stop_time=1") as d, d.connect() as k:
                wait_until(lambda n=n: w.read("begun").count("begun") == n, "it runs again")
                told = show(k, again)
                same((told["state"], told["attempts"], told["max_attempts"]), ("running", 1, 2), "attempts")
                same((told["exit_status"], told["signal"]), (None, None), "how the stopped attempt ended")
                same((state(k, once), show(k, once)["error"]), ("failed", "Killed during shutdown"), "once")
                same(state(k, behind), "queued", "what comes after it")
        w.touch("go")
        with w.daemon() as d, d.connect() as k:
            same((end(k, again)["state"], end(k, behind)["state"]), ("completed", "completed"), "the end")
            same(show(k, again)["attempts"], 1, "attempts that count")


def test_a_forced_stop_requeues_too():
    with World() as w:
        with w.daemon() as d, d.connect() as k:
            again = add(k, UNTIL % "go", retries=1)
            wait_until(lambda: show(k, again)["pid"], "it runs")
            k.call("daemon.stop", {"force": True})
            d.wait_exit()
        w.touch("go")
        with w.daemon() as d, d.connect() as k:
            same(end(k, again)["state"], "completed", "the end")


def test_koine_retries_several_and_shows_what_was_skipped():
    with test_task_cli.World() as w:
        w("pause")
        a = w.add("test -e mended")
        b = w.add("touch deployed", "--after", a)
        w("resume")
        w("wait", b, code=1)
        check("skipped" in w("list").out, "%r", w("list").out)
        same(w("list", "--state", "skipped", "--json").out.count('"id"'), 1, "filter")
        shown = w("show", b).out
        check("skipped: dependency %s failed" % a in shown, "%s", shown)
        check("was skipped: dependency %s failed" % a in w("wait", b, code=1).err, "wait")
        check(a in w("retry", b, code=1).err, "the refusal names the dependency")
        w.touch("mended")
        same(w("retry", b, a).out.split("\n"), ["%s queued" % a, "%s queued" % b, ""], "retry")
        w("wait", a, b)


def test_a_refused_retry_names_the_task_to_retry():
    with world() as (w, d, c):
        k = d.connect()
        with paused(k):
            first = add(k, UNLESS % "mended", group="g")
            second = add(k, "true", after=[first])
            third = add(k, "true", after=[second])
        same(end(k, third)["state"], "skipped", "the last")
        same(refused(k, "task.retry", {"id": third}),
             "Task %s cannot run: dependency %s failed; retry %s first" % (third, second, first), "a chain")
        k.call("task.clean", {"group": "g"})
        same(refused(k, "task.retry", {"id": second}),
             "Task %s cannot run: dependency %s failed, and %s was deleted" % (second, first, first), "a dependency that is gone")


if __name__ == "__main__":
    main(globals())
