"""The documents match the programs: methods, settings, flags, commands; and their links lead somewhere."""
import glob
import json
import os
import re
import subprocess

import reference
from harness import KOINE, KOINED, SOURCE, Daemon, Folder, check, main, same
from mcp_npm import NODE, PACKAGES, need, run_script


def page(*names):
    with open(os.path.join(SOURCE, *names), encoding="utf-8") as f:
        return f.read()


def dialect_pages():
    return "".join(page("doc", "dialects", name + ".md")
                   for name in ("koine", "ash", "hld", "ocg", "nexus", "aiwg"))


def output(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.decode()


def test_every_method_is_documented():
    with Daemon("--debug-methods") as d, d.connect() as c:
        methods = c.call("rpc.discover")["methods"]
    pages = dialect_pages()
    missing = [m["name"] for m in methods if "`%s`" % m["name"] not in pages]
    same(missing, [], "methods on no page")
    undocumented = [m["name"] for m in methods if not m.get("summary")]
    same(undocumented, [], "methods without a summary")
    silent = ["%s.%s" % (m["name"], p["name"]) for m in methods for p in m["params"]
              if not p.get("description")]
    same(silent, [], "parameters without a description")


def test_every_parameter_is_documented():
    with Daemon() as d, d.connect() as c:
        methods = c.call("rpc.discover")["methods"]
    pages = dialect_pages()
    missing = ["%s.%s" % (m["name"], p["name"]) for m in methods for p in m["params"]
               if p["name"] not in pages]
    same(missing, [], "parameters on no page")


def test_every_setting_is_in_koine_conf_5():
    with Daemon() as d:
        text = output(KOINED, "--check", "--root", os.path.join(d.root, "other"))
    manual = page("doc", "man", "koine.conf.5.scd")
    found = 0
    section = None
    for line in text.splitlines():
        if re.match(r"^\[\w+\]$", line):
            section = line
            check("# %s" % section in manual, "%s is in no heading", section)
        key = re.match(r"^(\w+) = ", line)
        if section and key:
            found += 1
            check("*%s*" % key.group(1) in manual, "%s %s is not there", section, key.group(1))
    check(found > 10, "only %d settings were printed", found)


def test_every_flag_is_in_koined_8():
    flags = set(re.findall(r"^  (--[\w-]+)", output(KOINED, "--help"), re.M))
    manual = page("doc", "man", "koined.8.scd")
    check(len(flags) > 5, "%r", flags)
    same(sorted(f for f in flags if "*%s*" % f not in manual), [], "flags that are not there")


def test_every_variable_is_in_koined_8():
    names = []
    for path in glob.glob(os.path.join(SOURCE, "src", "dialect", "*", "*.c")):
        with open(path, encoding="utf-8") as f:
            names += re.findall(r'\.(?:(?:old_|debug_)?variable|secret) = "([A-Z]+_[A-Z_]+)"',
                                f.read())
    check(len(names) > 4, "%r", names)
    manual = page("doc", "man", "koined.8.scd").split("# ENVIRONMENT")[1].split("# FILES")[0]
    same([n for n in names if "*%s*" % n not in manual], [], "variables that are not there")


def test_every_dialect_is_in_help_index_and_koined_8():
    with Folder() as f:
        text = output(KOINED, "--check", "--root", f("root"))
    names = re.findall(r"^(\w+) = ", text.split("[listen]\n")[1].split("\n\n")[0], re.M)
    check("koine" in names, "%r", names)
    index = page("doc", "dialects", "README.md")
    manual = page("doc", "man", "koined.8.scd")
    words = output(KOINED, "--help").split("The dialects")[1]
    for name in names:
        check(re.search(r"\b%s\b" % name, words), "%s is not in --help", name)
        check("| [%s](%s.md) |" % (name, name) in index, "%s: doc/dialects/README.md", name)
        check("ialect *%s*" % name in manual or "*%s*\nis " % name in manual or
              "*%s* makes" % name in manual, "%s: koined.8", name)
        page("doc", "dialects", name + ".md")


def anchor(heading):
    """As GitHub makes it."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def links(name):
    """(file, anchor) that a Markdown file refers to."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```", "", page(name))
    for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
        file, _, part = (target[0] or target[1]).partition("#")
        if not re.match(r"https?:", file):
            yield os.path.normpath(os.path.join(os.path.dirname(name), file)) if file else name, part


def test_every_link_leads_to_a_file_and_a_heading():
    for name in markdown():
        for file, part in links(name):
            check(os.path.exists(os.path.join(SOURCE, file)), "%s: no file %s", name, file)
            headings = [anchor(h) for h in re.findall(r"(?m)^#+ (.*)$", page(file))] if part else []
            check(not part or part in headings, "%s: no heading %s in %s", name, part, file)


def markdown():
    return ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"] + [
        os.path.relpath(p, SOURCE) for p in sorted(glob.glob(os.path.join(SOURCE, "doc", "**", "*.md"), recursive=True))]


def test_every_document_is_reachable_from_the_index():
    found, new = set(), {"doc/README.md"}
    while new:
        found |= new
        new = {file for name in new if name.endswith(".md") for file, _ in links(name)
               if os.path.exists(os.path.join(SOURCE, file))} - found
    same(sorted(set(markdown()) - found), [], "documents that no link leads to")
    text = page("doc", "README.md")
    manuals = [os.path.basename(p).split(".") for p in glob.glob(os.path.join(SOURCE, "doc", "man", "*.scd"))]
    names = ["%s(%s)" % (".".join(m[:-2]), m[-2]) for m in manuals]
    same([n for n in names if n not in text], [], "man pages that the index lacks")


def test_every_command_is_in_koine_1():
    commands = re.findall(r"^  ([a-z]+) ", output(KOINE, "help", "all"), re.M)
    manual = page("doc", "man", "koine.1.scd")
    check("ping" in commands, "%r", commands)
    same(sorted(c for c in set(commands) if c not in manual), [], "commands that are not there")


def test_generated_reference_is_current():
    for path, text in reference.generate().items():
        check(reference.read(path) == text, "%s differs from what the programs print: run ./dev reference", path)


def test_openrpc_document_fits_its_schema():
    need(NODE, os.path.join(PACKAGES, "node_modules", "@open-rpc", "meta-schema"))
    errors = run_script("openrpc_check.mjs", os.path.join(SOURCE, reference.OPENRPC))
    same(errors, [], "errors")


def test_the_discovered_document_is_openrpc():
    with Daemon() as d, d.connect() as c:
        doc = c.call("rpc.discover")
    same(doc["openrpc"].split(".")[0], "1", "version")
    check(doc["info"]["title"] and doc["info"]["version"], "%r", doc["info"])
    names = [m["name"] for m in doc["methods"]]
    same(sorted(set(names)), sorted(names), "each method once")
    for m in doc["methods"]:
        check(isinstance(m["params"], list) and "schema" in m["result"], "%s", json.dumps(m))
        check(m["result"]["name"], "%s", json.dumps(m))
        check(m["paramStructure"] in ("by-name", "by-position", "either"), "%s", json.dumps(m))
        fields = [p["name"] for p in m["params"]]
        same(len(set(fields)), len(fields), "parameters of %s" % m["name"])
        required = [p["required"] for p in m["params"]]
        same(required, sorted(required, reverse=True), "required first in %s" % m["name"])
        for p in m["params"]:
            check("schema" in p and isinstance(p["required"], bool), "%s", json.dumps(p))
            given = p["schema"].get("default")
            check(given is None or isinstance(given, (str, bool)) or given > 0, "%s", json.dumps(p))


if __name__ == "__main__":
    main(globals())
