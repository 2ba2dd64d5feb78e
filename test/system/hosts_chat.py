"""Conversations of several hosts: one thing at a time is done in each, wherever it was asked for."""
import contextlib
import os

from harness import Folder, check, same, wait_until
from hosts_work import Later, ask, hosts_of

# It answers slowly, and writes down when.
SLOW = """#!/bin/sh
echo "begin" >>"$FOLDER/journal"
sleep $(cat "$FOLDER/time")
echo "end" >>"$FOLDER/journal"
echo answered
"""


@contextlib.contextmanager
def slow_hosts(server, n):
    """Hosts with that agent, and its folder."""
    with Folder() as f:
        with open(f("slow"), "w") as out:
            out.write(SLOW.replace("$FOLDER", f.path))
        os.chmod(f("slow"), 0o755)
        takes(f, 0.3)
        args = ("--set", "agent.slow.kind=command", "--set", "agent.slow.command=" + f("slow"), "--set", "chat.agent=slow")
        with hosts_of(server, n, args=args) as h:
            yield h, f


def takes(f, seconds):
    with open(f("time"), "w") as out:
        out.write(str(seconds))


def journal(f):
    with open(f("journal")) as file:
        return file.read().split()


def say(node, text):
    return Later(node, "chat.stream", {"conversation": "both", "content": text})


def begun(node, f, text):
    """One that is not refused, as some are while connections come back."""
    n = len(journal(f))
    while True:
        asked = say(node, text)
        wait_until(lambda: asked.answer or len(journal(f)) > n, "the turn")
        if len(journal(f)) > n:
            return asked


def test_turns_of_a_conversation_come_one_after_another(server):
    with slow_hosts(server, 2) as (h, f):
        asked = [say(node, "%d of %s" % (i, node.name)) for i in range(3) for node in h.nodes]
        for a in asked:
            a.join()
        same([a.answer.get("error") for a in asked], [None] * 6, "refusals")
        same(journal(f), ["begin", "end"] * 6, "turns")
        # Each was kept, and ended, in one conversation; and both hosts count the same.
        same(h.sql("SELECT count(*), max(epoch) FROM koine.conversation").strip(), "1|0", "conversations")
        same(h.sql("SELECT state, count(*) FROM koine.turn GROUP BY state").strip(), "1|6", "turns by state")
        same(h.sql("SELECT count(*) FROM koine.message").strip(), "12", "messages")


def test_a_compaction_waits_for_turns_and_they_for_it(server):
    with slow_hosts(server, 2) as (h, f):
        here, there = h.nodes
        takes(f, 0)
        for i in range(5):
            say((here, there)[i % 2], "what I have to say takes many words, " * 20).result()
        takes(f, 0.5)
        n = len(journal(f))
        # All of these at once.
        made = [Later(node, "compact", {"agent_id": "both"}) for node in h.nodes]
        asked = [say(node, "meanwhile at " + node.name) for node in h.nodes]
        for a in made + asked:
            a.join()
        same([a.answer.get("error") for a in made + asked], [None] * 4, "refusals")
        check(any(a.result()["compacted"] for a in made), "%r", [a.result() for a in made])
        done = journal(f)[n:]
        same(done, ["begin", "end"] * (len(done) // 2), "what was done")
        same(h.sql("SELECT count(*), max(epoch) FROM koine.conversation").strip(), "1|0", "conversations")
        same(h.sql("SELECT state, count(*) FROM koine.turn GROUP BY state").strip(), "1|7", "turns by state")
        # What one has compacted, the other counts, too.
        wait_until(lambda: ask(here, "get_tokens", {"agent_id": "both"}) == ask(there, "get_tokens", {"agent_id": "both"}),
                   "the same counts")


def test_a_turn_keeps_its_conversation_though_the_last_could_not_end(server):
    """The server was away when the first ended: giving back what that had takes nothing from the second."""
    with slow_hosts(server, 2) as (h, f):
        here, there = h.nodes
        takes(f, 0)
        say(here, "hello").result()
        takes(f, 1)
        first = say(here, "one")
        wait_until(lambda: len(journal(f)) == 3, "the first turn")
        h.server.stop("immediate")
        first.join()
        check("error" in first.answer, "%r", first.answer)
        takes(f, 4)
        h.server.start()
        second = begun(here, f, "two")
        third = say(there, "three")
        same(second.result()["content"], "answered", "the second answer")
        third.join()
        if "error" in third.answer:
            begun(there, f, "three").result()
        same(journal(f)[-4:], ["begin", "end"] * 2, "turns")
