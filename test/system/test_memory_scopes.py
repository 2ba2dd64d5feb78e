#!/usr/bin/env python3
"""
Who may see a memory: thousands of random questions, lists, changes and deletions over users, chats, projects
and the common ones, through koine's own socket and ash's, beside a small model that knows the rules. Whatever is
answered is exactly what the model says: nothing leaks, nothing is missing. koined is killed now and then, so
that it also holds for indexes and stores that were read again.

KOINE_SEED=N repeats a run; KOINE_STEPS=N makes so many steps.
"""
import datetime
import json
import os
import random

from ash_client import rpc_call
from harness import Daemon, Failure, Folder, check, main, request, same

SEED = int(os.environ.get("KOINE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
STEPS = int(os.environ.get("KOINE_STEPS", "0")) or 3000
LIVES = 3
ENOUGH = 250  # memories; more are deleted than added from then on

# Some names are the same for all kinds, and some begin alike.
USERS = [None, "", "ann", "bob", "same", "an"]
CHATS = [None, None, "", "club", "team", "same", "clu"]
TYPES = [None, None, "private", "group", "supergroup", "channel"]
PROJECTS = [None, None, "", "h.org/ann/boat", "same", "h.org/ann"]

NOT_FOUND, CONFLICT, PARAMS = -32001, -32002, -32602


def ms(iso):
    at = datetime.datetime.fromisoformat(iso.replace("Z", "+00:00"))
    return round((at - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) / datetime.timedelta(milliseconds=1))


def iso(at):
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=at)).isoformat(timespec="milliseconds") + "Z"


class Asker:
    """Who asks, as parameters and as the rules see it."""

    def __init__(self, r, kinds=("user_id", "chat_id", "chat_type", "project", "common")):
        self.params = {}
        for name, values in (("user_id", USERS), ("chat_id", CHATS), ("chat_type", TYPES), ("project", PROJECTS)):
            if name in kinds:
                value = r.choice(values)
                if value is not None or r.random() < 0.3:
                    self.params[name] = value
        if "common" in kinds and r.random() < 0.05:
            self.params["common"] = True
        self.user, self.chat, self.type, self.project = (
            self.params.get(n) or None for n in ("user_id", "chat_id", "chat_type", "project"))
        self.common = self.params.get("common", False)

    @property
    def named(self):
        return bool(self.user or self.chat or self.project)

    def sees(self, m, this_chat=False):
        whose = m.whose
        if self.common:
            return whose == ("common",) and not this_chat
        if not self.named:
            return True
        if whose[0] == "user":
            if whose[1] != self.user:
                return False
            here = m.chat is not None and m.chat == self.chat
            if this_chat:
                return here
            if self.type in ("group", "supergroup"):
                return here or m.type not in (None, "private")
            return True
        if whose[0] == "chat":
            return whose[1] == self.chat
        if whose[0] == "project":
            return whose[1] == self.project and not this_chat
        return not this_chat

    def changes(self, m):
        return self.sees(m) and (m.whose != ("common",) or not self.named)


class Memory:
    def __init__(self, id, who, shared):
        self.id = id
        self.user = self.chat = self.type = self.project = None
        if not who.common:
            self.chat, self.project = who.chat, who.project
            self.type = who.type if who.chat else None
            if not ((who.chat or who.project) and (shared or not who.user)):
                self.user = who.user
        self.said = []  # (content, from, until), the newest last; until None: it is valid
        self.replaced_by = None
        self.replaces = None

    @property
    def whose(self):
        if self.user:
            return ("user", self.user)
        if self.chat:
            return ("chat", self.chat)
        return ("project", self.project) if self.project else ("common",)

    @property
    def now(self):
        return None if self.replaced_by else self.said[-1][0]

    def at(self, when):
        for content, start, end in self.said:
            if start <= when and (end is None or when < end):
                return content
        return None

    def say(self, content, when):
        old, start, _ = self.said[-1]
        self.said[-1] = (old, min(start, when), when)
        self.said.append((content, when, None))


class World:
    """A daemon, what is in it, and what is done to it."""

    def __init__(self, r):
        self.r = r
        self.memories = {}
        self.n = 0
        self.counts = {}
        self.times = []
        self.daemon = None

    def connect(self, daemon):
        self.daemon = daemon
        self.client = daemon.connect(dialect="koine")
        self.ash = daemon.address("unix", "ash")[len("unix:"):]

    def call(self, method, params):
        return self.client.call(method, params)

    def refused(self, method, params, code):
        answer = json.loads(self.client.call_text(request(method, params)))
        if answer.get("error", {}).get("code") != code:
            raise Failure("%s %r answers %.300r" % (method, params, answer))

    def pick(self):
        return self.r.choice(list(self.memories.values())) if self.memories else None

    def text(self):
        self.n += 1
        return "paint %s number%d" % (self.r.choice(["the blue boat", "a red door", "that old wall"]), self.n)

    # ---- what is expected ----

    def seen(self, who, this_chat=False, at=None):
        out = []
        for m in self.memories.values():
            content = m.at(at) if at is not None else m.now
            if content is not None and who.sees(m, this_chat):
                out.append(content)
        return sorted(out)

    def differs(self, what, got, want):
        if sorted(got) != want:
            leaked, missing = set(got) - set(want), set(want) - set(got)
            raise Failure("%s leaks %.300r and lacks %.300r" % (what, sorted(leaked), sorted(missing)))

    # ---- steps ----

    def add(self):
        who = Asker(self.r)
        shared = self.r.random() < 0.3
        params = dict(who.params, content=self.text(), shared=shared)
        if self.r.random() < 0.5:
            params["created_at"] = iso(1700000000000 + self.r.randrange(10 ** 9))
        got = self.call("memory.add", params)
        m = Memory(got["id"], who, shared)
        m.said.append((params["content"], ms(got["created_at"]), None))
        same(got["scope"], {"user": "personal", "chat": "group"}.get(m.whose[0], m.whose[0]), "scope of %r" % params)
        self.memories[m.id] = m
        self.times.append(m.said[0][1])

    def add_by_ash(self):
        who = Asker(self.r, ("user_id", "chat_id", "chat_type"))
        shared = self.r.random() < 0.3
        content = self.text()
        got = rpc_call("memory.add", dict(who.params, content=content, shared=shared), max_retries=0, address=self.ash)
        m = Memory(got["id"], who, shared)
        m.said.append((content, ms(got["created_at"]), None))
        self.memories[m.id] = m

    def replace(self):
        old, who = self.pick(), Asker(self.r)
        params = dict(who.params, content=self.text(), replaces=old.id)
        if not who.changes(old):
            self.refused("memory.add", params, PARAMS)
        elif old.replaced_by:
            self.refused("memory.add", params, CONFLICT)
        else:
            got = self.call("memory.add", params)
            until = ms(self.call("memory.get", {"memory_id": old.id})["valid_until"])
            m = Memory(got["id"], who, False)
            m.user, m.chat, m.type, m.project = old.user, old.chat, old.type, old.project
            m.said.append((params["content"], ms(got["created_at"]), None))
            content, start, _ = old.said[-1]
            old.said[-1] = (content, min(start, until), until)
            old.replaced_by, m.replaces = m.id, old.id
            self.memories[m.id] = m
            self.times.append(until)

    def update(self):
        m, who = self.pick(), Asker(self.r)
        params = dict(who.params, memory_id=m.id, content=self.text())
        if not who.changes(m):
            self.refused("memory.update", params, NOT_FOUND)
        elif m.replaced_by:
            self.refused("memory.update", params, CONFLICT)
        else:
            when = ms(self.call("memory.update", params)["valid_from"])
            m.say(params["content"], when)
            self.times.append(when)

    def delete(self):
        m = self.pick()
        by_ash = self.r.random() < 0.3
        who = Asker(self.r, ("user_id", "chat_id") if by_ash else
                    ("user_id", "chat_id", "chat_type", "project", "common"))
        params = dict(who.params, memory_id=m.id)
        got = (rpc_call("memory.delete", params, max_retries=0, address=self.ash) if by_ash
               else self.call("memory.delete", params))
        same(got, {"deleted": who.changes(m)}, "delete %r of %r" % (params, m.whose))
        if got["deleted"]:
            if m.replaced_by:
                self.memories[m.replaced_by].replaces = None
            while m:
                m = self.memories.pop(m.id) and self.memories.get(m.replaces)

    def get(self):
        m, who = self.pick(), Asker(self.r)
        params = dict(who.params, memory_id=m.id)
        at = self.some_time() if self.r.random() < 0.4 else None
        if at is not None:
            params["at"] = iso(at)
        want = m.at(at) if at is not None else m.said[-1][0]
        if who.sees(m) and want is not None:
            same(self.call("memory.get", params)["content"], want, "get %r" % params)
        else:
            self.refused("memory.get", params, NOT_FOUND)

    def history(self):
        m, who = self.pick(), Asker(self.r)
        params = dict(who.params, memory_id=m.id)
        if not who.sees(m):
            self.refused("memory.history", params, NOT_FOUND)
            return
        want = []
        while m and len(want) < 33:
            want += [content for content, _, _ in reversed(m.said)]
            m = self.memories.get(m.replaces)
        same([e["content"] for e in self.call("memory.history", params)], want, "history %r" % params)

    def some_time(self):
        return self.r.choice(self.times) + self.r.choice([-1, 0, 1]) if self.times else 1

    def look(self):
        """A list and a search of the same."""
        who = Asker(self.r)
        this_chat = self.r.random() < 0.2
        params = dict(who.params, limit=1000)
        if this_chat:
            params["this_chat"] = True
        if this_chat and not who.chat:
            for method in ("memory.list", "memory.search"):
                self.refused(method, dict(params, query="paint"), PARAMS)
            return
        at = self.some_time() if self.r.random() < 0.3 else None
        if at is not None:
            params["at"] = iso(at)
        want = self.seen(who, this_chat, at)
        self.differs("list %r" % params, [e["content"] for e in self.call("memory.list", params)], want)
        query = dict(params, query=self.r.choice(["paint", "paint number", "what do we paint?"]))
        self.differs("search %r" % query, [e["content"] for e in self.call("memory.search", query)], want)

    def look_by_ash(self):
        who = Asker(self.r, ("user_id", "chat_id", "chat_type"))
        this_chat = bool(who.chat) and self.r.random() < 0.2
        params = dict(who.params, limit=1000, this_chat=this_chat)
        want = self.seen(who, this_chat)
        for method in ("memory.list", "memory.search"):
            got = rpc_call(method, dict(params, query="paint"), max_retries=0, address=self.ash)
            self.differs("%s by ash %r" % (method, params), [e["content"] for e in got], want)

    def seek(self):
        """A few hits, for words of one memory that may be somebody else's."""
        m, who = self.pick(), Asker(self.r)
        params = dict(who.params, query=m.said[0][0], limit=self.r.choice([1, 3, 10]), duplicates=True,
                      include_replaced=self.r.random() < 0.5)
        visible = {content for x in self.memories.values() if who.sees(x)
                   for content, _, end in x.said if end is None or params["include_replaced"]}
        hits = self.call("memory.search", params)
        check({h["content"] for h in hits} <= visible, "search %r leaks", params)
        ids = {x.id for x in self.memories.values() if who.sees(x)}
        for h in hits:
            check({h["id"], *h["duplicates"]} <= ids, "search %r leaks an id", params)
        if m.said[0][0] in visible:
            same(hits[0]["content"], m.said[0][0], "the best hit of %r" % params)

    def export(self):
        who = Asker(self.r)
        entries, cursor = [], None
        while True:
            page = self.call("memory.export", dict(who.params, cursor=cursor, limit=self.r.choice([7, 50, 1000])))
            if not page["entries"]:
                break
            entries += page["entries"]
            cursor = page["cursor"]
        self.differs("export %r" % who.params, [e["content"] for e in entries], self.seen(who))
        for e in entries:
            m = self.memories[e["id"]]
            same((e["user_id"], e["chat_id"], e["chat_type"], e["project"]), (m.user, m.chat, m.type, m.project))
        same(self.call("memory.stats", who.params)["total"],
             sum(who.sees(m) for m in self.memories.values()), "count for %r" % who.params)

    def step(self):
        few = len(self.memories) < ENOUGH
        steps = {self.add: 8 if few else 2, self.add_by_ash: 2 if few else 1, self.delete: 2 if few else 8,
                 self.update: 4, self.replace: 2, self.get: 4, self.history: 4, self.look: 8, self.look_by_ash: 2,
                 self.seek: 4, self.export: 1}
        step = self.r.choices(list(steps), list(steps.values()))[0] if self.memories else self.add
        self.counts[step.__name__] = self.counts.get(step.__name__, 0) + 1
        step()


def test_nothing_leaks_and_nothing_is_missing():
    print("     KOINE_SEED=%d" % SEED, flush=True)
    w = World(random.Random(SEED))
    with Folder() as root:
        for life in range(LIVES):
            ends = life == LIVES - 1
            with Daemon(root=root.path, exit_status=0 if ends else -9) as d:
                w.connect(d)
                for i in range(STEPS // LIVES):
                    try:
                        w.step()
                    except (Failure, ConnectionError) as e:
                        raise Failure("step %d of life %d: %s" % (i, life, e)) from None
                if not ends:
                    d.process.kill()
                    d.process.wait()
    print("     " + ", ".join("%d %s" % (n, name) for name, n in sorted(w.counts.items())), flush=True)


if __name__ == "__main__":
    main(globals())
