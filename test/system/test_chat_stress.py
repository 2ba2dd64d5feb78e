#!/usr/bin/env python3
"""
Conversations when everything happens at once, or nothing can be had any more: no disk, no
descriptors. Whatever happens, every call is answered and the next one works.

KOINE_SOAK=1 goes on for longer.
"""
import contextlib
import json
import os
import random
import resource
import signal
import threading

from harness import (PATIENCE, Client, Daemon, Folder, check, children, descriptors, main, note,
                     only_in_a_file, request, same, wait_until)
from nexus_client import Nexus, Refused, Stream, later, nexus_address
from provider import (ANTHROPIC, OPENAI, Provider, Reply, agent_flags, cut, dribble, joined,
                      model_flags, plain)

ROUNDS = 2000 if os.environ.get("KOINE_SOAK") == "1" else 60
THREADS = 8
NAMES = ["a", "b", "c", "default"]


# ---- everything at once ----


def any_reply(language, chance):
    """Mostly an answer, in some way; now and then a failure."""
    def reply(asked):
        good = joined(language.answer("One. ", "Two. ", "Three é.", output=7).steps)
        with chance.lock:
            kind = chance.random.randrange(8)
        return [Reply(good), Reply(dribble(good, 0.002, n=100)), Reply(good[:200], cut),
                plain(500, language.refusal("no")), Reply(cut), Reply(dribble(good, 0.001, n=37)),
                Reply(good), Reply(good[:len(good) // 2])][kind]
    return reply


class Chance:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()


class Crowd:
    """Threads that do anything to a few conversations; each call must be answered."""

    def __init__(self, d, agents):
        self.d = d
        self.agents = agents
        self.n = Nexus(d)
        self.answers = {}
        self.lock = threading.Lock()

    def run(self, seed):
        r = random.Random(seed)
        for _ in range(ROUNDS):
            act = r.choice(["send"] * 6 + ["stream"] * 4 + ["leave"] * 2 + ["cancel"] * 6 +
                           ["count"] * 3 + ["messages"] * 2 + ["compact", "destroy", "create"])
            try:
                getattr(self, act)(r, r.choice(NAMES))
                outcome = "ok"
            except Refused as error:
                outcome = error.code
            with self.lock:
                self.answers[act, outcome] = self.answers.get((act, outcome), 0) + 1

    def at(self, name):
        return self.n if name == "default" else self.n.agent(name)

    def send(self, r, name):
        self.at(name).send("What did I say?", "r%d" % r.randrange(4))

    def stream(self, r, name):
        with Stream(self.d, "Tell me", conversation=name, agent=r.choice(self.agents),
                    request_id="r%d" % r.randrange(4)) as s:
            same(s.answer()["content"].startswith(s.text), True, "the text is the answer's")

    def leave(self, r, name):
        """Asks, and goes before the answer."""
        if r.randrange(2):
            with Stream(self.d, "I will not wait", conversation=name) as s:
                s.client.reset()
            return
        body = request("send", {"content": "Nor will I"})
        with Client(nexus_address(self.d)) as c:
            c.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) +
                   body)
            c.reset()

    def cancel(self, r, name):
        self.at(name).cancel("r%d" % r.randrange(4))

    def count(self, r, name):
        tokens = self.at(name).tokens()
        same(tokens["system"] + tokens["tools"] + tokens["messages"], tokens["total"], "total")

    def messages(self, r, name):
        states = {m["state"] for m in self.at(name).messages(limit=2000)}
        check(states <= {"running", "done", "cancelled", "failed"}, "%r", states)

    def compact(self, r, name):
        self.at(name).call("compact")

    def destroy(self, r, name):
        self.n.call("destroy_agent", {"agent_id": name})

    def create(self, r, name):
        self.n.call("create_agent", {"agent_id": name})


def test_everything_at_once():
    chance = Chance(7)
    with Folder() as f, Provider() as p, Provider() as q:
        p.default = any_reply(OPENAI, chance)
        q.default = any_reply(ANTHROPIC, chance)
        flags = [*model_flags(p, OPENAI, "openai"), *model_flags(q, ANTHROPIC, "anthropic"),
                 *agent_flags("recall", kind="recall", word_delay=1),
                 *agent_flags("program", kind="command", command="echo {prompt}")]
        with Daemon(*flags, root=f.path) as d:
            crowd = Crowd(d, ["openai", "anthropic", "recall", "program"])
            threads = [later(crowd.run, seed) for seed in range(THREADS)]
            for t in threads:
                t.result(PATIENCE * 10)
            odd = {k: n for k, n in crowd.answers.items()
                   if k[1] not in ("ok", -32602, -32603, -32000, -32002)}
            same(odd, {}, "answers of an odd kind")
            n = crowd.n
            for name in NAMES:
                with contextlib.suppress(Refused):
                    n.call("create_agent", {"agent_id": name})
                quiet(crowd.at(name))
            d.alive()
            wait_until(lambda: not children(d.pid), "children to be gone")
            wait_until(lambda: len(descriptors(d.pid)) < 80, "descriptors to be closed")
        # And all of it loads again.
        with Daemon(*flags, root=f.path) as d:
            for name in NAMES:
                quiet(Nexus(d) if name == "default" else Nexus(d).agent(name))
    note("%d calls: %s" % (sum(crowd.answers.values()), ", ".join(
        "%s %s %d" % (*k, v) for k, v in sorted(crowd.answers.items(), key=str))))


def quiet(n):
    """Turns that nobody waited for come to their end, and the next one works."""
    wait_until(lambda: all(m["state"] != "running" for m in n.messages(limit=2000)),
               "the turns to end")
    with contextlib.suppress(Refused):
        n.send("And now?")
    last = n.messages(offset=n.count() - 1)[-1]
    check(last["state"] in ("done", "failed"), "%r", last)


# ---- nothing to be had ----


def test_without_room_on_the_disk_nothing_is_told_that_is_not_kept():
    only_in_a_file("the disk is the server's")
    with Folder() as f, Provider() as p:
        gate = p.gate()
        p.play(OPENAI.answer("first"),
               OPENAI.reply(OPENAI.text("half "), gate, OPENAI.text("the end"), OPENAI.finish(),
                            OPENAI.done))
        p.default = OPENAI.answer("afterwards")
        # What had come by then may be on its way to the disk.
        with Daemon(*model_flags(p), root=f.path, announced=["could not store turn", "call failed"], possible=["could not store text, retrying"],
                    preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN)) as d:
            n = Nexus(d)
            n.says("Hi")
            sent = later(n.send, "and?")
            gate.arrived()
            limit(d, 4096)
            gate.open()
            error = sent.exception(PATIENCE)
            check(isinstance(error, Refused) and error.code == -32603, "told %r", error)
            same(n.refused("send", {"content": "still no room"}).code, -32603)
            same(n.count() >= 2, True, "messages are shown")
            limit(d, resource.RLIM_INFINITY)
            same(n.says("and now?"), "afterwards")
        with Daemon(*model_flags(p), root=f.path) as d:
            n = Nexus(d)
            # What could not be ended in the store is a turn cut off.
            states = {m["content"]: m["state"] for m in n.messages()}
            same((states["and?"], states["afterwards"]), ("interrupted", "done"))
            same(n.says("and after that?"), "afterwards")


def limit(d, size):
    resource.prlimit(d.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_without_descriptors_a_turn_fails_and_the_next_works():
    with Provider(default=OPENAI.answer("ok")) as p, Daemon(
            *model_flags(p), *agent_flags("program", kind="command", command="echo hi")) as d:
        # Connected before, so that it can ask.
        client = d.connect()
        client.ping()
        soft, hard = resource.prlimit(d.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE,
                         (max(descriptors(d.pid)) + 1, hard))
        for agent in ("model", "program"):
            answer = ask(client, agent)
            check("error" in answer and answer["error"]["message"], "%r", answer)
        resource.prlimit(d.pid, resource.RLIMIT_NOFILE, (soft, hard))
        for agent in ("model", "program"):
            answer = ask(client, agent)
            check("result" in answer, "%r", answer)
        d.announced = ["escriptor"] if b" warn " in d.log() or b" err " in d.log() else []


def ask(client, agent):
    client.send(request("chat.stream", {"content": "Hi", "agent": agent}) + b"\n")
    while True:
        line = json.loads(client.read_line())
        if "id" in line:
            return line


if __name__ == "__main__":
    main(globals())
