#!/usr/bin/env python3
"""What the compiler says of declarations that @Archivable and its relatives refuse. Each cell, a mistake in one shape
of declaration, is compiled in a process of its own: the compiler must not crash, and the first error must be ours, on
the line of the mistake, in the words of macro_cases.py. The macros' own tests see neither types nor the compiler.

Needs what `make build` built, or another build folder with Modules and KeepsakeMacros-tool. Exits with status 1 if a
cell isn't as expected."""
import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

from macro_cases import CASES, TYPES

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRASH = re.compile(r"Assertion failed|Stack dump|Please submit a bug report|fatal error encountered")
OURS = re.compile(r" \(from macro '\w+ ?'\)$")
FINDING = re.compile(r"^(.*?):(\d+):\d+: (error|warning): (.*)$")


def declared(case, head, before="", after="", more=""):
    """The declaration of a case: `{}` in `head` are the arguments of @Archivable. `more` are other members."""
    body = "\n".join("  " + line for line in (more + "\n" + case.members).strip().splitlines())
    return f"{before}\n{head.replace('{}', case.arguments)} {{\n{body}\n}}\n{after}\n"


def parent(case, head, generic="", mark="@Archivable ", more=""):
    """A class with a subclass, which is listed."""
    listed = ", ".join(filter(None, [case.arguments, "subclasses: [Sub.self]"]))
    arguments = "({})" if "subclasses:" in case.arguments else f"({listed})"
    isolated = "@MainActor " if "@MainActor" in head else ""
    sub = f"{isolated}{mark}class Sub: Game{generic} {{\n  var own = 1\n}}"
    return declared(case, head.replace("({})", arguments), after=sub, more=more)


def inside(text):
    return "enum Outer {\n" + "\n".join("  " + line for line in text.splitlines()) + "\n}\n"


BASE = "@Archivable(subclasses: [Game.self]) class Base {\n  var base = 1\n}"
GENERIC = "var generic: Value?"

# The shapes of a declaration, by the kind of case that they fit.
SHAPES = {
    "struct": {
        "struct": lambda c: declared(c, "@Archivable({}) struct Game"),
        "generic struct": lambda c: declared(c, "@Archivable({}) struct Game<Value>", more=GENERIC),
        "nested struct": lambda c: inside(declared(c, "@Archivable({}) fileprivate struct Game")),
        "isolated struct": lambda c: declared(c, "@MainActor @Archivable({}) struct Game"),
    },
    "enum": {
        "enum": lambda c: declared(c, "@Archivable({}) enum Game"),
        "generic enum": lambda c: declared(c, "@Archivable({}) enum Game<Value>", more="case generic(Value)"),
        "nested enum": lambda c: inside(declared(c, "@Archivable({}) fileprivate enum Game")),
        "isolated enum": lambda c: declared(c, "@MainActor @Archivable({}) enum Game"),
    },
    "final": {
        "final class": lambda c: declared(c, "@Archivable({}) final class Game"),
        "generic final class": lambda c: declared(
            c, "@Archivable({}) final class Game<Value: Archivable>", more=GENERIC),
        "nested final class": lambda c: inside(declared(c, "@Archivable({}) fileprivate final class Game")),
        "isolated final class": lambda c: declared(c, "@MainActor @Archivable({}) final class Game"),
    },
    "open": {
        "class": lambda c: declared(c, "@Archivable({}) class Game"),
        "class with subclass": lambda c: parent(c, "@Archivable({}) class Game"),
        "class with plain subclass": lambda c: parent(c, "@Archivable({}) class Game", mark=""),
        "generic class with subclass": lambda c: parent(
            c, "@Archivable({}) class Game<Value: Archivable>", generic="<Int>", more=GENERIC),
        "nested class with subclass": lambda c: inside(parent(c, "@Archivable({}) class Game")),
        "isolated class with subclass": lambda c: parent(c, "@MainActor @Archivable({}) class Game"),
        "isolated class with plain subclass": lambda c: parent(c, "@MainActor @Archivable({}) class Game", mark=""),
    },
    "child": {
        "subclass": lambda c: declared(c, "@Archivable({}) class Game: Base", before=BASE),
        "subclass with subclass": lambda c: declared(
            c, "@Archivable({}) class Game: Base", before=BASE,
            after="@Archivable class Sub: Game {\n  var own = 1\n}"),
        "generic subclass": lambda c: declared(
            c, "@Archivable({}) class Game<Value: Archivable>: Base",
            before=BASE.replace("Game", "Game<Int>"), more=GENERIC),
        "nested subclass": lambda c: inside(declared(c, "@Archivable({}) class Game: Base", before=BASE)),
        "isolated subclass": lambda c: declared(
            c, "@MainActor @Archivable({}) class Game: Base", before="@MainActor " + BASE),
    },
    "finalchild": {
        "final subclass": lambda c: declared(c, "@Archivable({}) final class Game: Base", before=BASE),
        "generic final subclass": lambda c: declared(
            c, "@Archivable({}) final class Game<Value: Archivable>: Base",
            before=BASE.replace("Game", "Game<Int>"), more=GENERIC),
        "nested final subclass": lambda c: inside(declared(c, "@Archivable({}) final class Game: Base", before=BASE)),
        "isolated final subclass": lambda c: declared(
            c, "@MainActor @Archivable({}) final class Game: Base", before="@MainActor " + BASE),
    },
    "unconstrained": {
        "generic class": lambda c: declared(c, "@Archivable({}) class Game<Value>"),
        "generic class with subclass": lambda c: parent(c, "@Archivable({}) class Game<Value>", generic="<Int>"),
        "nested generic class with subclass": lambda c: inside(
            parent(c, "@Archivable({}) class Game<Value>", generic="<Int>")),
        "isolated generic class with subclass": lambda c: parent(
            c, "@MainActor @Archivable({}) class Game<Value>", generic="<Int>"),
    },
    "constrained": {
        "class of an Equatable": lambda c: declared(c, "@Archivable({}) class Game<Value: Equatable>"),
        "class of an Equatable with subclass": lambda c: parent(
            c, "@Archivable({}) class Game<Value: Equatable>", generic="<Int>"),
        "isolated class of an Equatable": lambda c: declared(
            c, "@MainActor @Archivable({}) class Game<Value: Equatable>"),
    },
    "packs": {
        "struct of a pack": lambda c: declared(c, "@Archivable({}) struct Game<each Value>"),
        "struct of a value": lambda c: declared(c, "@Archivable({}) struct Game<let count: Int>"),
        "class of a value with subclass": lambda c: parent(c, "@Archivable({}) class Game<let count: Int>", "<3>"),
        "nested enum of a value": lambda c: inside(
            declared(c, "@Archivable({}) enum Game<let count: Int>").replace("var x = 1", "case one")),
    },
    # Without generics: of those, only the conformance is checked.
    "plain": {
        "class": lambda c: declared(c, "@Archivable({}) class Game"),
        "subclass": lambda c: declared(c, "@Archivable({}) class Game: Base", before=BASE),
        "nested subclass": lambda c: inside(declared(c, "@Archivable({}) class Game: Base", before=BASE)),
        "isolated class": lambda c: declared(c, "@MainActor @Archivable({}) class Game"),
    },
    "actor": {"actor": lambda c: declared(c, "@Archivable({}) actor Game")},
}
SHAPES["class"] = SHAPES["final"] | SHAPES["open"] | SHAPES["child"]


def cells():
    """All cells: a case in a shape, with its source."""
    found = []
    for case in CASES:
        for kind in case.kinds.split():
            for shape, source in SHAPES[kind].items():
                text = source(case).replace("@Archivable()", "@Archivable")
                found.append((case, shape, f"import KeepsakeArchive\n{TYPES}{case.types}\n{text}"))
    return found


def selection(found):
    """One cell for each diagnostic, each in the shape that those before it used least."""
    chosen, uses = [], collections.Counter()
    for name in dict.fromkeys(case.id for case in CASES):
        own = [cell for cell in found if cell[0].id == name]
        cell = min(own, key=lambda cell: uses[cell[1]])
        uses[cell[1]] += 1
        chosen.append(cell)
    return chosen


def problem(cell, build, folder):
    """Compiles a cell; returns what isn't as expected, or None."""
    case, shape, source = cell
    file = folder / "game.swift"
    file.write_text(source)
    command = [
        "swiftc", "-typecheck", "-swift-version", "6", "-diagnostic-style", "llvm", "-I", str(build / "Modules"),
        "-load-plugin-executable", f"{build / 'KeepsakeMacros-tool'}#KeepsakeMacros", str(file),
    ]
    run = subprocess.run(command, capture_output=True, text=True)
    output = run.stdout + run.stderr
    if run.returncode not in (0, 1) or CRASH.search(output):
        return f"the compiler crashed ({run.returncode}): {output.splitlines()[0] if output else 'no output'}"
    findings = [match.groups() for match in map(FINDING.match, output.splitlines()) if match]
    errors = [finding for finding in findings if finding[2] == "error"]
    if case.level == "none":
        return f"nothing was expected: {findings[0][3]}" if findings or run.returncode else None
    if case.level == "warning" and errors:
        return f"only a warning was expected: {errors[0][3]}"
    found = [finding for finding in findings if finding[2] == case.level]
    if not found:
        return f"no {case.level}"
    path, line, _, text = found[0]
    text = OURS.sub("", text)
    # The name of an unavailable or deprecated function comes first, and the warning's group last.
    text = re.sub(r"^'[^']*' is (unavailable|deprecated): ", "", text.removesuffix(" [#DeprecatedDeclaration]"))
    if text != case.text:
        return f"the first {case.level} is: {text}"
    if path != str(file):
        return f"it is shown in {path}:{line}"
    shown = source.splitlines()[int(line) - 1]
    if case.line not in shown:
        return f"it is shown on the line: {shown.strip()}"
    others = [finding[3] for finding in found[1:] if not OURS.search(finding[3])]
    return f"another {case.level} follows: {others[0]}" if others and case.alone else None


def unlisted():
    """The diagnostics of the macros that no case shows."""
    source = (ROOT / "Sources/KeepsakeMacros/ArchivableDiagnostic.swift").read_text()
    names = re.findall(r"^  case (\w+)", source, re.MULTILINE)
    return [name for name in names if all(case.id != name for case in CASES)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build/debug", help="the build folder")
    parser.add_argument("--all", action="store_true", help="every cell, instead of one for each diagnostic")
    parser.add_argument("--only", help="cells whose case or shape contains this text")
    parser.add_argument("--show", action="store_true", help="print the table also where all cells are as expected")
    options = parser.parse_args()
    found = cells()
    if options.only:
        found = [cell for cell in found if options.only in cell[0].id or options.only in cell[1]]
    elif not options.all:
        found = selection(found)
    failures = [f"no case shows the diagnostic {name}" for name in unlisted()]
    if not found:
        failures.append("no cell was selected")
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folders = [pathlib.Path(work) / str(index) for index in range(len(found))]
        for folder in folders:
            folder.mkdir()
        problems = list(pool.map(lambda pair: problem(pair[0], options.build, pair[1]), zip(found, folders)))
    for (case, shape, source), wrong in zip(found, problems):
        if options.show:
            print(f"{'wrong' if wrong else 'ok':6}{case.id:26}{shape:38}{case.members.splitlines()[0][:60]}")
        if wrong:
            failures.append(f"{case.id}, {shape}: {wrong}\n{source if options.show else ''}")
    for failure in failures:
        print(failure)
    wrong = sum(1 for each in problems if each)
    print(f"{len(found) - wrong} of {len(found)} cells as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
