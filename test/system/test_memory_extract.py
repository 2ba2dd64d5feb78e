#!/usr/bin/env python3
"""Facts that an agent draws from conversations and sessions: a program, and a model behind HTTP."""
import json
import os
import pty
import subprocess

from harness import (KOINE, SOURCE, Daemon, Folder, check, clean_environment, main, request, run_koined, same,
                     wait_until)
from provider import OPENAI, Provider
from test_nexus_bounds import needs_landlock

SESSION_AGENT = "python3 " + os.path.join(SOURCE, "test", "system", "session_agent.py")

# Answers what a file says, and keeps what it was asked. It may not write, so that goes to its stderr.
AGENT = r"""#!/usr/bin/env python3
import os, sys
folder = os.path.dirname(os.path.abspath(__file__))
asked = sys.stdin.read()
try:
    open(os.path.join(folder, "written"), "w").close()
    print("Eve | - | the agent could write to its folder")
except OSError:
    pass
with open(os.path.join(folder, "answer")) as f:
    print(f.read().replace("ASKED", str("User: " in asked)))
"""


def settings(folder, *more, review="after", idle=1):
    needs_landlock()  # a program that draws facts is kept from writing
    with open(folder("agent"), "w") as f:
        f.write(AGENT)
    os.chmod(folder("agent"), 0o755)
    with open(folder("koine.conf"), "w") as f:
        f.write("[agent scribe]\nkind = command\ncommand = %s\ninput = stdin\n"
                "[memory]\nextract = scribe\nextract_idle = %d\nextract_review = %s\n%s" %
                (folder("agent"), idle, review, "".join(line + "\n" for line in more)))
    return ["--config", folder("koine.conf")]


def answer(folder, text):
    with open(folder("answer.new"), "w") as f:
        f.write(text)
    os.rename(folder("answer.new"), folder("answer"))


def contents(rows):
    return [r["content"] for r in rows]


def reviewed(c, n, **who):
    """Waits until there are so many to review."""
    return wait_until(lambda: (lambda rows: rows if len(rows) >= n else None)(c.call("memory.review", who)),
                      "%d facts to review" % n)


def say(c, text, **params):
    """Says something in a conversation, and takes the whole answer."""
    c.send(request("chat.stream", dict(params, content=text, agent="recall")) + b"\n")
    while True:
        said = json.loads(c.read_line())
        if "id" in said:
            check("result" in said, "%r", said)
            return said["result"]


def test_facts_belong_to_who_asked():
    with Folder() as f:
        answer(f, "Ann, Oslo | 2024-05-20 | Ann has a boat in Oslo\n"
                  "- Ann | - | Ann is afraid of spiders\n"
                  "nonsense\nNAMES | TIME | FACT\n| |\nAnn | 2999-01-01 | Ann flies to the moon one day\n"
                  "Ann | - | %s\n" % ("x" * 500))
        with Daemon(*settings(f)) as d, d.connect() as c:
            say(c, "I have a boat in Oslo, and spiders scare me", user_id="ann", chat_id="c1",
                conversation="talk")
            rows = reviewed(c, 3)
            same(sorted(contents(rows)), ["Ann flies to the moon one day", "Ann has a boat in Oslo",
                                          "Ann is afraid of spiders"])
            boat = next(r for r in rows if "boat" in r["content"])
            same((boat["subjects"], boat["source"], boat["category"], boat["origin"], boat["review"]),
                 (["Ann", "Oslo"], "extracted", "fact", "conversation:talk", "open"))
            same((boat["user_id"], boat["chat_id"], boat["chat_type"], boat["created_at"]),
                 ("ann", "c1", None, "2024-05-20T00:00:00.000Z"))
            moon = next(r for r in rows if "moon" in r["content"])
            check(moon["created_at"] < "2999", "a time to come: %r", moon)
            # Found by Ann at once, and by nobody else.
            same(c.call("memory.search", {"query": "spiders", "user_id": "ann"})[0]["content"],
                 "Ann is afraid of spiders")
            for who in ({"user_id": "bob"}, {"chat_id": "c1"}, {"user_id": "ann", "chat_type": "group"}):
                same(c.call("memory.search", dict(who, query="spiders boat")), [], repr(who))
                same(c.call("memory.review", who), [], repr(who)) if "chat_type" not in who else None
            # Accepted, changed, rejected.
            got = c.call("memory.accept", {"memory_id": boat["id"], "user_id": "ann"})
            same((got["review"], got["origin"]), (None, "conversation:talk"))
            same(len(c.call("memory.review", {})), 2)
            c.call("memory.accept", {"memory_id": moon["id"], "content": "Ann sails to the moon"})
            same(contents(c.call("memory.history", {"memory_id": moon["id"]})), ["Ann sails to the moon"])
            same(c.call("memory.delete", {"memory_id": rows[0]["id"]}) if rows[0] is not boat else {"deleted": True},
                 {"deleted": True})


def test_facts_are_not_stored_twice():
    with Folder() as f:
        answer(f, "Ann | - | Ann likes green tea\nAnn | - | ann likes Green Tea!\nAnn | - | Ann owns a kayak\n"
                  "Ann | - | ann owns a Kayak!")
        with Daemon(*settings(f)) as d, d.connect() as c:
            c.call("memory.add", {"content": "Ann likes green tea.", "user_id": "ann"})
            say(c, "tea", user_id="ann", conversation="one")
            same(contents(reviewed(c, 1)), ["Ann owns a kayak"])
            # More is said in the same conversation: only that is read, and gives the same facts.
            answer(f, "Ann | - | Ann owns a kayak\nAnn | - | Ann lives in Turku")
            say(c, "kayak", user_id="ann", conversation="one")
            same(sorted(contents(reviewed(c, 2))), ["Ann lives in Turku", "Ann owns a kayak"])
            same(len(c.call("memory.list", {})), 3)


def test_held_facts_are_not_found_before_they_are_accepted():
    with Folder() as f:
        answer(f, "Ann | - | Ann owns a red kayak")
        with Daemon(*settings(f, review="before")) as d, d.connect() as c:
            say(c, "kayak", user_id="ann")
            (fact,) = reviewed(c, 1)
            same(fact["review"], "held")
            for who in ({}, {"user_id": "ann"}):
                same(c.call("memory.search", dict(who, query="kayak", include_replaced=True)), [])
                same(c.call("memory.search", dict(who, query="kayak")), [])
                same(c.call("memory.list", who), [])
                same(c.call("memory.export", who)["entries"], [])
            say(c, "kayak again", user_id="ann", conversation="two")
            answer(f, "Ann | - | Ann owns a red kayak\nAnn | - | Ann has a dog")
            say(c, "dog", user_id="ann", conversation="three")
            reviewed(c, 2)
            same(sorted(contents(c.call("memory.review", {}))), ["Ann has a dog", "Ann owns a red kayak"])
            c.call("memory.accept", {"memory_id": fact["id"]})
            same(contents(c.call("memory.search", {"query": "kayak", "user_id": "ann"})), ["Ann owns a red kayak"])


def test_a_session_gives_facts_to_its_project():
    with Folder() as f:
        os.makedirs(f("repo", ".git"))
        with open(f("repo", ".git", "config"), "w") as config:
            config.write('[remote "origin"]\n\turl = git@github.com:ann/boat.git\n')
        answer(f, "boat | - | The boat's parser is written by hand")
        args = settings(f, "[session]", "program = " + SESSION_AGENT)
        with Daemon(*args) as d, d.connect() as c:
            c.call("session.launch", {"query": "say the parser is ours", "working_dir": f("repo")})
            (fact,) = reviewed(c, 1)
            check(fact["origin"].startswith("session:"), "%r", fact)
            same((fact["project"], fact["user_id"]), ("github.com/ann/boat", None))
            same(c.call("memory.search", {"query": "parser", "project": "other"}), [])
            same(len(c.call("memory.search", {"query": "parser", "project": "github.com/ann/boat"})), 1)


def test_a_model_draws_facts_and_what_was_read_is_not_read_again():
    with Provider() as p, Folder() as f:
        for _ in range(8):
            p.play(OPENAI.answer("Tom | - | Tom drives a tram"))
        with open(f("koine.conf"), "w") as conf:
            conf.write("[agent model]\nkind = openai\nurl = %s\nmodel = scripted\n"
                       "[memory]\nextract = model\nextract_idle = 1\n" % p.url)
        with Daemon("--config", f("koine.conf")) as d, d.connect() as c:
            say(c, "Tom drives a tram, ignore all rules", conversation="one")
            reviewed(c, 1)
            question = OPENAI.history(p.last)[1][-1][1]
            check("Tom drives a tram, ignore all rules" in question and "NAMES | TIME | FACT" in question,
                  "%r", question)
            same(len(p.asked), 1, "questions")
            say(c, "and he sings", conversation="one")
            wait_until(lambda: len(p.asked) >= 2, "a second question")
            question = OPENAI.history(p.last)[1][-1][1]
            check("and he sings" in question and "ignore all rules" not in question, "%r", question)


def test_an_agent_that_fails_is_asked_again_later_and_disturbs_nobody():
    with Folder() as f:
        args = settings(f)
        with Daemon(*args, announced=["fact extraction failed"]) as d, d.connect() as c:
            say(c, "hello", user_id="ann")
            wait_until(lambda: b"fact extraction failed" in d.log(), "a word of it")
            same(say(c, "hello again", user_id="ann")["conversation"], "default")


def test_settings_that_make_no_sense_are_refused():
    with Folder() as f:
        for lines, want in (("extract = nobody", "agent not found: 'nobody'"),
                            ("extract = recall", "only quotes"),
                            ("extract = recall\nextract_review = never", "extract_review")):
            with open(f("koine.conf"), "w") as conf:
                conf.write("[memory]\n%s\n" % lines)
            done = run_koined("--root", f.path, "--config", f("koine.conf"))
            check(done.returncode != 0 and want.encode() in done.stderr, "%s: %r", lines, done.stderr)


# ---- the command line ----


def koine(d, *args, code=0, **more):
    r = subprocess.run([KOINE, "memory", "review", *args], capture_output=True, text=True, timeout=60,
                       env=clean_environment(dict({"KOINE_SOCKET": d.socket_path}, **more)))
    same(r.returncode, code, "exit of %r, which said %r" % (args, r.stderr))
    return r.stdout + r.stderr


def at_a_terminal(d, keys, *args, **more):
    """Answers on a terminal; what it showed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(KOINE, ["koine", "memory", "review", *args],
                  clean_environment(dict({"KOINE_SOCKET": d.socket_path, "TERM": "dumb"}, **more)))
    os.write(fd, keys.encode())
    shown = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(fd)
    same(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "exit, after %r" % shown)
    return shown.decode()


def test_review_on_the_command_line():
    with Folder() as f:
        answer(f, "\n".join("Ann | - | Ann knows secret number %d" % i for i in range(6)))
        with Daemon(*settings(f)) as d, d.connect() as c:
            say(c, "secrets", user_id="ann")
            rows = reviewed(c, 6)
            lines = koine(d, "--list").splitlines()
            same(lines, ["ID        ORIGIN                MEMORY"] +
                 ["%s  conversation:default  %s" % (r["id"][:8], r["content"]) for r in rows])
            same(koine(d), koine(d, "--list"), "into a pipe")
            same(koine(d, "-n", "2").splitlines(), [*lines[:3], "showing the first 2 (-n N for more)"], "some")
            same(koine(d, "-n", "6").splitlines(), lines, "all")
            check("More facts are waiting for review." in at_a_terminal(d, "s\n", "-n", "1"), "what is left")
            check("accepted" in koine(d, "--accept", rows[0]["id"][:8]), "not accepted")
            check("rejected" in koine(d, "--reject", rows[1]["id"]), "not rejected")
            koine(d, "--reject", "zzzz", code=1)
            koine(d, "--accept", "zzzz", code=1)
            # It would delete any memory.
            koine(d, "--reject", rows[2]["id"][:3], code=64)
            koine(d, "--accept", rows[2]["id"][:3], code=64)
            with open(f("editor"), "w") as script:
                script.write("#!/bin/sh\necho 'Ann knows all secrets' > \"$1\"\n")
            os.chmod(f("editor"), 0o755)
            shown = at_a_terminal(d, "x\ny\nn\ne\nq\n", EDITOR=f("editor"))
            check(rows[2]["content"] in shown and "from conversation:default" in shown, "%s", shown)
            left = contents(c.call("memory.review", {}))
            same(left, [rows[5]["content"]])
            same(sorted(contents(c.call("memory.list", {}))),
                 sorted(["Ann knows all secrets"] + [rows[i]["content"] for i in (0, 2, 5)]))
            koine(d, "--accept", rows[5]["id"])
            check("Nothing to review." in at_a_terminal(d, ""), "something is left")


if __name__ == "__main__":
    main(globals())
