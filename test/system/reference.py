"""Writes the generated parts of the documents: reference.py. ./dev reference runs it, test_docs.py compares.

They stand between marks in doc/dialects/koine.md and in doc/man/koine.conf.5.scd, and are all of
include/koine/openrpc.json.
"""
import json
import os
import re
import subprocess

from harness import KOINE, KOINED, SOURCE, Daemon, check

MARKED = re.compile(r"(^(?:<!-- |; )generated: (.+?)(?:, two lines of each entry| -->)\n)(.*?)"
                    r"(^(?:<!-- |; )end of generated text(?: -->)?\n)", re.M | re.S)
PAGES = ("doc/dialects/koine.md", "doc/man/koine.conf.5.scd")
OPENRPC = "include/koine/openrpc.json"


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


def output(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.decode()


def plain(text):
    """Text of a manual page that scdoc does not take for markup."""
    return re.sub(r"([\\*_<>#])", r"\\\1", text)


def settings():
    """The entries of koine.conf(5) by section and key, of koined --settings."""
    sections = {}
    for line in output(KOINED, "--settings").splitlines():
        name, kind, default, variable, doc = line.split("\t")
        section, key = name.rsplit(".", 1)
        sections.setdefault(section, {})[key] = "*%s* =%s\n\t%s%s. (%s; *%s*)\n" % (
            key, " " + plain(default) if default else "", doc[0].upper(), plain(doc[1:]), plain(kind), variable)
    return sections


def merge(entries, old):
    """A section's entries, each followed by what somebody wrote below it."""
    written = {re.match(r"\*(\w+)\*", e).group(1): e.split("\n", 2)[2]
               for e in re.split(r"\n(?=\*)", old) if e.strip()}
    check(not written.keys() - entries, "no such setting: %s", ", ".join(written.keys() - entries))
    return "\n".join(entries[key] + written.get(key, "") for key in entries)


def fill(part, old):
    return part if isinstance(part, str) else merge(part, old)


def generate():
    """The text of each file as it should be."""
    parts = settings()
    with Daemon() as d, d.connect() as c:
        openrpc = c.call("rpc.discover")
        parts["koine discover --markdown"] = output(KOINE, "--url", "unix:%s/koine.sock" % d.root, "discover", "--markdown")
    # A method is a line.
    methods = ",\n".join(json.dumps(m, ensure_ascii=False) for m in openrpc.pop("methods"))
    out = {OPENRPC: json.dumps(openrpc)[:-1] + ', "methods": [\n' + methods + "\n]}\n"}
    for path in PAGES:
        text = read(path)
        for mark in MARKED.finditer(text):
            check(mark.group(2) in parts, "%s: nothing generates '%s'", path, mark.group(2))
        out[path] = MARKED.sub(lambda m: m.group(1) + fill(parts.pop(m.group(2)), m.group(3)) + m.group(4), text)
    check(not parts, "no document has: %s", ", ".join(parts))
    return out


if __name__ == "__main__":
    for path, text in generate().items():
        with open(os.path.join(SOURCE, path), "w", encoding="utf-8") as f:
            f.write(text)
