"""
A version is the same wherever it is shown; Debian's packages have everything that is installed.

What takes longer, the packages themselves, is tried by ./dev deb --check.
"""
import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess

from harness import KOINE, KOINED, SANITIZED, SOURCE, Skip, check, main, same

BUILD = os.environ.get("KOINE_BUILD", os.path.join(SOURCE, "build"))
DEBIAN = os.path.join(SOURCE, "dist", "debian")
LIBRARIES = ("libkoine", "libkoine-client")


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


# ---- Debian's packages ----


def stanzas():
    """Those of control: the source's, then the packages'. Names to values."""
    found = []
    for text in page("dist", "debian", "control").strip().split("\n\n"):
        lines = re.sub(r"\n[ \t]+", " ", text).split("\n")
        found.append(dict(re.split(r":\s*", line, maxsplit=1) for line in lines))
    return found


def lists():
    """What each package takes of an installation; a second word in a line says where to."""
    taken = {}
    for path in glob.glob(os.path.join(DEBIAN, "*.install")):
        with open(path, encoding="utf-8") as f:
            taken[os.path.basename(path)[:-len(".install")]] = [line.split()[0] for line in f]
    return taken


def places():
    """Where each installed file would be in a package, below its root."""
    options = {o["name"]: o["value"] for o in json.loads(
        output("meson", "introspect", "--buildoptions", BUILD))}
    found = []
    for path in json.loads(output("meson", "introspect", "--installed", BUILD)).values():
        path = "usr/" + os.path.relpath(path, options["prefix"])
        # Debian 12 has these two elsewhere.
        path = re.sub(r"^usr/(etc/|lib/systemd/system/)", r"\1", path)
        found.append(path)
    return found


def takes(pattern, path):
    """Whether a line of such a list means a path: itself, or the folder that it is in."""
    return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, pattern + "/*")


def test_each_package_says_what_it_has():
    source, *packages = stanzas()
    same(source["Source"], "koine")
    same({p["Package"] for p in packages}, set(lists()), "packages with a list")
    for p in packages:
        check(len(p["Description"]) > 40 and p["Architecture"], "%r", p)


def test_what_is_built_from_is_in_both_lists():
    names = re.search(r"^BUILD_PACKAGES=\(([^)]*)\)", page("dev"), re.M).group(1).split()
    wanted = set(re.findall(r"[\w.+-]+", stanzas()[0]["Build-Depends"]))
    # A compiler and what belongs to it is always there, and meson brings ninja.
    missing = [n for n in names if n not in wanted and n not in ("gcc", "libc6-dev", "ninja-build")]
    same(missing, [], "packages that control does not name")


def test_everything_that_is_installed_is_in_one_package():
    found = places()
    check(len(found) > 15, "%r", found)
    for path in found:
        owners = [name for name, patterns in lists().items()
                  if any(takes(pattern, path) for pattern in patterns)]
        check(len(owners) == 1, "%s is in %r", path, owners)


def test_the_symbols_are_those_of_the_libraries():
    if SANITIZED:
        raise Skip("sanitizers bring symbols of their own")
    listed = {}
    for line in page("dist", "debian", "libkoine0.symbols").splitlines():
        if line.startswith("lib"):
            mine = listed.setdefault(line.split(".so")[0], set())
        elif line.startswith(" "):
            mine.add(line.split()[0])
    for name in LIBRARIES:
        shown = output("nm", "-D", "--defined-only",
                       os.path.join(BUILD, "src", "lib", name + ".so.0"))
        names = {line.split()[2].replace("@@", "@") for line in shown.splitlines()}
        names = {n + "@" + n if "@" not in n else n for n in names}
        same(sorted(listed[name] ^ names), [], "symbols of %s that only one has" % name)


def test_a_purge_deletes_the_store_and_nothing_else():
    scripts = glob.glob(os.path.join(DEBIAN, "*.p*inst")) + glob.glob(os.path.join(DEBIAN, "*.p*rm"))
    same(sorted(os.path.basename(s) for s in scripts), ["koine.postrm", "koine.prerm"], "scripts")
    for script in scripts:
        subprocess.run(["sh", "-n", script], check=True)
    text = page("dist", "debian", "koine.postrm")
    same(re.findall(r"\brm\b.*", text), ["rm -rf /var/lib/koine"], "what is deleted")
    check("#DEBHELPER#" in text, "debhelper has no place in it")


def test_debians_changelog_has_the_versions_of_ours():
    made = subprocess.run([os.path.join(SOURCE, "dist", "debian-changelog")], text=True,
                          input=page("CHANGELOG.md"), stdout=subprocess.PIPE, check=True).stdout
    named = re.findall(r"^koine \((.*)-1\) unstable; urgency=medium$", made, re.M)
    same([n.split("~")[0] for n in named], [name for name, _ in sections()], "versions")
    if shutil.which("dpkg-parsechangelog"):
        parsed = subprocess.run(["dpkg-parsechangelog", "-l", "-", "-S", "Version"], input=made,
                                text=True, capture_output=True)
        same((parsed.stdout, parsed.stderr), (named[0] + "-1\n", ""), "what dpkg reads")


if __name__ == "__main__":
    main(globals(), measured=("the_symbols_are_those_of_the_libraries",))
