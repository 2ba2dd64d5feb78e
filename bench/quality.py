"""What search finds over the sets of test/search. Nothing is timed.

The steps of the search are measured by search_quality.c, which turns each off. What a user can add
to it (a table of word vectors, an embedding model) is measured through koined's socket.
"""

import collections
import json
import os
import subprocess
import sys
import time

from memory import call
from part import Part
from servers import HERE

ROOT = os.path.dirname(HERE)
TEST = os.path.join(ROOT, "test", "search")
SETS = {"first": TEST, "second": os.path.join(TEST, "second")}
FORMS = {"recall": "question", "typo": "typo"}
DEPTHS = [1, 5, 10]
USER = {"user_id": "anna"}
PATIENCE_S = 300  # for all vectors of a set

# Rows that are measured through the socket.
SOCKET, WORDS, MODEL, BOTH = ("socket: all steps", "words: table", "model: small encoder",
                              "both: table and encoder")


def read_json(folder, name):
    with open(os.path.join(folder, name)) as f:
        return json.load(f)


def entries(memories):
    return [{"content": m["text"], "created_at": m["time"], "subjects": m["subjects"],
             "chat_id": m["chat"], **USER} for m in memories]


def share_found(question, hits, depth):
    found = sum(key in hits[:depth] for key in question["evidence"])
    return found / len(question["evidence"])


class Encoder:
    """bench/encoder.mjs: a real /v1/embeddings, whose packages are in that folder."""

    def __init__(self, modules):
        self.process = subprocess.Popen(["node", os.path.join(HERE, "encoder.mjs"), modules],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            self.stop()
            raise RuntimeError("the encoder did not start")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class QualityBench(Part):
    name = "quality"

    def steps(self):
        return self.run_steps, self.run_words, self.run_model

    def run_steps(self):
        folders = [f"{name}={folder}" for name, folder in SETS.items()]
        for line in self.program("search_quality", "--json", *folders).splitlines():
            row = json.loads(line)
            column = f"{row.pop('set')} {row.pop('half')}".strip()
            self.record(f"{row.pop('kind')}: {row.pop('name')}", column, 0, **row)

    # ---- through the socket ----

    def table(self):
        return self.built("words.bin")

    def run_words(self):
        self.run_socket(SOCKET, "memory.words=off")
        if not self.table():
            print("skipped: word vectors (run ./dev words to create them)", file=sys.stderr)
            return
        self.run_socket(WORDS, "memory.words=" + self.table())

    def run_model(self):
        modules = self.built("bench-npm")
        if not modules:
            print("skipped: an embedding model, which is not installed", file=sys.stderr)
            return
        encoder = Encoder(modules)
        settings = ["memory.embedding_url=" + encoder.url, "memory.embedding_timeout=60000"]
        try:
            self.run_socket(MODEL, "memory.words=off", *settings)
            if self.table():
                self.run_socket(BOTH, "memory.words=" + self.table(), *settings)
        finally:
            encoder.stop()

    def run_socket(self, row, *settings):
        print(f"quality: {row}", file=sys.stderr)
        arguments = [x for setting in settings for x in ("--set", setting)]
        for name, folder in SETS.items():
            memories = read_json(folder, "memories.json")
            store = f"{name}-{row.partition(':')[0]}"
            server = self.start_koined(store, ("koine", "ash"), *arguments)
            self.path = {d: server.channels[d][0].partition(":")[2] for d in ("koine", "ash")}
            call(self.path["koine"], "memory.import", {"entries": entries(memories), **USER})
            if any("embedding_url" in s for s in settings):
                self.wait_for_vectors(len(memories))
            self.ask_all(row, name, folder, {m["text"]: m["key"] for m in memories})
            self.bench.stop(server)

    def wait_for_vectors(self, n):
        end = time.monotonic() + PATIENCE_S
        while True:
            stats = call(self.path["koine"], "memory.stats", USER)
            if stats["vectors"] >= n and stats["vectors_pending"] == 0:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"{stats['vectors']} of {n} vectors were created")
            time.sleep(0.2)

    def search(self, text, keys):
        hits = call(self.path["ash"], "memory.search", {"query": text, "limit": DEPTHS[-1], **USER})
        return [keys[hit["content"]] for hit in hits]

    def ask_all(self, row, name, folder, keys):
        groups = collections.defaultdict(list)
        for question in read_json(folder, "questions.json"):
            group = f"{name} {question.get('half', '')}".strip()
            hits = {measure: self.search(question[form], keys) for measure, form in FORMS.items()}
            groups[group].append({f"{measure}_{depth}": share_found(question, hits[measure], depth)
                                  for measure in FORMS for depth in DEPTHS})
        for group, shares in groups.items():
            means = {m: 100 * sum(s[m] for s in shares) / len(shares) for m in shares[0]}
            self.record(row, group, 0, **means, questions=len(shares), memories=len(keys))
