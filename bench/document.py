"""doc/bench.md by its sections: a run replaces those that it measured and leaves the others."""

import re

GOALS = "Goals"


class Document:
    def __init__(self, path):
        self.path = path
        self.head = ""
        self.sections = {}
        try:
            with open(path) as f:
                text = f.read()
        except FileNotFoundError:
            return
        self.head, *rest = re.split(r"^## ", text, flags=re.M)
        for section in rest:
            heading, _, body = section.partition("\n")
            self.sections[heading] = body

    def put(self, heading, body, befores=()):
        """A new one goes before the first of those named that is there, or to the end."""
        before = next((name for name in befores if name in self.sections), None)
        if heading in self.sections or not before:
            self.sections[heading] = body
            return
        old, self.sections = self.sections, {}
        for name, text in old.items():
            if name == before:
                self.sections[heading] = body
            self.sections[name] = text

    def put_goals(self, lines):
        """Lines of the table by what they ask for; those of other parts stay."""
        goals = {}
        for line in [*self.sections.get(GOALS, "").splitlines(), *lines]:
            if line.startswith("| ") and not line.startswith("| goal |"):
                goals[line.split(" | ")[0]] = line
        self.put(GOALS, "\n".join(["| goal | result | |", "|---|---|---|", *goals.values()]))

    def write(self):
        parts = [self.head, *(f"## {heading}\n\n{body.strip()}" for heading, body in
                              self.sections.items())]
        with open(self.path, "w") as f:
            f.write("\n\n".join(part.strip() for part in parts) + "\n")
