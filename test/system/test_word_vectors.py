#!/usr/bin/env python3
"""The table of word vectors: where it is found, what is refused, and that nothing needs it."""
import os
import shutil

from harness import Daemon, Folder, check, main, run_koined, same

TABLE = os.environ["KOINE_WORDS"]


def words_of(client):
    stats = client.call("memory.stats")
    return stats["words_file"], stats["words"] > 300


def test_a_table_that_is_named_is_used():
    with Daemon("--set", "memory.words=" + TABLE) as d:
        same(words_of(d.connect()), (TABLE, True), "the table in use")


def test_words_that_are_used_alike_are_found():
    with Folder() as folder:
        with Daemon("--set", "memory.words=" + TABLE, root=folder()) as d:
            c = d.connect()
            for text in ("our midwife moved to Ghent", "soup tastes best on sundays",
                         "the automobile needs new tyres"):
                c.call("memory.add", {"content": text, "user_id": "ann"})
            same([hit["content"] for hit in c.call("memory.search", {"query": "which surgeon",
                                                                     "user_id": "ann"})],
                 ["our midwife moved to Ghent"], "what a table finds")
        with Daemon("--set", "memory.words=off", root=folder()) as d:
            same(d.connect().call("memory.search", {"query": "which surgeon", "user_id": "ann"}),
                 [], "what words alone find")


def test_a_table_in_the_default_place_is_used_unless_it_is_off():
    with Folder() as folder:
        shutil.copy(TABLE, folder("words.bin"))
        with Daemon(root=folder()) as d:
            same(words_of(d.connect()), (folder("words.bin"), True), "the table in use")
        with Daemon("--set", "memory.words=off", root=folder()) as d:
            same(words_of(d.connect()), (None, False), "the table in use")


def test_a_broken_table_in_the_default_place_is_left_out():
    with Folder() as folder:
        with open(TABLE, "rb") as whole, open(folder("words.bin"), "wb") as cut:
            cut.write(whole.read()[:-8])
        with Daemon(root=folder(), announced=["could not use word table"]) as d:
            c = d.connect()
            same(words_of(c), (None, False), "the table in use")
            c.call("memory.add", {"content": "the doctor moved to Ghent"})
            same(len(c.call("memory.search", {"query": "doctor"})), 1, "hits")


def test_a_named_file_that_is_no_table_keeps_it_from_starting():
    with Folder() as folder:
        with open(folder("plain"), "w", encoding="utf-8") as file:
            file.write("no table")
        for name, says in (("plain", b"not a word table"), ("none", b"No such file"),
                           ("", b"cannot read the word table")):
            args = ["--root", folder(), "--set", "memory.words=" + folder(name)]
            done = run_koined(*args)
            check(done.returncode != 0 and says in done.stderr, "%r", done.stderr)
            checked = run_koined("--check", *args)
            check(checked.returncode != 0 and says in checked.stdout, "%r", checked.stdout)


def test_check_names_the_table():
    with Folder() as folder:
        done = run_koined("--check", "--root", folder(), "--set", "memory.words=" + TABLE)
        check(b"word vectors  " + TABLE.encode() in done.stdout, "%r", done.stdout)


if __name__ == "__main__":
    main(globals())
