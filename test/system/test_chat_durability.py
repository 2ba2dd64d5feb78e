#!/usr/bin/env python3
"""
Conversations survive: kill -9 in the middle of a turn, orderly stops in the middle of a
turn.

KOINE_SOAK=1 kills 200 times instead of 10.
"""
import http.client
import os
import random
import shutil
import signal
import sqlite3

from harness import PATIENCE, Daemon, Folder, check, main, note, only_in_a_file, same, wait_until
from nexus_client import Nexus, Refused, Stream, begun, later, result
from provider import LANGUAGES, OPENAI, Provider, agent_flags, model_flags

KILLS = 200 if os.environ.get("KOINE_SOAK") == "1" else 10


def killed(d):
    d.signal(signal.SIGKILL)
    d.wait_exit()


def test_a_turn_that_a_crash_cut_off_is_marked_and_the_next_goes_on():
    for language in LANGUAGES:
        with Folder() as f, Provider() as p:
            gate = p.gate()
            p.play(language.answer("Nice to meet you, Alice!"),
                   language.reply(language.opening, language.text("Your name "),
                                  language.text("is "), gate))
            flags = model_flags(p, language)
            with Daemon(*flags, root=f.path, exit_status=-signal.SIGKILL) as d:
                n = Nexus(d)
                n.says("My name is Alice")
                with Stream(d, "What is my name?") as s:
                    s.until("Your name is ")
                    gate.arrived()
                    # What came is written soon; a crash costs at most the last moments.
                    wait_until(lambda: n.messages()[-1]["content"] == "Your name is ", "the text")
                    wait_until(lambda: written(f, "Your name is "), "the text on disk")
                    killed(d)
            with Daemon(*flags, root=f.path) as d:
                n = Nexus(d)
                messages = n.messages()
                same([(m["role"], m["content"]) for m in messages],
                     [("user", "My name is Alice"), ("assistant", "Nice to meet you, Alice!"),
                      ("user", "What is my name?"), ("assistant", "Your name is ")])
                same([marked(m) for m in messages], [False, False, True, True])
                same(n.count(), 4, "messages")
                p.play(language.answer("Alice."))
                same(n.says("Go on"), "Alice.")
                sent = [t for t in language.history(p.last)[1]]
                check(("assistant", "Your name is ") in sent, "%r", sent)
                same(n.count(), 6, "messages")
                check(n.tokens()["total"] > 0, "no tokens")


def marked(message):
    """Whether a message's turn was interrupted."""
    return message["state"] == "interrupted"


def written(folder, text):
    """Whether the store, as a kill would leave it, has a message of that text."""
    only_in_a_file("it reads the store beside the daemon")
    with Folder() as g:
        for name in os.listdir(folder.path):
            if name.startswith("koine.db") and os.path.isfile(folder(name)):
                shutil.copy(folder(name), g(name))
        db = sqlite3.connect(g("koine.db"))
        try:
            return any(text in row for row in db.execute("SELECT * FROM message"))
        except sqlite3.DatabaseError:
            return False  # copied in the middle of a write
        finally:
            db.close()


def test_what_was_answered_survives_kill_nine():
    random.seed(4)
    known, cut_off = {}, 0  # of each conversation, the messages that were told of
    flags = ["--agent", "recall", *agent_flags("recall", kind="recall", word_delay=1)]
    with Folder() as f:
        for round_ in range(KILLS):
            with Daemon(*flags, root=f.path, exit_status=-signal.SIGKILL) as d:
                n = Nexus(d)
                cut_off += check_loaded(n, known)
                talks = [later(talk, n, "r%dc%d" % (round_, i), known) for i in range(4)]
                before, some = told(known), random.randrange(2, 12)
                wait_until(lambda: told(known) >= before + some, "some answers")
                killed(d)
                for t in talks:
                    check(isinstance(t.exception(PATIENCE), CUT_OFF), "%r", t.exception())
        with Daemon(root=f.path) as d:
            cut_off += check_loaded(Nexus(d), known)
    note("%d kills, %d messages, %d turns marked" % (KILLS, told(known), cut_off))
    check(cut_off > 0, "no kill came in the middle of a turn")


CUT_OFF = (OSError, http.client.HTTPException)


def told(known):
    return sum(map(len, list(known.values())))


def talk(n, id, known):
    """Asks until it is cut off."""
    n.call("create_agent", {"agent_id": id})
    known[id] = []
    for i in range(1000):
        question = "My number is %d. What is my number?" % i
        answer = n.agent(id).says(question)
        known[id] += [("user", question), ("assistant", answer)]


def check_loaded(n, known):
    """Every conversation has all that was told of, and goes on; how many were cut off."""
    cut_off = 0
    for id, want in known.items():
        talk = n.agent(id)
        messages = talk.messages()
        same([(m["role"], m["content"]) for m in messages[:len(want)]], want, "conversation " + id)
        # At most one more turn: it was under way, or had ended and was not told of yet.
        rest = messages[len(want):]
        same([m["role"] for m in rest], ["user", "assistant"][:len(rest)], "the turn cut off")
        check(all(m["state"] in ("interrupted", "done") for m in rest), "%r", rest)
        if rest:
            cut_off += marked(rest[0])
            talk.says("Go on")
            known[id] = talk.said()
    return cut_off


# Turns have some time to end by themselves; here they would not.
# What agents say is cancelled a second before it is over, which must do for their end to be kept.
SOON = ["--set", "limits.stop_time=3"]


def stop(d, n, how):
    if how == "shutdown":
        same(n.call("shutdown"), {"success": True})
    else:
        d.signal(signal.SIGTERM)


def test_an_orderly_stop_keeps_what_came_and_answers():
    for how in ("SIGTERM", "shutdown"):
        with Folder() as f, Provider() as p:
            gate = p.gate()
            p.play(OPENAI.reply(OPENAI.text("half "), gate))
            with Daemon(*model_flags(p), *SOON, root=f.path) as d:
                n = Nexus(d)
                sent = later(n.send, "Hi", "r1")
                gate.arrived()
                wait_until(lambda: n.messages()[-1]["content"] == "half ", "the first word")
                waiting = begun(d, n.send, "and then?", "r2")
                stop(d, n, how)
                same(result(sent), {"content": "half ", "request_id": "r1", "cancelled": True})
                # One that has not begun is told, one way or the other.
                try:
                    same(result(waiting)["content"], "")
                except Refused as error:
                    check(error.message, "no words")
                same(d.wait_exit(), 0, "exit status")
            same(len(p.asked), 1, "times asked")
            with Daemon(*model_flags(p), root=f.path) as d:
                n = Nexus(d)
                same(n.said()[:2], [("user", "Hi"), ("assistant", "half ")])
                p.play(OPENAI.answer("next"))
                same(n.says("go on"), "next")


def test_a_stream_is_answered_at_an_orderly_stop():
    with Provider() as p:
        gate = p.gate()
        p.play(OPENAI.reply(OPENAI.text("half "), gate))
        with Daemon(*model_flags(p), *SOON) as d:
            with Stream(d, "Hi") as s:
                s.until("half ")
                d.signal(signal.SIGTERM)
                r = s.answer()
                same((r["content"], r["stop"]), ("half ", "cancelled"))
                s.client.ended()
            same(d.wait_exit(), 0, "exit status")


def test_a_turn_ends_though_its_listener_closes():
    with Provider() as p, Daemon(*model_flags(p), "--set", "nexus.shutdown=listener") as d:
        gate = p.gate()
        p.play(OPENAI.reply(OPENAI.text("half "), gate, OPENAI.text("and all"), OPENAI.finish(),
                            OPENAI.done))
        n = Nexus(d)
        sent = later(n.send, "Hi")
        gate.arrived()
        same(n.call("shutdown"), {"success": True})
        gate.open()
        same(result(sent)["content"], "half and all")
        d.alive()


def test_shutdown_may_close_only_its_own_listener():
    with Daemon("--set", "nexus.shutdown=listener") as d:
        n = Nexus(d)
        n.says("Hello")
        same(n.call("shutdown"), {"success": True})

        def refused():
            try:
                n.context()
            except (ConnectionError, OSError):
                return True
            return False

        wait_until(refused, "nexus to close")
        d.alive()
        with Stream(d, "What did I say?") as s:
            s.answer()


if __name__ == "__main__":
    main(globals())
