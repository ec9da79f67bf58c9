#!/usr/bin/env python3
"""Plants the mistakes of Tests/Mutants, one at a time, and looks whether the tests that must notice them do.

All mistakes are compiled into one build, of a copy of this package in .build-mutants: there, each place of a mistake
asks at run time which one is planted. Then each is run alone with its suites, in a process of its own.

  Scripts/mutants.py                  all of them
  Scripts/mutants.py TEXT ...         those whose name or file contains one of the texts
  Scripts/mutants.py --write FOLDER   only writes the changed sources there, to look at them or to type-check them
  Scripts/mutants.py --check          only checks that each has its place in the sources

Exits with status 1 if one isn't noticed, and isn't listed as equivalent."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

try:
    import tomllib
except ImportError:
    sys.exit("Scripts/mutants.py needs Python 3.11 or later, for its module tomllib")

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "Tests" / "Mutants"
TREE = ROOT / ".build-mutants" / "package"
# As `make` exports them.
TRAITS = os.environ.get("TRAITS", "--traits Cloud").split()
HAS_POSTGRES = "PostgreSQL" in TRAITS[-1]
KEYS = {"name", "file", "after", "was", "now", "kind", "suites", "hurts", "equivalent", "only", "patience"}
# In every changed module. Public code that is inlined elsewhere may be changed, too, hence the attribute.
SWITCH = """import Foundation

@usableFromInline let mutantPlanted: String = ProcessInfo.processInfo.environment["KEEPSAKE_MUTANT"] ?? ""

@usableFromInline func mutant(_ name: String) -> Bool { mutantPlanted == name }
"""


def is_expression(text):
    """Whether a text may be one, as far as can be said without a compiler."""
    text = text.strip()
    return bool(text) and text[0] not in ",:" and text[-1] not in ",:" and all(
        text.count(one) == text.count(other) for one, other in ("()", "[]", "{}"))


class Mutant:
    """A mistake: a place in a file, and what stands there instead."""

    def __init__(self, values, source):
        self.source = source
        unknown = set(values) - KEYS
        missing = {"name", "file", "was", "now", "hurts"} - set(values)
        if unknown or missing:
            sys.exit(f"{source}: {values.get('name', '?')}: "
                     + (f"unknown {', '.join(sorted(unknown))}" if unknown else f"lacks {', '.join(sorted(missing))}"))
        self.name = values["name"]
        self.file = values["file"]
        self.after = values.get("after")
        self.was = values["was"].strip("\n")
        self.now = values["now"].strip("\n")
        self.kind = values.get("kind", "expression")
        self.suites = values.get("suites", [])
        self.hurts = values["hurts"]
        self.equivalent = values.get("equivalent")
        self.only = values.get("only")
        self.patience = values.get("patience", 0)
        if self.kind not in ("expression", "statement", "text"):
            sys.exit(f"{source}: {self.name}: kind is expression, statement or text (within a string literal)")
        if self.kind == "expression" and not all(is_expression(text) for text in (self.was, self.now)):
            sys.exit(f"{source}: {self.name}: was or now is no expression by itself: say kind, or choose another place")
        if not self.suites and not self.equivalent:
            sys.exit(f"{source}: {self.name}: names no suites")

    @property
    def room(self):
        return self.file.split("/")[1]

    def locate(self, text):
        """Where it begins and ends in the file."""
        start = 0
        if self.after is not None:
            start = text.find(self.after)
            if start < 0:
                raise ValueError(f"{self.name}: {self.file} has no {self.after!r}")
            start += len(self.after)
        found = text.find(self.was, start)
        if found < 0:
            behind = f" after {self.after!r}" if start else ""
            raise ValueError(f"{self.name}: {self.file} has no {self.was!r}{behind}")
        if self.after is None and text.find(self.was, found + 1) >= 0:
            raise ValueError(f"{self.name}: {self.was!r} stands in {self.file} more than once; say `after`")
        return found, found + len(self.was)

    def planted(self, original):
        if self.kind == "expression":
            return f'(mutant("{self.name}") ? ({self.now}) : ({original}))'
        if self.kind == "text":
            return f'\\(mutant("{self.name}") ? #"{self.now}"# : #"{original}"#)'
        return f'if mutant("{self.name}") {{\n{self.now}\n}} else {{\n{original}\n}}'


def load():
    mutants = []
    for path in sorted(FOLDER.glob("*.toml")):
        try:
            with path.open("rb") as file:
                values = tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            sys.exit(f"{path}: {error}")
        mutants += [Mutant(value, path.name) for value in values.get("mutant", [])]
    names = [mutant.name for mutant in mutants]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        sys.exit(f"two mutants are named {', '.join(sorted(twice))}")
    return mutants


def changed(text, mutants):
    """The text of a file with all its mutants, each behind the switch. One may be inside another."""
    places = sorted(((*mutant.locate(text), mutant) for mutant in mutants), key=lambda place: (place[0], -place[1]))

    def written(start, end, inside):
        result, position = [], start
        index = 0
        while index < len(inside):
            begin, finish, mutant = inside[index]
            if finish > end or begin < position:
                raise ValueError(f"{mutant.name} overlaps another mutant in {mutant.file}")
            here = index + 1
            while here < len(inside) and inside[here][0] < finish:
                here += 1
            result += [text[position:begin], mutant.planted(written(begin, finish, inside[index + 1:here]))]
            position, index = finish, here
        return "".join(result) + text[position:end]

    return written(0, len(text), places)


def sources(mutants):
    """The package's files with all mutants."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
        text=True).stdout.splitlines()
    wanted = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    problems = []
    for file in sorted({mutant.file for mutant in mutants}):
        if file not in wanted:
            problems.append(f"{file}: there is no such file")
            continue
        try:
            text = changed(wanted[file].decode(), [mutant for mutant in mutants if mutant.file == file])
            wanted[file] = text.encode()
        except ValueError as error:
            problems.append(str(error))
    if problems:
        sys.exit("\n".join(problems))
    for room in sorted({mutant.room for mutant in mutants}):
        wanted[f"Sources/{room}/MutantSwitch.swift"] = SWITCH.encode()
    return wanted


def write(tree, mutants):
    """Writes the package with all mutants to a folder. Leaves alone what is the same already, so that little is built
    again."""
    wanted = sources(mutants)
    tree.mkdir(parents=True, exist_ok=True)
    kept = set()
    for name, content in wanted.items():
        path = tree / name
        kept.add(path)
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        shutil.copymode(ROOT / name, path) if (ROOT / name).exists() else None
    for folder in ("Sources", "Tests", "Examples"):
        for path in (tree / folder).rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink()


def build():
    command = ["swift", "build", *TRAITS, "--build-tests"]
    # As the Makefile builds.
    environment = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}
    status = subprocess.run(command, cwd=TREE, env=environment).returncode
    if status != 0:
        sys.exit("the build with the mutants failed; a mutant has to be valid code of the same type")


def run(mutant, suites, patience):
    """Runs suites with a mutant planted: whether they noticed, by which test, and after how many seconds."""
    program = TREE / ".build" / "debug" / "keepsakePackageTests.xctest"
    command = [str(program), "--testing-library", "swift-testing"]
    if HAS_POSTGRES and (not mutant or mutant.startswith("postgres-")):
        command = [str(ROOT / "Scripts" / "with-postgres.sh"), *command]
    for suite in suites:
        command += ["--filter", suite]
    environment = {**os.environ, "KEEPSAKE_MUTANT": mutant}
    environment.setdefault("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", "4")
    # What a test waits for in vain is a mistake that it noticed.
    environment.setdefault("KEEPSAKE_PATIENCE", "30")
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=patience)
        hung = False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        hung = True
    took = time.monotonic() - began
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.decode(errors="replace"))
    ran = re.search(r"Test run with (\d+) tests?", text)
    if hung:
        return "hang", f"no end within {patience} s", took, text
    if process.returncode == 0:
        return ("survived" if ran and ran[1] != "0" else "empty"), "", took, text
    failed = re.findall(r'✘ Test (?:case passing .*? to )?"?(.*?)"? (?:recorded an issue|failed after)', text)
    failed = [name for name in failed if not name.startswith("run with")]
    if not failed and process.returncode < 0:
        return "crash", f"signal {-process.returncode}", took, text
    return "caught", failed[0] if failed else f"exit status {process.returncode}", took, text


def main():
    parser = argparse.ArgumentParser(description="Plants mistakes, and looks whether tests notice them.")
    parser.add_argument("texts", nargs="*", help="only mutants whose name or file contains one of these")
    parser.add_argument("--write", metavar="FOLDER", type=pathlib.Path, help="only write the changed sources there")
    parser.add_argument("--check", action="store_true", help="only check that each has its place")
    parser.add_argument("--skip-build", action="store_true", help="run what was built before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many run at the same time")
    parser.add_argument("--patience", type=int, default=120, help="seconds until a run counts as hung")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="also write the results there")
    options = parser.parse_args()
    mutants = load()
    if options.check:
        sources(mutants)
        print(f"{len(mutants)} mistakes can be planted")
        return
    if options.write:
        write(options.write, mutants)
        return
    if not options.skip_build:
        write(TREE, mutants)
        build()
    logs = ROOT / ".build-mutants" / "logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    chosen = [m for m in mutants
              if not m.equivalent and (HAS_POSTGRES or not m.name.startswith("postgres-"))
              and (not options.texts or any(t in m.name or t in m.file for t in options.texts))]
    # Whole worlds take minutes: they begin first.
    chosen.sort(key=lambda m: not any("SimulationTests" in suite for suite in m.suites))
    # First without any: what fails then would seem to notice everything.
    plain = sorted({suite for mutant in chosen for suite in mutant.suites})
    verdict, test, took, text = run("", plain, 3600)
    (logs / "none.log").write_text(text)
    if verdict != "survived":
        sys.exit(f"without any mutant, the suites don't pass: {verdict} {test}; see .build-mutants/logs/none.log")
    print(f"{len(chosen)} mutants; without any, their {len(plain)} suites pass in {took:.0f} s", flush=True)
    began = time.monotonic()
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = {
            pool.submit(run, mutant.name, mutant.suites, max(options.patience, mutant.patience)): mutant
            for mutant in chosen}
        for done in concurrent.futures.as_completed(pending):
            mutant = pending[done]
            verdict, test, took, text = done.result()
            results.append({"name": mutant.name, "room": mutant.room, "verdict": verdict, "test": test,
                            "seconds": round(took, 1), "only": mutant.only})
            if verdict != "caught":
                (logs / f"{mutant.name}.log").write_text(text)
            print(f"{len(results):4} of {len(chosen)}  {verdict:8} {took:6.1f} s  {mutant.name}: {test}", flush=True)
    minutes = (time.monotonic() - began) / 60
    report(mutants, chosen, results, minutes)
    if options.json:
        options.json.write_text(json.dumps(sorted(results, key=lambda result: result["name"]), indent=1))
    sys.exit(1 if any(result["verdict"] in ("survived", "empty") for result in results) else 0)


def report(mutants, chosen, results, minutes):
    print()
    print("| room | mutants | caught | by a crash | by a hang | survived | median seconds |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for room in [*sorted({result["room"] for result in results}), None]:
        rows = [result for result in results if room is None or result["room"] == room]
        count = {verdict: sum(row["verdict"] == verdict for row in rows)
                 for verdict in ("caught", "crash", "hang", "survived", "empty")}
        seconds = sorted(row["seconds"] for row in rows)
        print(f"| {room or '**all**'} | {len(rows)} | {count['caught']} | {count['crash']} | {count['hang']} "
              f"| {count['survived'] + count['empty']} | {seconds[len(seconds) // 2] if seconds else 0:.1f} |")
    print()
    for result in sorted(results, key=lambda result: result["name"]):
        if result["verdict"] in ("survived", "empty"):
            mutant = next(mutant for mutant in chosen if mutant.name == result["name"])
            print(f"{result['verdict']}: {mutant.name} ({mutant.file}): {mutant.hurts}")
    for mutant in mutants:
        if mutant.equivalent:
            print(f"equivalent: {mutant.name}: {mutant.equivalent}")
    print(f"{minutes:.1f} minutes")


if __name__ == "__main__":
    main()
