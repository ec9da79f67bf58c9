#!/usr/bin/env python3
"""Kills two mirrors again and again while real saves are written into both folders,
and then counts what became of them.

    KEEPSAKE_CORPUS=folder Scripts/sync-torture.py --keepsake .build/debug/keepsake --kills 200 --seed 1

Checked at the end, after both sides ran until nothing was owed:
- the folders are identical, and nothing temporary is left in them;
- every file is, byte for byte, something that was once written there whole;
- a file that only one side wrote is as that side left it;
- every save that something other than its own writer took off the disk, every one that stood still for some seconds,
  and every last one, is in the history.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sync_harness import Harness, HarnessError, overwrite, replace  # noqa: E402

# A store keeps the twenty newest versions of a slot; beyond this many writes the oldest could rightly be gone.
WRITES_PER_FILE = 15

# Seconds after which a save that stands still beside a running mirror must be in its history, on a busy machine too.
SURELY_KEPT = 4.0


def load_saves(corpus, largest):
    saves = []
    for folder, folders, names in os.walk(os.path.join(corpus, "saves")):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.getsize(path) <= largest:
                with open(path, "rb") as file:
                    saves.append(file.read())
    return saves


def sha(data):
    return hashlib.sha256(data).hexdigest()


class World:
    """What a game wrote where, and what must therefore be found."""

    def __init__(self, sides, saves, source):
        self.sides, self.saves, self.source = sides, saves, source
        self.count = 0
        self.paths = {side.name: ["%s/save-%02d" % (side.name, index) for index in range(18)] for side in sides}
        self.shared = ["shared/save-%d.dat" % index for index in range(10)]
        self.last = {}  # (side, path) -> hash of what was written last, None for a delete
        self.written = {}  # path -> hashes ever written whole
        self.writers = {}  # path -> sides
        self.writes = {}  # path -> count
        self.deletes = 0
        self.must = {}  # path -> hashes that the history must have
        self.since = {}  # (side, path) -> when it was written

    def choose(self, side):
        paths = self.shared if self.source.random() < 0.2 else self.paths[side.name]
        free = [path for path in paths if self.writes.get(path, 0) < WRITES_PER_FILE]
        return self.source.choice(free) if free else None

    def act(self, side):
        path = self.choose(side)
        if path is None:
            return
        full = os.path.join(side.folder, path)
        self.witness(side, path, full)
        self.writes[path] = self.writes.get(path, 0) + 1
        self.writers.setdefault(path, set()).add(side.name)
        if self.source.random() < 0.07 and os.path.exists(full):
            try:
                os.remove(full)
            except FileNotFoundError:
                pass
            self.last[side.name, path] = None
            self.deletes += 1
            return
        self.count += 1
        # Numbered, so that each save ever written is told from all others.
        data = self.source.choice(self.saves) + b"\n#%d of %s" % (self.count, side.name.encode())
        if self.source.random() < 0.5:
            replace(full, data)
        else:
            overwrite(full, data, self.source.random() * 0.01)
        self.written.setdefault(path, set()).add(sha(data))
        self.last[side.name, path] = sha(data)
        self.since[side.name, path] = time.monotonic()

    def witness(self, side, path, full):
        """If the save that this side wrote last is no longer on its disk, the mirror took it: it must have kept it."""
        mine = self.last.get((side.name, path))
        if mine is None:
            return
        try:
            with open(full, "rb") as file:
                there = sha(file.read())
        except FileNotFoundError:
            there = None
        # Or it lay there undisturbed for so long that the mirror must have seen it.
        undisturbed = time.monotonic() - max(self.since[side.name, path], side.started)
        if there != mine or undisturbed > SURELY_KEPT:
            self.must.setdefault(path, set()).add(mine)

    def close(self):
        """What stands last on a side must be found as well: nothing but the mirror can take it away any more."""
        for (_, path), mine in self.last.items():
            if mine is not None:
                self.must.setdefault(path, set()).add(mine)

    def violations(self, files, history):
        found = []
        for path, data in sorted(files.items()):
            if sha(data) not in self.written.get(path, set()):
                found.append("%s contains %d bytes that were never written there as a whole" % (path, len(data)))
        for path, writers in sorted(self.writers.items()):
            if len(writers) > 1:
                continue
            last = self.last[next(iter(writers)), path]
            stands = sha(files[path]) if path in files else None
            if stands != last:
                found.append("%s is not what its only writer left: %s instead of %s" % (path, stands, last))
        for path, hashes in sorted(self.must.items()):
            for one in sorted(hashes - history.get(path, set())):
                found.append("%s lost the save %s" % (path, one))
        return found


def read_history(side):
    """Path -> (hashes, versions)."""
    hashes, versions, conflicts = {}, 0, 0
    for slot in side.query("history", side.state())["slots"]:
        path = slot["slot"].removeprefix("file:")
        versions += len(slot["versions"])
        conflicts += 1 if len(slot["heads"]) > 1 else 0
        hashes[path] = {version["sha256"] for version in slot["versions"] if version.get("sha256")}
    return hashes, versions, conflicts


def torture(world, sides, kills, source, say):
    for side in sides:
        if not side.process.alive:
            raise HarnessError("%s is not running" % side.name)
    for number in range(1, kills + 1):
        for _ in range(source.choice([0, 1, 1, 2, 4])):
            world.act(source.choice(sides))
        # Often soon after a start, sometimes late enough for an exchange to be under way or over.
        time.sleep(source.choice([0.02, 0.1, 0.3, 0.6, 1.2]) * source.random() * 1.5)
        side = source.choice(sides)
        if not side.process.alive:
            code = side.process.process.wait()
            raise HarnessError("%s ended by itself with status %d before kill %d" % (side.name, code, number))
        side.process.kill()
        if source.random() < 0.3:
            world.act(side)
        side.start()
        if number % 20 == 0:
            say("%d kills, %d saves written" % (number, world.count))


def settle(sides, say):
    """Both sides by turns until they agree."""
    for side in sides:
        side.process.stop()
        side.process = None
    ends = {}
    for turn in range(6):
        for side in sides:
            ends[side.name] = side.once()
        if turn > 0 and sides[0].files() == sides[1].files():
            say("folders agree after %d turns" % (turn + 1))
            return ends
    return ends


def run(arguments, root, say):
    source = random.Random(arguments.seed)
    saves = load_saves(arguments.corpus, arguments.largest)
    with Harness(arguments.keepsake, root, arguments.interval) as harness:
        one, two = harness.add("one"), harness.add("two")
        sides = [one, two]
        harness.pair(one, two)
        world = World(sides, saves, source)
        began = time.monotonic()
        torture(world, sides, arguments.kills, source, say)
        seconds = time.monotonic() - began
        ends = settle(sides, say)
        world.close()
        histories = [read_history(side) for side in sides]
        files = [side.files() for side in sides]
        violations = []
        if files[0] != files[1]:
            paths = set(files[0]) | set(files[1])
            differing = sorted(path for path in paths if files[0].get(path) != files[1].get(path))
            violations.append("the folders differ in " + ", ".join(differing[:10]))
        violations += ["left behind: " + path for side in sides for path in side.temporaries()]
        merged = {}
        for hashes, _, _ in histories:
            for path, found in hashes.items():
                merged.setdefault(path, set()).update(found)
        violations += world.violations(files[0], merged)
    halves = sum(len(found - world.written.get(path, set())) for path, found in merged.items())
    return {
        "seed": arguments.seed, "kills": arguments.kills, "seconds": round(seconds, 1), "savesWritten": world.count,
        "deletes": world.deletes, "files": len(files[0]), "mustBeFound": sum(map(len, world.must.values())),
        "versions": [versions for _, versions, _ in histories],
        "slotsWithSeveralHeads": [conflicts for _, _, conflicts in histories], "incompleteVersionsInHistory": halves,
        "ends": ends, "violations": violations, "passed": not violations,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keepsake", required=True, help="the built command")
    parser.add_argument("--corpus", default=os.environ.get("KEEPSAKE_CORPUS"))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=int, default=100, help="milliseconds between checks of a folder")
    parser.add_argument("--largest", type=int, default=1 << 20, help="leave out larger saves, in bytes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    parser.add_argument("--skip-without-corpus", action="store_true", help="without real saves, print that and succeed")
    arguments = parser.parse_args()
    if not arguments.corpus:
        if arguments.skip_without_corpus:
            print("skipped: KEEPSAKE_CORPUS is not set")
            return 0
        print("set KEEPSAKE_CORPUS, or give --corpus: a folder of real saves", file=sys.stderr)
        return 1
    arguments.keepsake = os.path.abspath(arguments.keepsake)
    root = tempfile.mkdtemp(prefix="keepsake-torture-")
    say = (lambda _: None) if arguments.json else (lambda text: print(text, flush=True))
    try:
        result = run(arguments, root, say)
        if arguments.json:
            print(json.dumps(result, indent=2))
        else:
            for key, value in result.items():
                if key not in ("violations", "ends"):
                    print("%-28s %s" % (key, value))
            for violation in result["violations"]:
                print("VIOLATION " + violation)
        arguments.keep |= not result["passed"]
        if arguments.keep:
            print("kept in " + root, file=sys.stderr)
        return 0 if result["passed"] else 1
    except HarnessError as error:
        arguments.keep = True
        print("failed: %s (seed %d, logs in %s)" % (error, arguments.seed, root), file=sys.stderr)
        return 1
    finally:
        if not arguments.keep:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
