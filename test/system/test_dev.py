"""The tools behind ./dev test NAME and ./dev lint: which tests a name finds, what is counted, what is checked again."""
import glob
import json
import os
import subprocess
import sys

from harness import SANITIZED, SOURCE, Folder, Skip, check, installed, main, same

BUILD = os.environ.get("KOINE_BUILD", os.path.join(SOURCE, "build-asan"))


def run(tool, *args, **more):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "test", tool), *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, cwd=SOURCE, **more)


def pick(*names):
    """(build, function, test) of each line."""
    done = run("pick", BUILD, *names)
    same(done.returncode, 0, "status of pick (%s)" % done.stderr)
    return [tuple(line.split("\t")[:3]) for line in done.stdout.splitlines()]


def test_a_files_name_finds_that_file_only():
    for name in ("task_cli", "test_task_cli.py", "test/system/test_task_cli.py", "system_task_cli"):
        same(pick(name), [(BUILD, "-", "system_task_cli")], name)
    replay = [(BUILD, "-", "fuzz_line")] if SANITIZED else []
    same(pick("fuzz_line"), [*replay, ("fuzz", "-", "line")], "a fuzzer")


def test_part_of_a_path_finds_every_file_below():
    files = glob.glob(os.path.join(SOURCE, "test", "unit", "wire", "test_*.c"))
    same(sorted(name for _, _, name in pick("unit/wire")),
         sorted(os.path.basename(f)[len("test_"):-len(".c")] for f in files), "tests below unit/wire")


def test_function_follows_a_colon():
    same(pick("task_cli:adds", "unit/wire/test_json.c:refuses"),
         [(BUILD, "adds", "system_task_cli"), (BUILD, "refuses", "json")], "tests")


def test_unknown_name_is_rejected():
    done = run("pick", BUILD, "task_cli", "no-such-test")
    same(done.returncode, 1, "status")
    check("no test matches 'no-such-test'" in done.stderr, "%s", done.stderr)


def test_function_limits_a_unit_test():
    program = os.path.join(BUILD, "test", "unit", "wire", "test_json")
    if not os.path.exists(program):
        raise Skip("test_json is not built here")
    env = dict(os.environ, TEST_FUNCTION="refuses_what_is")
    done = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)
    check("1 test(s) run" in done.stdout + done.stderr, "%s", done.stderr)


def test_missing_program_fails_only_in_ci():
    script = "import harness\ndef test_it():\n    harness.installed('no-such-program')\nharness.main(globals())\n"
    for ci, tail, status in ("true", "0 passed, 1 failed", 1), ("", "0 passed, 0 failed, 1 skipped", 0):
        done = subprocess.run([sys.executable, "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=dict(os.environ, CI=ci, PYTHONPATH=os.path.join(SOURCE, "test", "system"), TEST_FUNCTION=""))
        same((done.stdout.splitlines()[-1], done.returncode), (tail, status), "CI=%s" % ci)


def test_linters_are_counted():
    with Folder() as f:
        with open(f("lint.log"), "w") as log:
            log.write("clang-format ok\nsrc/x.c: wrong\ncppcheck FAILED\n")
        done = run("tally", f("lint.log"))
    same(done.stdout.splitlines()[-1], "1 passed, 1 failed", "tally")
    check("src/x.c: wrong" in done.stdout, "%s", done.stdout)
    same(done.returncode, 1, "status")


NARROW = "int f(void);\nint f(void)\n{\n\tint n = 0;\n\tfor (short i = 0; i < MANY; i++)\n\t\tn += i;\n\treturn n;\n}\n"


def test_changed_files_and_headers_are_checked_again():
    installed("clang-tidy")
    with Folder() as f:
        def write(name, text):
            with open(f(name), "w") as out:
                out.write(text)

        def tidy():
            done = run("tidy", f.path, f("a.c"), f("b.c"))
            return done.returncode, done.stderr.strip().splitlines()[-1]

        write("compile_commands.json", json.dumps(
            [{"directory": f.path, "file": name, "command": "clang -I. -c " + name} for name in ("a.c", "b.c")]))
        write("many.h", "extern int many;\n#define MANY many\n")
        write("a.c", '#include "many.h"\n' + NARROW)
        write("b.c", "int g(void);\nint g(void)\n{\n\treturn 1;\n}\n")
        same(tidy(), (1, "2 files, 2 of them new or changed, 1 with problems"), "first run")
        same(tidy(), (1, "2 files, 1 of them new or changed, 1 with problems"), "a problem stays one")
        write("many.h", "#define MANY 9\n")
        same(tidy(), (0, "2 files, 1 of them new or changed, 0 with problems"), "header changed")
        same(tidy(), (0, "2 files, 0 of them new or changed, 0 with problems"), "nothing changed")
        write("b.c", "int g(void);\nint g(void)\n{\n\treturn 2;\n}\n")
        same(tidy(), (0, "2 files, 1 of them new or changed, 0 with problems"), "file changed")


if __name__ == "__main__":
    main(globals())
