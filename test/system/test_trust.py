#!/usr/bin/env python3
"""What somebody else has made: a store, and a project's files. Nothing of it acts by itself."""
import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess

from ash_client import RPCError
from harness import (KOINE, Skip, check, clean_environment, main, only_in_a_file, request,
                     run_koined, same, wait_until)
from task_world import World, add, end
from test_aiwg import connect, trust
from test_ash import Ash

STRANGER = 54321


def sql(w, text, *values):
    only_in_a_file("it changes the store")
    with sqlite3.connect(w("root", "koine.db")) as db:
        db.execute(text, values)
    db.close()


def run(w, *args, status=0):
    env = clean_environment({"KOINE_SOCKET": w("root", "koine.sock")})
    done = subprocess.run([KOINE, *args], capture_output=True, env=env, stdin=subprocess.DEVNULL)
    same(done.returncode, status, "exit status of koine %s (%r)" % (" ".join(args), done.stderr))
    return done


def koine(w, *args, status=0):
    return run(w, *args, status=status).stdout.decode()


def said_by(w, *args):
    done = run(w, *args)
    return (done.stdout + done.stderr).decode()


# ---- a store ----


def test_a_tasks_environment_is_read_to_its_end_and_no_further():
    with World() as w:
        with w.daemon() as d, d.connect() as k:
            tasks = [add(k, "env", project=w("root"), delay=3600000, env={"A": "1"})
                     for _ in range(3)]
        # The last NUL is missing; there is none at all; there is nothing else.
        for task, env in zip(tasks, (b"A=1\0B=" + b"x" * 4000, b"C=3", b"\0\0\0")):
            sql(w, "UPDATE task SET env = ?, not_before_ms = 0 WHERE id = ?", env, task)
        with w.daemon() as d, d.connect() as k:
            shown = [end(k, task, project=w("root")) and
                     k.call("task.show", {"id": task})["result"].splitlines() for task in tasks]
            check("B=" + "x" * 4000 in shown[0] and "A=1" in shown[0], "%r", shown[0])
            check("C=3" in shown[1], "%r", shown[1])
            d.alive()


def test_numbers_that_no_store_of_ours_has_are_no_index():
    with World() as w:
        with w.daemon() as d, d.connect() as k:
            add(k, "env", project=w("root"), delay=3600000)
        for column, value in ("state", -1), ("n_after", -5), ("n_after", 1 << 40):
            sql(w, "UPDATE task SET state = 0, n_after = 0")
            sql(w, "UPDATE task SET %s = ?" % column, value)
            done = run_koined("--root", w("root"))
            check(done.returncode == 69 and b"contains an invalid task row" in done.stderr,
                  "%r", done)
        sql(w, "UPDATE task SET state = 0, n_after = 0")
        with w.daemon() as d:
            d.alive()


def test_a_store_of_another_user_is_refused():
    only_in_a_file("its owner is a file's")
    if os.geteuid() != 0:
        raise Skip("only root can give a file away")
    with World() as w:
        with w.daemon() as d:
            d.alive()
        os.chown(w("root", "koine.db"), STRANGER, STRANGER)
        for args in (), ("--check",):
            done = run_koined(*args, "--root", w("root"))
            said = done.stdout + done.stderr
            same(done.returncode, 69, "exit status")
            check(b"belongs to uid 54321; run koine store adopt to take it over" in said,
                  "%r", said)
        same(os.stat(w("root", "koine.db")).st_uid, STRANGER, "owner")


def test_a_store_that_others_could_read_is_ours_alone():
    only_in_a_file("its permissions are a file's")
    with World() as w:
        with w.daemon() as d:
            d.alive()
        os.chmod(w("root", "koine.db"), 0o644)
        with w.daemon() as d:
            d.alive()
            for name in "koine.db", "koine.db-wal", "koine.db-shm":
                same(stat.S_IMODE(os.stat(w("root", name)).st_mode), 0o600, name)


def test_outputs_in_a_folder_of_another_user_are_refused():
    only_in_a_file("the folder is beside the file")
    if os.geteuid() != 0:
        raise Skip("only root can give a folder away")
    with World() as w:
        os.mkdir(w("root", "koine.db.tasks"))
        os.chown(w("root", "koine.db.tasks"), STRANGER, STRANGER)
        done = run_koined("--root", w("root"))
        check(b"cannot use the folder" in done.stderr and done.returncode == 69, "%r", done)


def test_an_adopted_store_has_all_and_does_nothing():
    only_in_a_file("a file is adopted")
    with World() as w:
        with w.daemon("tasks.project_parallel=1", exit_status=-9) as d, d.connect() as k:
            k.call("memory.add", {"content": "kept"})
            running = add(k, "touch $WORLD/up; [ -e $WORLD/again ] || exec sleep 600",
                          project=w("root"), retries=3)
            queued = add(k, "touch $WORLD/ran", project=w("root"))
            wait_until(lambda: os.path.exists(w("up")), "the first task")
            os.unlink(w("up"))
            w.touch("again")
            d.signal(9)
            d.wait_exit()
        sql(w, "INSERT INTO approval_grant (id, denies, created_ms, expires_ms, uses, tool)"
               " VALUES ('g', 0, 1, 0, -1, '*')")
        sql(w, "INSERT INTO rule (name, fired_ms, enabled) VALUES ('x', 0, 1)")
        sql(w, "INSERT INTO memory_index VALUES ('all', '', printf('%032d', 0), 1, 0, 1, 1, 1)")
        if os.geteuid() == 0:
            for name in os.listdir(w("root")):
                if name.startswith("koine.db"):
                    os.chown(w("root", name), STRANGER, STRANGER)
        said = koine(w, "store", "adopt", w("root", "koine.db"))
        check("Held 2 tasks" in said and "1 grants" in said, "%r", said)
        check(os.path.exists(w("root", "koine.db.theirs")), "the old one is gone")
        same((os.stat(w("root", "koine.db")).st_uid,
              stat.S_IMODE(os.stat(w("root", "koine.db")).st_mode)), (os.geteuid(), 0o600), "file")
        with contextlib.closing(sqlite3.connect(w("root", "koine.db"))) as db:
            same(db.execute("SELECT count(*) FROM memory_index").fetchone(), (0,), "index files")
        with w.daemon() as d, d.connect() as k:
            same([m["content"] for m in k.call("memory.list")], ["kept"], "memories")
            same([(t["state"], t["held"]) for t in k.call("task.find")["tasks"]],
                 [("queued", True)] * 2, "tasks")
            same(k.call("approval.grants")["grants"], [], "grants")
            # Another, behind them, runs: those do not.
            end(k, add(k, "true", project=w("root")), project=w("root"))
            check("held" in koine(w, "task", "list", "--project", w("root")), "not shown")
            check(not os.path.exists(w("ran")) and not os.path.exists(w("up")), "one ran")
        # Held they stay, over a restart too.
        with w.daemon() as d, d.connect() as k:
            end(k, add(k, "true", project=w("root")), project=w("root"))
            check(not os.path.exists(w("ran")), "it ran")
            koine(w, "task", "release", queued, "--project", w("root"))
            end(k, queued, project=w("root"))
            check(os.path.exists(w("ran")) and not os.path.exists(w("up")), "which ran?")
            koine(w, "task", "release", queued, "--project", w("root"), status=1)
            connect(d).call("task.cancel", {"taskId": running})


def test_a_store_that_is_in_use_is_not_adopted():
    only_in_a_file("a file is adopted")
    with World() as w, w.daemon() as d:
        koine(w, "store", "adopt", w("root", "koine.db"), status=69)
        koine(w, "store", "adopt", w("root", "nothing.db"), status=69)
        same([n for n in os.listdir(w("root")) if "adopting" in n or "theirs" in n], [], "left")
        d.alive()


# ---- a project ----


def rule(name, action=None, **trigger):
    # Once: what one does must not wake another for ever.
    return {"id": name, "trigger": trigger, "cooldownMs": 3600000,
            "action": action or {"type": "agent", "prompt": "echo %s >>$WORLD/did" % name}}


def clone(w, *rules, watch=(), tasks=()):
    """What a repository may bring along."""
    os.makedirs(w("root", ".aiwg", "daemon"), exist_ok=True)
    with open(w("root", ".aiwg", "daemon.json"), "w") as f:
        json.dump({"rules": rules, "watch": {"enabled": bool(watch), "debounce_ms": 5,
                                            "paths": list(watch)}}, f)
    if tasks:
        with open(w("root", ".aiwg", "daemon", "tasks.json"), "w") as f:
            json.dump({"tasks": [{"id": "task-%04d" % i, "prompt": prompt, "state": "queued",
                                  "agent": "evil", "createdAt": "2026-01-01T00:00:00.000Z"}
                                 for i, prompt in enumerate(tasks)]}, f)


def own_rule(w, *events):
    """A rule of our own settings acts on the same events: when it has, others would have."""
    with open(w("koine.conf"), "w") as f:
        for event in events:
            f.write("[rule own-%s]\nevent = %s\nproject = %s\ncommand = echo own >>%s\n"
                    % (event, event, w("root"), w("own")))
    return w("koine.conf")


def state_of(d, w):
    with d.connect(dialect="koine") as k:
        return {p["folder"]: p for p in k.call("project.list")["projects"]}[w("root")]


def theirs(d):
    rules = connect(d).call("automation.status")["rules"]
    return [r["id"] for r in rules if not r["id"].startswith("own-")]


def test_a_clone_does_nothing_until_it_is_trusted():
    with World() as w:
        clone(w, rule("heard", type="task.completed"), watch=["src"],
              tasks=["echo brought >>$WORLD/did; echo all of it"])
        os.mkdir(w("root", "src"))
        conf = own_rule(w, "task.completed")
        with w.daemon("--config", conf) as d, d.connect() as k:
            check(b"project not trusted, holding its rules" in d.log(), "nothing is said")
            same((state_of(d, w)["state"], state_of(d, w)["held"]), ("untrusted", 1), "state")
            c = connect(d)
            same(theirs(d), [], "rules")
            for method in "automation.enable", "automation.disable":
                same(json.loads(c.call_text(request(method, {"ruleId": "heard"})))["error"],
                     {"code": -32003, "message": "the project is not trusted (try: koine project trust " + w("root") + ")"}, method)
            same(c.call("daemon.status")["subsystems"]["file_watcher"], {"enabled": False}, "watch")
            # The dialect serves, and what our own rules hear, the project's do not.
            same(c.finished("echo mine")["result"], "mine\n", "a task")
            wait_until(lambda: w.read("own"), "our own rule")
            check(not os.path.exists(w("did")), "it acted: %r", w.read("did"))

            shown = koine(w, "project", "trust", w("root"))
            for part in ("rule heard", "task.completed", "echo heard >>$WORLD/did", "watches src",
                         "agent: evil", "prompt: echo brought >>$WORLD/did; echo all of it"):
                check(part in shown, "%r is not shown: %s", part, shown)
            # What was held runs, and its end is what the rule waits for.
            wait_until(lambda: sorted(w.read("did").split()) == ["brought", "heard"], "both")
            same(state_of(d, w)["state"], "trusted", "state")
            check("trusted" in koine(w, "project"), "the list")
        # It stays so, but not for another file.
        with w.daemon("--config", conf) as d:
            same(state_of(d, w)["state"], "trusted", "state")
            same(theirs(d), ["heard"], "rules")
            clone(w, rule("other", type="task.completed"))
            d.signal(signal.SIGHUP)
            wait_until(lambda: state_of(d, w)["state"] == "changed", "another file")
            same(theirs(d), [], "rules")
        with w.daemon("--config", conf) as d:
            same(state_of(d, w)["state"], "changed", "state")
            trust(d)
            same(theirs(d), ["other"], "rules")
            koine(w, "project", "distrust", w("root"))
            same(theirs(d), [], "rules")
            same(state_of(d, w)["state"], "untrusted", "state")


def test_cancel_and_retry_are_no_way_around_a_release():
    with World() as w:
        clone(w, tasks=["echo brought >>$WORLD/did"])
        with w.daemon() as d, d.connect() as k:
            task = k.call("task.find")["tasks"][0]
            params = {"id": task["id"], "project": w("root")}
            k.call("task.cancel", {"taskId": task["id"], "project": w("root")})
            k.call("task.retry", params)
            again = k.call("task.find")["tasks"][0]
            same((again["state"], again["held"]), ("queued", True), "after a retry")
            k.call("task.release", params)
            wait_until(lambda: w.read("did"), "that it runs")


def test_nothing_that_is_shown_passes_for_something_else():
    with World() as w:
        clone(w, {**rule("real\nrule no\x1b[8m", type="task.completed", source="a\nb"),
                  "action": {"type": "agent", "prompt": "tidy\r\n  but may not: \u200b\u202e\x85"}},
              tasks=["x\nheld 2"])
        with w.daemon():
            shown = koine(w, "project", "show", w("root"))
            for part in ("rule real⏎rule no\\x1b[8m", "source: a⏎b", "tidy\\x0d⏎  but may not: \\u200b\\u202e",
                         "prompt: x⏎held 2"):
                check(part in shown, "%r is not shown: %r", part, shown)


def test_only_what_was_looked_at_is_trusted():
    with World() as w:
        clone(w, rule("first", type="task.completed"))
        with w.daemon() as d, d.connect(dialect="koine") as k:
            seen = k.call("project.show", {"folder": w("root")})["digest"]
            clone(w, rule("second", type="task.completed"))
            d.signal(signal.SIGHUP)
            wait_until(lambda: k.call("project.show", {"folder": w("root")})["digest"] != seen,
                       "another file")
            for folder, digest in (w("root"), seen), (w("root"), ""), (w("nowhere"), seen):
                refused(k, "project.trust", {"folder": folder, "digest": digest})
            same(state_of(d, w)["state"], "untrusted", "state")
            # Neither a project's client nor a sandbox can.
            for dialect in "aiwg", "ash", "hld":
                check("project.trust" not in methods_of(d, dialect), dialect)


def test_a_project_that_cannot_be_read_is_listed_by_its_folder():
    with World() as w:
        os.makedirs(w("root", ".aiwg"))
        with open(w("root", ".aiwg", "daemon.json"), "w") as f:
            f.write("{")
        with w.daemon(announced=["could not read project settings"]) as d, d.connect(dialect="koine") as k:
            same([p["folder"] for p in k.call("project.list")["projects"]], [w("root")], "projects")
            clone(w, rule("mended", type="task.completed"))
            d.signal(signal.SIGHUP)
            wait_until(lambda: state_of(d, w)["rules"] == 1, "the file that was mended")
            same([p["folder"] for p in k.call("project.list")["projects"]], [w("root")], "projects")


def test_only_what_is_there_is_distrusted():
    with World() as w:
        clone(w, rule("heard", type="task.completed"))
        with w.daemon() as d, d.connect(dialect="koine") as k:
            trust(d)
            refused(k, "project.distrust", {"folder": w("nowhere")})
            for _ in range(2):
                same(k.call("project.distrust", {"folder": w("root")})["trusted"], False, "trusted")
            events = [e["type"] for e in k.call("event.list", {})["events"]]
            same([e for e in events if e.startswith("project.")],
                 ["project.trusted", "project.distrusted", "project.distrusted"], "events")


def refused(k, method, params):
    k.send(request(method, params) + b"\n")
    answer = json.loads(k.read_line())
    check("error" in answer, "%r", answer)


def methods_of(d, dialect):
    """What answers otherwise than by 'no such method' at a listener with lines."""
    if dialect == "ash":
        try:
            Ash(d).call("project.trust", folder="/", digest="")
        except RPCError as why:
            return [] if why.code == -32601 else ["project.trust"]
        return ["project.trust"]
    with d.connect(dialect=dialect) as c:
        c.send(request("project.trust", {"folder": "/", "digest": ""}) + b"\n")
        answer = json.loads(c.read_line())
        return [] if answer.get("error", {}).get("code") == -32601 else ["project.trust"]


def test_what_koined_runs_trusts_nothing():
    """Not a task's program, however it reaches us: else it could write a project first."""
    with World() as w:
        clone(w, rule("first", type="task.completed"), tasks=["echo held"])
        with w.daemon("approval.agents_decide=no") as d:
            c = connect(d)
            for words in "project trust " + w("root"), "task release task-0000":
                t = c.finished("KOINE_SOCKET=%s %s %s 2>&1; true"
                               % (w("root", "koine.sock"), KOINE, words))
                check("was started by koined" in t["result"], "%r", t)
            same((state_of(d, w)["state"], state_of(d, w)["held"]), ("untrusted", 1), "state")


def test_a_project_hears_of_itself_alone():
    with World() as w:
        os.mkdir(w("other"))
        clone(w, rule("memory", type="memory.added"), rule("done", type="task.completed"),
              rule("asked", type="approval.requested"), rule("any", source="task"))
        conf = own_rule(w, "memory.added", "approval.requested")
        with w.daemon("--config", conf, "--project", w("other")) as d, d.connect() as k:
            trust(d)
            k.call("memory.add", {"content": "of nobody's project"})
            asks = d.connect()  # answered when somebody decides
            asks.send(request("approval.request", {"tool": "Bash", "input": {"command": "x"}})
                      + b"\n")
            end(k, add(k, "true", project=w("other")), project=w("other"))
            wait_until(lambda: w.read("own") == "own\nown\n", "our own rules")
            log = k.call("automation.log", {"project": w("root")})["log"]
            same([e for e in log if not e["rule"].startswith("own-")], [], "what it did")
            connect(d, w("root")).finished("true")
            wait_until(lambda: "done" in w.read("did") and "any" in w.read("did"), "its own")
            check("memory" not in w.read("did") and "asked" not in w.read("did"), "%r",
                  w.read("did"))


HOOKS = {
    "http://127.0.0.1:9/hooks/x": True,
    "https://a.example": True,
    "https://a.example/x?y": True,
    "http://127.0.0.1:9/other": False,
    "http://127.0.0.1:9/hooks/../other": False,
    "http://127.0.0.1:9/hooks/%2e%2E/other": False,
    "http://127.0.0.1:90/hooks/x": False,
    "https://a.example.org/x": False,
    "https://a.example:443@b.example/": False,
    "https://a.example\\@b.example/": False,
}


def test_webhooks_of_a_project_go_where_our_settings_say():
    rules = [rule("hook-%d" % i, {"type": "webhook", "url": url}, type="x")
             for i, url in enumerate(HOOKS)]
    said = "rule 'hook-%d': webhook 'http"
    with World() as w:
        clone(w, *rules)
        for allowed in "", "http://127.0.0.1:9/hooks/  https://a.example":
            good = [bool(allowed) and may for may in HOOKS.values()]
            with w.daemon("project.webhooks=" + allowed, announced=[
                    said % i for i, may in enumerate(good) if not may]) as d:
                if state_of(d, w)["state"] != "trusted":
                    trust(d, kept=len(rules))
                same(theirs(d), ["hook-%d" % i for i, may in enumerate(good) if may], allowed)
                with d.connect(dialect="koine") as k:
                    shown = k.call("project.show", {"folder": w("root")})["rules"]
                    same([r["forbidden"] for r in shown], [not may for may in good], allowed)


def test_of_too_many_rules_the_first_are_used_and_the_rest_is_told():
    names = ["r%d" % i for i in range(300)]
    said = "'rules' has 300 entries; koined uses only the first 256: see project.rules in koine.conf"
    with World() as w:
        clone(w, *(rule(name, type="task.completed" if i in (255, 256) else "x")
                   for i, name in enumerate(names)))
        with w.daemon(announced=[w("root") + "/.aiwg/daemon.json:1: " + said]) as d, \
                d.connect(dialect="koine") as k:
            trust(d)
            same(theirs(d), names[:256], "rules")
            shown = k.call("project.show", {"folder": w("root")})
            same((len(shown["rules"]), shown["left_out"]), (256, 44), "what is shown")
            same((state_of(d, w)["rules"], state_of(d, w)["left_out"]), (256, 44), "in the list")
            for params in {}, {"project": w("root")}:
                rules = k.call("automation.rules", params)
                same((len(rules["rules"]), rules["left_out"]), (256, 44), "automation.rules")
            same(k.call("automation.rules", {"project": "/"})["left_out"], 0, "of another")
            for words in ("project", "show", w("root")), ("project", "list"), ("rule", "list"):
                check("44 rules are ignored" in said_by(w, *words), "koine %s", " ".join(words))
            connect(d).finished("true")
            wait_until(lambda: w.read("did") == "r255\n", "the last of them")
        with w.daemon("project.rules=300") as d, d.connect(dialect="koine") as k:
            same(theirs(d), names, "all rules")
            same(k.call("automation.rules")["left_out"], 0, "left out")
            check("ignored" not in said_by(w, "rule", "list"), "nothing is left out")


def test_projects_do_not_take_each_others_rules():
    with World() as w:
        os.makedirs(w("other", ".aiwg"))
        clone(w, *(rule("a%d" % i, type="x") for i in range(200)))
        with open(w("other", ".aiwg", "daemon.json"), "w") as f:
            json.dump({"rules": [rule("b%d" % i, type="x") for i in range(200)]}, f)
        with w.daemon("--project", w("other")) as d, d.connect(dialect="koine") as k:
            trust(d)
            trust(d, w("other"))
            rules = k.call("automation.rules")["rules"]
            same([len([r for r in rules if r["rule"][0] == x]) for x in "ab"], [200, 200], "rules")


def test_watches_of_a_project_stay_below_it():
    with World() as w:
        for folder in "root/src", "outside", "root-beside":
            os.makedirs(w(folder))
        os.symlink(w("outside"), w("root", "link"))
        clone(w, rule("seen", source="watch"),
              watch=["src", "..", "../root-beside", "link", w("outside")])
        with w.daemon(announced=["outside the project"]) as d:
            trust(d)
            same(d.log().count(b"outside the project"), 4, "complaints")
            for name in "outside/a", "root-beside/b", "c", "root/src/d":
                w.touch(*name.split("/"))
            wait_until(lambda: "seen" in w.read("did"), "its own file")
            with d.connect() as k:
                wait_until(lambda: k.call("automation.log")["log"], "its entry, which follows the command")
                same([e["event"] for e in k.call("automation.log")["log"]], ["file.create"], "log")


if __name__ == "__main__":
    main(globals())
