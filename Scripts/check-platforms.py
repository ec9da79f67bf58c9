#!/usr/bin/env python3
"""Type-checks the parts of Keepsake for other systems, against stubs of what those have (Tests/PlatformStubs).

The compiler here can't be told that it compiles for another system. So this script takes the branches of `#if` that a
system's compiler would take, and has each file with such a condition type-checked within its target. For Windows
it takes every file, and hides the functions of POSIX that Windows lacks: only KeepsakePlatform calls the system.

  Scripts/check-platforms.py             each system, after `swift build --traits Cloud`
  Scripts/check-platforms.py SYSTEM ...  these systems
  Scripts/check-platforms.py --plant     also misspells something in each system's part, which must be noticed
  Scripts/check-platforms.py --write FOLDER  only writes what a system's compiler would see

Exits with status 1 if something can't be compiled. It is no proof that it can be compiled there: a stub says what its
author read, nothing is linked, and what no stub declares is taken from Linux."""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUBS = ROOT / "Tests/PlatformStubs"
PLATFORM = "KeepsakePlatform"
# Those that run within a game. The server and the command are for Linux and macOS.
TARGETS = (PLATFORM, "KeepsakeArchive", "KeepsakeInterchange", "KeepsakeReplication", "KeepsakeStore", "KeepsakeSync",
           "Keepsake", "KeepsakeRecords")
# zstd has the same functions whichever module they come from, and this system has the one that Linux takes.
FLAGS = ["-swift-version", "6", "-D", "Cloud", "-D", "SYSTEM_ZSTD"] + [
    word for name in ("ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility")
    for word in ("-enable-upcoming-feature", name)]


class System:
    """What a system's compiler knows: its name, its C library's module, and the modules that can be imported."""

    def __init__(self, name, library, modules, libraries=(), condition=None, hides_everywhere=False):
        self.name, self.library = name, library
        # Whether what it lacks is hidden from the other targets, too.
        self.hides_everywhere = hides_everywhere
        self.condition = condition or name
        self.modules = set(modules) | {library}
        # The files that are compiled together with KeepsakePlatform.
        self.libraries = [STUBS / "Libraries" / f"{one}.swift" for one in libraries or (library,)]


APPLE = ("SwiftUI", "CoreGraphics", "simd", "Security")
IN_APPLE = ("Darwin", "Foundation-Apple")
# Elsewhere, URLSession has a module of its own.
ELSEWHERE = ("FoundationNetworking",)
SYSTEMS = [
    System("macOS", "Darwin", ("AppKit", *APPLE), IN_APPLE),
    System("iOS", "Darwin", ("UIKit", *APPLE), IN_APPLE),
    System("tvOS", "Darwin", ("UIKit", *APPLE), IN_APPLE),
    System("visionOS", "Darwin", ("UIKit", *APPLE), IN_APPLE),
    System("watchOS", "Darwin", ("UIKit", "WatchKit", *APPLE), IN_APPLE),
    System("Windows", "CRT", ("WinSDK", *ELSEWHERE), ("Windows",), hides_everywhere=True),
    System("Android", "Android", ELSEWHERE),
    # Swift's static SDK for Linux.
    System("Musl", "Musl", ELSEWHERE, condition="Linux"),
]
# Modules that stand for the C library of a system.
LIBRARIES = {system.library for system in SYSTEMS}

LIFECYCLE = "KeepsakePlatform/Lifecycle/LifecycleNotifications.swift"
# Misspellings for each system: in this file the first text becomes the second one.
PLANTS = {
    "macOS": [(LIFECYCLE, "willHideNotification", "willHidNotification")],
    "iOS": [("Keepsake/Credentials/KeychainStore.swift", "kSecAttrAccount", "kSecAttrAcount")],
    "tvOS": [("KeepsakePlatform/Lifecycle/ProcessActivity.swift", "withReason:", "reason:")],
    "visionOS": [("KeepsakePlatform/Files/FileTime.swift", "st_mtimespec", "st_mtimespecs")],
    "watchOS": [(LIFECYCLE, "WKApplication.didEnterBackground", "WKApplication.didEntersBackground")],
    "Windows": [
        ("Keepsake/Credentials/DataProtectionStore.swift", "CryptUnprotectData", "CryptUnprotectedData"),
        ("KeepsakePlatform/Files/SystemCall+WindowsFiles.swift", "MoveFileExW", "MoveFilesExW"),
        # Names of POSIX.
        ("KeepsakeStore/StoreLock.swift", "SystemCall.lockFile(descriptor)", "flock(descriptor, LOCK_EX)"),
        ("KeepsakeSync/Folder/Access/PlainFolder.swift", "SystemCall.removeFile(path)", "unlink(path)"),
    ],
    "Android": [("KeepsakePlatform/Signals/SignalAction.swift", "action.sa_handler", "action.__sa_handler")],
    "Musl": [("KeepsakePlatform/Signals/SignalAction.swift", "action.__sa_handler", "action.sa_handlers")],
}

SYSTEM_WORD = re.compile(r"\b(os|canImport|targetEnvironment)\s*\(")
DIRECTIVE = re.compile(r"^\s*#(if|elseif|else|endif)\b\s*(.*)$")
IMPORT = re.compile(r"^(.*\bimport\s+)(\w+)\s*$")


def is_true(condition, system):
    """What a condition of systems is for a system. Other words than those of systems aren't mixed in (FloorTests)."""
    words = {
        "os": lambda name: name == system.condition,
        "canImport": lambda name: name in system.modules,
        "targetEnvironment": lambda name: False,
        "arch": lambda name: name == "arm64",
    }

    def value(match):
        word, name = match.groups()
        return f" {words[word](name)} "

    text = re.sub(r"(\w+)\s*\(\s*(\w+)\s*\)", value, condition.split("//")[0])
    text = text.replace("!", " not ").replace("&&", " and ").replace("||", " or ")
    return eval(text, {"__builtins__": {}}, {})


def seen(text, system):
    """A file's text as the system's compiler sees it, with each line where it was; and whether that depends on it."""
    lines, depends = [], False
    # Of each open condition: whether it is the system's, whether its branch is taken, whether one was.
    open_ones = []
    for line in text.splitlines():
        directive = DIRECTIVE.match(line)
        if directive:
            word, condition = directive.groups()
            if word == "if":
                of_system = bool(SYSTEM_WORD.search(condition))
                depends |= of_system
                taken = is_true(condition, system) if of_system else True
                open_ones.append([of_system, taken, taken])
                keep = not of_system
            else:
                state = open_ones[-1]
                keep = not state[0]
                if state[0] and word == "elseif":
                    state[1] = not state[2] and is_true(condition, system)
                    state[2] |= state[1]
                elif state[0] and word == "else":
                    state[1] = not state[2]
                elif word == "endif":
                    open_ones.pop()
            lines.append(line if keep and all(state[1] for state in open_ones) else "")
            continue
        if not all(state[1] for state in open_ones):
            lines.append("")
            continue
        module = IMPORT.match(line)
        # The C library's declarations are compiled together with what imports it; the rest of it is glibc's.
        lines.append(module[1] + "Glibc" if module and module[2] in LIBRARIES else line)
    return "\n".join(lines) + "\n", depends


class Failure(Exception):
    pass


def run(arguments, what):
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        errors = re.findall(r"^\S.*error:.*$", done.stderr, re.M) or [done.stderr.strip()[-2000:]]
        raise Failure(f"{what}:\n  " + "\n  ".join(dict.fromkeys(errors)))


def build_modules(folder):
    """Compiles the stubs that are modules."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((STUBS / "Modules").glob("*.swift")):
        name = source.stem
        run(["swiftc", "-emit-module", "-parse-as-library", "-module-name", name, "-swift-version", "6",
             "-enable-upcoming-feature", "InternalImportsByDefault", source, "-o", folder / f"{name}.swiftmodule"],
            f"the stub {name}")


def write(target, system, folder, plant=None):
    """Writes a target's files as the system's compiler sees them; returns them all, and those that depend on it."""
    everything, depending = [], []
    for source in sorted((ROOT / "Sources" / target).rglob("*.swift")):
        text = source.read_text()
        name = str(source.relative_to(ROOT / "Sources"))
        if plant and plant[0] == name:
            if plant[1] not in text:
                raise Failure(f"{name} has no {plant[1]} that could be misspelt")
            text = text.replace(plant[1], plant[2], 1)
        text, depends = seen(text, system)
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(f'#sourceLocation(file: "Sources/{name}", line: 1)\n{text}')
        everything.append(copy)
        if depends and text.strip():
            depending.append(copy)
    return everything, depending


def check(target, system, build, modules, folder, plant=None):
    """Type-checks what of a target depends on the system; returns how many files that were."""
    everything, depending = write(target, system, folder, plant)
    if target == PLATFORM or system.hides_everywhere:
        # All of it may use what hides glibc's declarations.
        depending, extra = everything, system.libraries
        everything = everything + extra
    if not depending:
        return 0
    primary = [word for file in depending for word in ("-primary-file", file)]
    others = [file for file in everything if file not in depending]
    # The stubs of other systems' modules aren't to be found.
    allowed = folder / "modules"
    allowed.mkdir(parents=True, exist_ok=True)
    for module in system.modules:
        stub = modules / f"{module}.swiftmodule"
        if stub.exists():
            shutil.copy(stub, allowed)
    run(["swiftc", "-frontend", "-typecheck", "-parse-as-library", *FLAGS, "-package-name", package_name(build),
         "-module-name", target, "-I", allowed, "-I", build / "Modules", *c_modules(build),
         "-plugin-path", plugins(), "-load-plugin-executable", f"{build}/KeepsakeMacros-tool#KeepsakeMacros",
         *primary, *others],
        f"{system.name}: {target}")
    return len(depending)


def plugins():
    """The macros of the compiler's own libraries."""
    return pathlib.Path(shutil.which("swiftc")).resolve().parent.parent / "lib/swift/host/plugins"


def package_name(build):
    """The package manager calls a package by its folder."""
    return re.sub(r"[^a-z0-9_]", "_", build.parents[2].name.lower())


def c_modules(build):
    """What a target that was built for this system was told about C modules."""
    words = []
    checkouts = build.parent.parent / "checkouts"
    for map_file in sorted({*ROOT.glob("Sources/*/module.modulemap"), *build.glob("*.build/module.modulemap"),
                            *checkouts.glob("*/Sources/GRDBSQLite/module.modulemap")}):
        words += ["-Xcc", f"-fmodule-map-file={map_file}"]
    return words


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("systems", nargs="*", metavar="SYSTEM")
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("--write", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / ".build/debug")
    arguments = parser.parse_args()
    known = {system.name.lower(): system for system in SYSTEMS}
    unknown = [name for name in arguments.systems if name.lower() not in known]
    if unknown:
        parser.error(f"there is no system {unknown[0]}; there are {', '.join(system.name for system in SYSTEMS)}")
    systems = [known[name.lower()] for name in arguments.systems] or SYSTEMS
    if arguments.write:
        for system in systems:
            for target in TARGETS:
                write(target, system, arguments.write / system.name)
        return 0
    build = arguments.build.resolve()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        build_modules(folder / "modules")
        for system in systems:
            counts = []
            for target in TARGETS:
                try:
                    counts.append(check(target, system, build, folder / "modules", folder / system.name))
                except Failure as failure:
                    failures.append(str(failure))
            print(f"{system.name}: {sum(counts)} files", flush=True)
            for plant in PLANTS[system.name] if arguments.plant and not failures else ():
                target, place = plant[0].split("/")[0], folder / f"{system.name}-plant"
                try:
                    check(target, system, build, folder / "modules", place, plant)
                except Failure as failure:
                    if re.match(r"\w+", plant[2].split(".")[-1])[0] not in str(failure):
                        failures.append(f"{system.name}: something else than {plant[2]} was noticed: {failure}")
                else:
                    failures.append(f"{system.name}: {plant[2]} in {plant[0]} wasn't noticed")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
