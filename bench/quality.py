"""What search finds: search_quality.c over the sets of test/search. Nothing is timed."""

import json
import os

from part import Part
from servers import HERE

TEST = os.path.join(os.path.dirname(HERE), "test", "search")
SETS = {"first": TEST, "second": os.path.join(TEST, "second")}


class QualityBench(Part):
    name = "quality"

    def steps(self):
        return (self.run_quality,)

    def run_quality(self):
        folders = [f"{name}={folder}" for name, folder in SETS.items()]
        for line in self.program("search_quality", "--json", *folders).splitlines():
            row = json.loads(line)
            column = f"{row.pop('set')} {row.pop('half')}".strip()
            self.record(f"{row.pop('kind')}: {row.pop('name')}", column, 0, **row)
