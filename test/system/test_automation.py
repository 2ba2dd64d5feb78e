"""Rules of the settings in a real daemon: once an occurrence whatever restarts, files, events."""
import json
import os
import re
import signal
import subprocess
import time
from datetime import datetime, timezone

from harness import KOINE, SERVER, Daemon, Folder, check, main, request, run_koined, same, wait_until
from test_chat_cli import Running, of


def settings(folder, text):
    path = folder("koine.conf")
    with open(path, "w") as f:
        f.write(text)
    return path


def shifted(to):
    """The offset at which the daemon's clock shows that time now."""
    return int((to.timestamp() - time.time()) * 1000)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def prompts(d):
    with d.connect() as c:
        return sorted(t["prompt"] for t in c.call("task.list", {"limit": 1000}))


def rules(d):
    with d.connect() as c:
        return {r["rule"]: r for r in c.call("automation.rules")["rules"]}


def rules_ready(d):
    """They are listed before they act: what happens until then is none of theirs."""
    wait_until(lambda: b"rule state loaded" in d.log(), "the rules")


def daemon(folder, config, offset_ms, **opts):
    # No agent of the machine's own shall answer.
    return Daemon("--config", config, root=folder.path, env={"PATH": "/usr/bin:/bin"}, clock=offset_ms / 1000, **opts)


def sleep_until(moment):
    while time.time() < moment:
        time.sleep(min(0.001, max(0.0, moment - time.time())))


def test_a_restart_around_the_minute_fires_once():
    with Folder() as folder:
        config = settings(folder, "[rule tick]\ncron=* * * * *\nprompt=at {{payload.time}}\n")
        minute = at("2026-06-01T12:00:00")
        want = []
        with daemon(folder, config, shifted(minute) - 10 * 1000) as d:
            wait_until(lambda: "tick" in rules(d), "the rule")
        for i, late in enumerate((-0.02, 0.0, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06)):
            moment = at("2026-06-01T12:%02d:00" % (i + 1))
            want.append("at 2026-06-01T12:%02d:00.000Z" % (i + 1))
            offset = shifted(moment) - 1500
            full = moment.timestamp() - offset / 1000
            with daemon(folder, config, offset) as d:
                sleep_until(full + late)
            with daemon(folder, config, offset) as d:
                wait_until(lambda: len(prompts(d)) >= len(want), "occurrence %s" % moment)
            with daemon(folder, config, offset) as d:
                wait_until(lambda: rules(d)["tick"]["next_at"], "the rule")
                same(prompts(d), want, "tasks")


def test_killed_around_the_minute_it_never_fires_twice():
    with Folder() as folder:
        config = settings(folder, "[rule tick]\ncron=* * * * *\nprompt=at {{payload.time}}\n")
        for i, late in enumerate((0.0, 0.005, 0.02, 0.08)):
            offset = shifted(at("2026-06-01T12:%02d:00" % (i + 1))) - 1500
            full = at("2026-06-01T12:%02d:00" % (i + 1)).timestamp() - offset / 1000
            with daemon(folder, config, offset, exit_status=-9) as d:
                sleep_until(full + late)
                d.signal(signal.SIGKILL)
                d.wait_exit()
        with daemon(folder, config, offset) as d:
            wait_until(lambda: rules(d)["tick"]["next_at"], "the rule")
            got = prompts(d)
            same(len(got), len(set(got)), "tasks, each once")


def test_once_when_summer_begins_and_when_it_ends():
    cases = (("2026-03-29T01:00:00", "the first moment after the gap"),
             ("2026-10-25T00:30:00", "the first of the two"))
    for moment, what in cases:
        with Folder() as folder:
            config = settings(folder, "[rule nightly]\ncron=30 2 * * *\nzone=Europe/Berlin\n"
                              "prompt=at {{payload.time}}\n")
            want = ["at %s.000Z" % moment]
            # A server's first start makes its tables, which takes longer.
            offset = shifted(at(moment)) - (10000 if SERVER else 1500)
            with daemon(folder, config, offset) as d:
                wait_until(lambda: prompts(d) == want, what)
            # The same hour again, as the clock shows it.
            with daemon(folder, config, offset + 3600 * 1000 - 3000) as d:
                wait_until(lambda: rules(d)["nightly"]["next_at"], "the rule")
                start = time.time()
                wait_until(lambda: time.time() > start + 3, "the hour to pass")
                same(prompts(d), want, what)


def test_a_rule_that_cannot_be_is_told_and_the_others_act():
    with Folder() as folder:
        said = folder("said")
        config = settings(folder, "\n".join((
            "[rule good]", "event=memory.*", "command=echo $KOINE_EVENT_TYPE >> %s" % said,
            "[rule broken]", "event=x", "condition1=payload.a like b", "prompt=x",
            "[rule twice]", "event=x", "cron=@daily", "prompt=x",
            "[rule late]", "cron=61 * * * *", "prompt=x", "")))
        shown = run_koined("--check", "--config", config, "--root", folder.path).stdout.decode()
        for line in ("would run     good (event)  ok",
                     "would run     broken  error: %s:4: condition1: unknown operator 'like'" % config,
                     "would run     twice  error: %s:8: set exactly one of 'cron'" % config,
                     "would run     late  error: %s:12: cron: minute '61'" % config,
                     "koined: can start"):
            check(line in shown, "no '%s' in %s", line, shown)
        with Daemon("--config", config, root=folder.path,
                    announced=["rule 'broken': condition1: unknown operator", "rule 'twice': set exactly one of 'cron'",
                               "rule 'late': cron: minute '61'"]) as d:
            rules_ready(d)
            same(list(rules(d)), ["good"], "rules")
            with d.connect() as c:
                c.call("memory.add", {"content": "something"})
            wait_until(lambda: os.path.exists(said) and open(said).read() == "memory.added\n",
                       "the command")
            wait_until(lambda: b"rule fired  rule=good" in d.log(), "its end")


def test_a_project_is_no_longer_than_a_path():
    with Daemon() as d, d.connect() as c:
        for method in "automation.disable", "automation.enable":
            answer = json.loads(c.call_text(request(method, json.dumps({"project": "/p" * 35000}))))
            same(answer["error"]["code"], -32602, "code")
            check("project" in answer["error"]["message"], "%r", answer)
            same(c.call(method, {"project": "/" + "p" * 2047})["success"], True, method)


def test_unknown_keys_are_slips():
    with Folder() as folder:
        config = settings(folder, "[rule x]\nevents=x\n")
        done = run_koined("--check", "--config", config, "--root", folder.path)
        check(done.returncode != 0, "it would start")
        check(b"koine.conf:2: unknown setting 'events' in [rule x]" in done.stderr + done.stdout,
              "%r", done.stderr)


def test_files_a_folder_that_goes_and_comes_back():
    with Folder() as folder:
        watched = folder("src")
        os.mkdir(watched)
        config = settings(folder, "[rule files]\nwatch=%s\nextensions=.c\ndebounce=20\n"
                          "prompt={{payload.event_type}} {{payload.path}}\n" % watched)

        def write(name):
            with open(os.path.join(watched, name), "w") as f:
                f.write("x")
        with Daemon("--config", config, root=folder.path, env={"PATH": "/usr/bin:/bin"},
                    announced=["rule suspended"]) as d:
            rules_ready(d)
            write("a.c")
            wait_until(lambda: prompts(d) == ["create %s/a.c" % watched], "a file that is written")
            os.unlink(os.path.join(watched, "a.c"))
            wait_until(lambda: "delete %s/a.c" % watched in prompts(d), "a file that is gone")
            os.rmdir(watched)
            wait_until(lambda: b"rule suspended" in d.log(), "word of it")
            os.mkdir(watched)
            wait_until(lambda: b"rule resumed" in d.log(), "the folder")
            write("b.c")
            wait_until(lambda: "create %s/b.c" % watched in prompts(d), "another file")
            same(len(prompts(d)), 3, "tasks")


def test_settings_are_read_again():
    with Folder() as folder:
        config = settings(folder, "[rule a]\nevent=x\nprompt=x\n")
        with Daemon("--config", config, root=folder.path) as d:
            wait_until(lambda: list(rules(d)) == ["a"], "the rule")
            settings(folder, "[rule b]\nevery=1h\nnotify=hello\n")
            d.signal(signal.SIGHUP)
            wait_until(lambda: list(rules(d)) == ["b"] and rules(d)["b"]["next_at"], "the other")


def test_how_often_it_fired_is_known_over_a_restart():
    with Folder() as folder:
        config = settings(folder, "[rule greet]\nevent=task.submitted\ncommand=true\n")
        for want in (1, 2):
            with Daemon("--config", config, root=folder.path) as d, d.connect() as c:
                wait_until(lambda: "greet" in rules(d) and
                           rules(d)["greet"]["fired"] == want - 1, "what is known")
                wait_until(lambda: b'"result"' in c.call_text(
                    request("automation.run", {"rule": "greet"})), "that it is ready")
                wait_until(lambda: rules(d)["greet"]["fired"] == want, "that it fired")
                check(rules(d)["greet"]["fired_at"], "when")


def test_switched_by_hand_it_stays_so():
    with Folder() as folder:
        config = settings(folder, "[rule tick]\nevery=1h\nprompt=by hand\n")
        for round in range(2):
            with Daemon("--config", config, root=folder.path,
                        env={"PATH": "/usr/bin:/bin"}) as d:
                wait_until(lambda: "tick" in rules(d), "the rule")
                if round == 0:
                    with d.connect() as c:
                        c.call("automation.disable", {"ruleId": "tick"})
                        c.call("automation.run", {"rule": "tick"})
                    same(prompts(d), ["by hand"], "tasks")
                wait_until(lambda: not rules(d)["tick"]["enabled"], "the switch")


def test_executions_are_events():
    with Folder() as folder:
        config = settings(folder, "[rule tick]\nevery=1h\ncommand=exit 3\n")
        with Daemon("--config", config, root=folder.path, announced=["status=error"]) as d:
            wait_until(lambda: rules(d)["tick"]["next_at"], "the rule")
            with d.connect() as c:
                c.send(request("automation.run", {"rule": "tick"}) + b"\n")
                answer = json.loads(c.read_line())
                check("status 3" in answer["error"]["message"], "%r", answer)
                wait_until(lambda: [e["data"] for e in c.call("event.list")["events"]
                                    if e["type"] == "rule.failed"] == [
                    {"rule_id": "tick", "event_type": "rule.run", "status": "error",
                     "error": "the command failed with status 3", "exit_status": 3,
                     "duration": c.call("automation.log")["log"][0]["duration"]}], "the event")


def test_the_log_keeps_what_commands_printed():
    with Folder() as folder:
        config = settings(folder, "\n".join((
            "[rule says]", "every=1h", "command=echo one; echo two >&2; exit 3",
            "[rule much]", "every=1h", "command=seq 1 5000; printf 'last\\377'",
            "[rule quiet]", "every=1h", "command=true",
            "[rule dies]", "every=1h", "command=kill -KILL $$", "")))
        seen = None
        for _ in range(2):
            with Daemon("--config", config, root=folder.path, announced=[] if seen else ["status=error"],
                        env={"PATH": "/usr/bin:/bin"}) as d, d.connect() as c:
                wait_until(lambda: len(rules(d)) == 4, "the rules")
                for rule in () if seen else ("says", "much", "quiet", "dies"):
                    c.send(request("automation.run", {"rule": rule}) + b"\n")
                    c.read_line()
                log = c.call("automation.log")["log"]
                same([(e["rule"], e["status"], e["exit_status"], e["signal"]) for e in log],
                     [("says", "error", 3, None), ("much", "command_run", 0, None),
                      ("quiet", "command_run", 0, None), ("dies", "error", None, 9)], "executions")
                says, much, quiet, dies = log
                same((says["output"], says["output_bytes"]), ("one\ntwo\n", 8), "its output")
                check(says["duration"] >= 0, "how long it took")
                check(much["output"].endswith("\n5000\nlast\ufffd"), "the end: %r", much["output"][-20:])
                check(4000 < len(much["output"]) <= 4096 and much["output_bytes"] > 20000, "bounded")
                same((quiet["output"], dies["output"]), (None, None), "nothing")
                same([e["rule"] for e in c.call("automation.log", {"limit": 2})["log"]], ["quiet", "dies"], "a limit")
                same(c.call("automation.log", {"project": "/elsewhere"})["log"], [], "of no project")
                same(len(c.call("automation.log", {"project": ""})["log"]), 4, "of the settings")
                check(seen in (None, log), "the same after a restart")
                seen = log
                shown = subprocess.run([KOINE, "rule", "log"], stdout=subprocess.PIPE,
                                       env=of(d)).stdout.decode()
                check("\n    one\n    two\n" in shown and "    5000\n" in shown, "%r", shown)
                lost = re.findall(r"\n    \(([\d,]+) earlier bytes are not stored\)\n", shown)
                same([int(n.replace(",", "")) for n in lost], [much["output_bytes"] - 4096], "what was not kept")
                same(shown.splitlines()[0].split(), ["TIME", "RULE", "EVENT", "STATUS", "EXIT", "TOOK", "TASK", "ERROR"], "titles")


def asked(c, status="pending"):
    return c.call("approval.list", {"status": status})["approvals"]


def statuses(c):
    return [e["status"] for e in c.call("automation.log")["log"]]


def test_a_rule_that_needs_approval_asks_and_waits():
    with Folder() as folder:
        said = folder("said")
        config = settings(folder, "\n".join((
            "[rule careful]", "event=memory.added", "approval=yes",
            "command=echo done >> %s" % said,
            "[rule trusted]", "event=memory.deleted", "approval=yes",
            "command=echo trusted >> %s" % said,
            "[policy rules]", "verdict=allow", "agent=rule", "tool=rule:trusted", "")))
        with Daemon("--config", config, root=folder.path,
                    announced=["status=error", "koined is stopping"]) as d, d.connect() as c:
            rules_ready(d)
            same(set(rules(d)), {"careful", "trusted"}, "rules")
            c.call("memory.add", {"content": "first"})
            wait_until(lambda: len(asked(c)) == 1, "the question")
            question = asked(c)[0]
            same((question["agent"], question["tool"]), ("rule", "rule:careful"), "asker")
            same((question["input"]["rule"], question["input"]["event"]["type"],
                  question["input"]["command"]),
                 ("careful", "memory.added", "echo done >> %s" % said), "what is asked")
            c.call("approval.decide", {"id": question["id"], "decision": "deny",
                                       "comment": "not now"})
            wait_until(lambda: statuses(c) == ["denied_by_approver"], "the denial")
            check(not os.path.exists(said), "it acted although it was denied")
            second = c.call("memory.add", {"content": "second"})
            wait_until(lambda: len(asked(c)) == 1, "the second question")
            c.call("approval.decide", {"id": asked(c)[0]["id"], "decision": "approve"})
            wait_until(lambda: statuses(c)[-1] == "command_run", "the action")
            same(open(said).read(), "done\n", "what it did")
            # What a policy allows is nobody's to decide.
            c.call("memory.delete", {"memory_id": second["id"]})
            wait_until(lambda: open(said).read() == "done\ntrusted\n", "the trusted rule")
            same(asked(c), [], "questions")
            with Running(of(d), "rule", "run", "careful") as run:
                wait_until(lambda: len(asked(c)) == 1, "the question of a run by hand")
                c.call("approval.decide", {"id": asked(c)[0]["id"], "decision": "approve"})
                done = run.finish()
            same((done.code, done.out), (0, "careful has run\n"), "by hand")
            check("waiting for approval; see koine approvals" in done.err, "%r", done.err)
            c.call("memory.add", {"content": "third"})
            wait_until(lambda: len(asked(c)) == 1, "the third question")
            left = asked(c)[0]["id"]
        # Nobody waits for it any more: it is not left for a human to wonder about.
        with Daemon("--config", config, root=folder.path) as d, d.connect() as c:
            wait_until(lambda: asked(c) == [], "the question to be withdrawn")
            same([a["id"] for a in asked(c, "superseded")], [left], "withdrawn")
            same(open(said).read(), "done\ntrusted\ndone\n", "what was done")


def test_a_command_that_a_stop_ends_warns_nobody():
    with Folder() as folder:
        said = folder("said")
        config = settings(folder, "[rule long]\nevent=memory.added\n"
                                  "command=echo begun >%s; exec sleep 600\n" % said)
        with Daemon("--config", config, "--set", "limits.stop_time=0", root=folder.path) as d:
            rules_ready(d)
            with d.connect() as c:
                c.call("memory.add", {"content": "something"})
            wait_until(lambda: os.path.exists(said), "the command")
            d.stop()
            check(b"info  rule fired  rule=long" in d.log(), "%r", d.log()[-500:])
            check(b'reason="koined is stopping"' in d.log(), "%r", d.log()[-500:])


if __name__ == "__main__":
    main(globals())
