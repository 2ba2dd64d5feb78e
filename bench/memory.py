"""The memory rows of the bench: durable adds, searches beside SQLite's FTS5, lists beside
a Python server, what an index weighs, and how long the first search after a start takes.

A search is handed to a thread, and that costs what it costs with all cores there.
"""

import collections
import json
import os
import shutil
import socket
import struct
import sys
import time

from part import Part, own_kib
from servers import HERE, Server

Set = collections.namedtuple("Set", "name title made full_only")

SETS = [
    Set("1k", "1,000 memories of one user", "1000", False),
    Set("100k", "100,000 memories of one user", "100000", False),
    Set("users", "1,000 memories of one user, among 100,000 memories of 1,000 users", "100000,1000,1000", False),
    Set("1M", "1,000,000 memories of one user", "1000000", True),
    Set("users1M", "1,000 memories of one user, among 1,000,000 memories of 1,000 users", "1000000,1000,1000",
        True),
]
ADD_CLIENTS = [1, 8, 64]
LIST_SHAPES = [1, 64]
LISTED = 1000  # memories that a list of 5 is taken from
USER = {"user_id": "user-0"}
WITH_WORDS = "100k"  # the set that is also searched with a table of word vectors
KEPT_FROM = 5000  # memories of a user whose index is surely kept in a file

SEARCH = ('{"jsonrpc":"2.0","method":"memory.search","params":{"query":"$QUESTION","limit":10,'
          '"user_id":"user-0","chat_id":null},"id":$ID}')
LIST = ('{"jsonrpc":"2.0","method":"memory.list","params":{"limit":5,"user_id":"user-0",'
        '"chat_id":null},"id":$ID}')
ADD = ('{"jsonrpc":"2.0","method":"memory.add","params":{"content":"$TEXT","source":"agent",'
       '"user_id":"user-0","chat_id":"chat-1"},"id":$ID}')


def call(path, method, params):
    """One call to the ash socket or koine's: both speak length-prefixed JSON."""
    body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}).encode()
    with socket.socket(socket.AF_UNIX) as s, s.makefile("rb") as answers:
        s.connect(path)
        s.sendall(struct.pack(">I", len(body)) + body)
        (length,) = struct.unpack(">I", answers.read(4))
        answer = json.loads(answers.read(length))
    if "error" in answer:
        raise RuntimeError(f"{method}: {answer['error']}")
    return answer["result"]


class MemoryBench(Part):
    name = "memory"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seconds = 0.5 if self.arguments.quick else 1.0

    def steps(self):
        return self.run_adds, self.run_lists, self.run_searches

    def load(self, server, channel, request, connections, *more):
        address, _ = server.channels[channel]
        return self.measure(
            "load", "--target", address, "--framing", "length", "--connections", connections,
            "--seconds", self.seconds, "--warmup", "0.3", "--timeout-ms", "60000", "--pid",
            server.process.pid, "--request", request, *more)

    def start_store(self, name):
        return self.start_koined(name, ("koine", "ash"))

    def path(self, server, dialect):
        return server.channels[dialect][0].partition(":")[2]

    def run_adds(self):
        print("memory: adds", file=sys.stderr)
        server = self.start_store("adds")
        made_from, acknowledged = 0, 0
        for round_ in range(self.rounds):
            for clients in ADD_CLIENTS:
                self.record(f"sync {clients}", "disk", round_, **self.measure_sync())
                found = self.load(server, "ash", ADD, clients, "--made-from", made_from)
                self.record(f"add {clients}", "koined", round_, **found)
                made_from += 10000000  # never a text twice: that would be taken for a retry
                acknowledged += found["requests"]
        kept = call(self.path(server, "koine"), "memory.stats", {})["total"]
        self.bench.stop(server)
        if kept < acknowledged:
            raise RuntimeError(f"{acknowledged} adds were acknowledged and {kept} are there")

    def start_peer(self):
        folder = self.sockets("asyncio")
        source = os.path.join(self.disk, "listed.ndjson")
        with open(source, "w") as f:
            f.write(self.program("memories", LISTED))
        argv = [sys.executable, os.path.join(HERE, "peers", "ash_asyncio.py"), folder + "/sock",
                os.path.join(self.disk, "asyncio.db"), source]
        return self.start(Server("asyncio", argv, {"ash": (f"unix:{folder}/sock", [])}), folder)

    def run_lists(self):
        print("memory: lists", file=sys.stderr)
        ours, theirs = self.start_store("lists"), self.start_peer()
        self.program("memories", LISTED, ours.channels["koine"][0])
        n = [len(call(self.path(s, "ash"), "memory.list", {"limit": 5, "user_id": "user-0"}))
             for s in (ours, theirs)]
        if n != [5, 5]:
            raise RuntimeError(f"lists of {n} entries instead of 5")
        for round_ in range(self.rounds):
            for clients in LIST_SHAPES:
                for server in (ours, theirs):
                    self.record(f"list {clients}", server.column, round_,
                                **self.load(server, "ash", LIST, clients))
        self.bench.stop(ours)
        self.bench.stop(theirs)

    def run_searches(self):
        for set_ in SETS:
            if self.arguments.full or not set_.full_only:
                self.run_search(set_)

    def run_search(self, set_):
        print(f"memory: {set_.title}", file=sys.stderr)
        server = self.start_store(set_.name)
        began = time.monotonic()
        self.program("memories", set_.made, server.channels["koine"][0])
        filled = time.monotonic() - began
        self.bench.stop(server)
        fts = os.path.join(self.disk, set_.name + ".fts5")
        self.program("fts5", "build", fts, set_.made)
        server = self.start_again(set_, filled)
        self.search_rounds(f"search {set_.name}", server, fts, set_)
        self.bench.stop(server)
        if set_.name == WITH_WORDS:
            self.search_with_words(fts, set_)
        os.unlink(fts)
        shutil.rmtree(os.path.join(self.disk, set_.name))

    def search_rounds(self, row, server, fts, set_):
        for round_ in range(self.rounds):
            found = self.measure("fts5", "ask", fts, set_.made, self.seconds)
            self.record(row, "fts5", round_, **found)
            found = self.load(server, "ash", SEARCH, 1, "--made", set_.made)
            self.record(row, "koined", round_, **found)

    def search_with_words(self, fts, set_):
        """The same with a table of word vectors, which `./dev words` makes."""
        table = self.built("words.bin")
        if not table:
            print("skipped: word vectors (run ./dev words to create them)", file=sys.stderr)
            return
        server = self.start_koined(set_.name, ("koine", "ash"), "--set", "memory.words=" + table)
        self.first_search(server, USER)
        self.search_rounds(f"search {set_.name} words", server, fts, set_)
        self.bench.stop(server)

    def first_search(self, server, who):
        began = time.monotonic()
        hits = call(self.path(server, "ash"), "memory.search",
                    {"query": "What did Anna say about the train?", **who})
        if not hits:
            raise RuntimeError("nothing was found")
        return time.monotonic() - began

    def timed_start(self, set_):
        began = time.monotonic()
        server = self.start_store(set_.name)
        return server, time.monotonic() - began

    def start_again(self, set_, filled):
        """How long the first search takes, which builds the index, and what that weighs; then
        the same with the index in a file. The daemon runs on."""
        server, ready = self.timed_start(set_)
        before = own_kib(server.process.pid)
        first = self.first_search(server, USER)
        stats = call(self.path(server, "koine"), "memory.stats", USER)
        self.record(f"index {set_.name}", "koined", 0, fill_s=filled, ready_s=ready,
                    first_search_s=first, index_bytes=stats["index_bytes"],
                    grown_kib=own_kib(server.process.pid) - before, memories=stats["total"])
        if stats["total"] < KEPT_FROM:
            return server
        server = self.restarts(set_, server, "one user", USER, first, 1)
        first = self.first_search(server, {})
        return self.restarts(set_, server, "everything", {}, first, 2)

    def restarts(self, set_, server, column, who, built, n_files):
        """Waits for the file, then starts and asks, round after round."""
        end = time.monotonic() + 120  # a second one may rest for a while
        while True:
            stats = call(self.path(server, "koine"), "memory.stats", {})
            if stats["index_files"] >= n_files:
                break
            if time.monotonic() > end:
                raise RuntimeError("the index was not kept")
            time.sleep(0.05)
        for round_ in range(2 * self.rounds + 1):
            self.bench.stop(server)
            server, ready = self.timed_start(set_)
            self.record(f"again {set_.name}", column, round_, ready_s=ready, built_s=built,
                        first_search_s=self.first_search(server, who),
                        file_bytes=stats["index_file_bytes"] / n_files)
        return server
