#!/usr/bin/env python3
"""doc/bench.md keeps what a run did not measure."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

from document import GOALS, Document  # noqa: E402

PAGE = """# Measured

A head.

## Memory

old rows

## Goals

| goal | result | |
|---|---|---|
| fast: at most 2 | 1.5 | ok |
| small: at most 3 | 2 | ok |

## Performance by store size

curves
"""


class DocumentTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "bench.md")
        with open(self.path, "w") as f:
            f.write(PAGE)

    def tearDown(self):
        self.folder.cleanup()

    def written(self, page):
        page.write()
        with open(self.path) as f:
            return f.read()

    def test_nothing_changes_by_reading_it(self):
        self.assertEqual(self.written(Document(self.path)), PAGE)

    def test_a_section_is_replaced_where_it_is(self):
        page = Document(self.path)
        page.put("Memory", "new rows\n\n")
        self.assertEqual(self.written(page), PAGE.replace("old rows", "new rows"))

    def test_a_new_section_goes_before_the_first_one_named_that_is_there(self):
        page = Document(self.path)
        page.put("Tasks", "rows", ["Sessions", GOALS])
        self.assertEqual(list(page.sections), ["Memory", "Tasks", GOALS, "Performance by store size"])

    def test_goals_that_were_not_judged_stay(self):
        page = Document(self.path)
        page.put_goals(["| fast: at most 2 | 2.5 | short |", "| new | 1 | ok |"])
        self.assertEqual(self.written(page), PAGE.replace("1.5 | ok |", "2.5 | short |").replace(
            "| 2 | ok |\n", "| 2 | ok |\n| new | 1 | ok |\n"))

    def test_a_page_begins_empty(self):
        os.unlink(self.path)
        page = Document(self.path)
        page.head = "# Measured\n"
        page.put("Memory", "rows")
        self.assertEqual(self.written(page), "# Measured\n\n## Memory\n\nrows\n")


if __name__ == "__main__":
    unittest.main()
