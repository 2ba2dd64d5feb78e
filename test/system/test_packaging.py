"""A version is the same wherever it is shown, and CHANGELOG.md has it."""
import os
import re
import subprocess

from harness import KOINE, KOINED, SOURCE, check, main, same


def page(*names):
    with open(os.path.join(SOURCE, *names), encoding="utf-8") as f:
        return f.read()


def version():
    return re.search(r"^  version: '([^']+)'", page("meson.build"), re.M).group(1)


def output(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True).stdout


def sections():
    """Those of CHANGELOG.md: a version, and the rest of its heading."""
    return re.findall(r"^## (\S+?)(, .*)?$", page("CHANGELOG.md"), re.M)


def number(text):
    return [int(part) for part in text.split(".")]


def test_programs_and_header_have_the_version_of_the_project():
    same(output(KOINE, "--version"), "koine %s\n" % version())
    same(output(KOINED, "--version"), "koined %s\n" % version())
    header = page("include", "koine", "koine.h")
    parts = re.findall(r"#define KOINE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    same(".".join(parts), version(), "the header's version")
    check('/* "%s"' % version() in header, "the header's example is another")


def test_documents_show_the_version_of_the_project():
    shown = re.findall(r'koined (\d+\.\d+\.\d+), pid|"version": ?"(\d+\.\d+\.\d+)"',
                       page("README.md") + page("doc", "guide.md")
                       + page("doc", "dialects", "koine.md"))
    check(len(shown) > 2, "%r", shown)
    same({a or b for a, b in shown}, {version()}, "what the documents show")


def test_the_changelog_begins_with_the_version_of_the_project():
    found = sections()
    same(found[0][0], version(), "the first section")
    numbers = [number(name) for name, _ in found]
    same(numbers, sorted(numbers, reverse=True), "the order of the sections")


def test_sections_of_the_changelog_have_a_date():
    for place, (name, rest) in enumerate(sections()):
        # The first one may still be without.
        check(re.fullmatch(r", \d{4}-\d\d-\d\d", rest) or (place == 0 and not rest),
              "## %s%s is no version and date", name, rest)


if __name__ == "__main__":
    main(globals())
