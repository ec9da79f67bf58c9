#!/usr/bin/env python3
"""Converts keyed archives with `keepsake convert`, back again, and compares what came back with what there was.

This compares object by object, reading both files with plistlib: classes and those above them, fields, values, and
which objects are one. Every difference has to be in the report that `keepsake convert --json` prints, in its words and
as often as here, and the report has to have no others. Where a value comes back as a text or a date, it has to be the
right one; how many values of each kind that are is not counted here. And an object of a class of Foundation's has to
have exactly the fields that an object of its class has in one of the files of the folders.

  Scripts/check-keyed.py --keepsake .build/debug/keepsake [FOLDER...] [--random COUNT]

They go through JSON. With --pairs, they go through each of the other formats, and from each of them through each other
one, instead. With --lossy, through each of the other formats with `keepsake convert --lossy`, also after JSON in tagged
form. With --random, so many archives of random objects are made, and go the same ways.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from keyed_archives import Archive, is_keyed, write_random
from keyed_comparison import Comparison

# The formats of `keepsake convert` beside keyed archives.
FORMATS = ["json", "xml", "binary", "archive"]

# What is lost where values are written. Much of it is a difference between the objects, too, and then also reported as
# such, in the words that are counted here.
OF_VALUES = {
    "numbers that aren't finite, as text", "decimal numbers, as text", "data, as base64", "UUIDs, as text",
    "URLs, as text", "sets, as lists", "nulls, left out", "UIDs, as numbers", "dates, as text",
    "dates beyond the calendar, as seconds since 2001", "fractions of seconds, left out",
    "parts of milliseconds, left out",
    "references to an object that is written elsewhere, as copies of it", "whole numbers as keys, as text",
    "keys that aren't text, as lists of pairs", "keys that occur twice, of which most readers use the last",
    # plistlib has one type for both.
    "numbers of 32 bits, which come back with 64",
}

# Classes of Foundation's that are written though no original file may have them, and with which fields.
UNSEEN = {
    # The text that stands for nil where it is an object itself. Foundation on Linux reads it (FoundationRewriteTests).
    "NSString": {frozenset({"NS.string"})},
}


# The least share of conversions that give a file: what is refused is compared with nothing. Those to an archive don't
# count without --lossy: it has no classes, and refuses nearly all.
LEAST_SHARE = 0.75


class Step:
    """All files in one format: their paths, and what the reports of converting them there tell."""

    def __init__(self, name, paths):
        self.name, self.paths, self.told, self.refused = name, paths, {}, {}

    def convert(self, keepsake, scratch, target, *options):
        name = " and ".join(([self.name] if self.name else []) + [" ".join([target, *options])])
        folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
        step = Step(name, {})
        if not self.paths:
            return step
        numbers = {str(path): number for number, path in self.paths.items()}
        run = subprocess.run(
            [keepsake, "convert", "--json", "--to", target, *options, *numbers, f"{folder}/"],
            capture_output=True, text=True)
        try:
            answers = json.loads(run.stdout)["files"]
        except (ValueError, KeyError):
            sys.exit(f"{name}: ended with {run.returncode}: {run.stdout[-500:]} {run.stderr[-500:]}")
        for answer in answers:
            number = numbers[answer["path"]]
            if "error" in answer:
                step.refused[number] = answer["error"]["code"]
            else:
                step.paths[number] = pathlib.Path(answer["result"]["output"])
                losses = collections.Counter()
                for loss in answer["result"]["losses"]:
                    losses[loss["what"]] += loss["count"]
                step.told[number] = losses
        return step


class Check:
    def __init__(self, keepsake, folders, made, scratch):
        self.keepsake, self.scratch = keepsake, scratch
        self.originals, self.written = collections.defaultdict(set), collections.defaultdict(set)
        self.compared = self.announced = self.refused = self.refused_by_archives = 0
        self.problems, self.names = [], []
        files = sorted(p for folder in [*folders, made] for p in pathlib.Path(folder).rglob("*") if p.is_file())
        # Random archives have fields that no archiver writes.
        self.found = {number for number, path in enumerate(files) if made not in path.parents}
        paths = {}
        for number, path in enumerate(files):
            self.names.append(path.name)
            plist = is_keyed(path)
            if plist is None:
                continue
            if number in self.found:
                Archive(plist).note_fields(self.originals)
            # In a folder, a converted file has the name of the original.
            paths[number] = pathlib.Path(scratch) / f"{number}.in"
            paths[number].symlink_to(path.resolve())
        self.base = Step("", paths)

    def convert(self, step, target, *options):
        return step.convert(self.keepsake, self.scratch, target, *options)

    def compare(self, before, keyed_before, after, keyed, may_refuse):
        """Compares the files in two formats, once they are keyed archives again, with the reports of converting them
        from one to the other."""
        for number in before.paths:
            name = f"{self.names[number]} through {after.name}"
            code = after.refused.get(number) or keyed.refused.get(number)
            if code:  # Refused, which loses nothing.
                self.refused += 1
                self.refused_by_archives += after.name.endswith("archive")
                if code != "data" or not may_refuse or number in keyed.refused:
                    self.problems.append(f"{name}: refused with {code}")
                continue
            self.compared += 1
            old, new = (Archive(is_keyed(step.paths[number])) for step in (keyed_before, keyed))
            if number in self.found:
                new.note_fields(self.written)
            difference = Comparison(old, new, "--lossy" not in after.name and "archive" not in after.name)
            self.problems += [f"{name}: {what}" for what in difference.misspelled]
            # What a file in tagged form says that isn't written so is told again by each conversion from it.
            told = after.told[number] - (keyed_before.told.get(number) or collections.Counter())
            copies = "references to an object that is written elsewhere, as copies of it"
            for what, count in (("nulls, left out", difference.nils), (copies, int(difference.copies > 0))):
                if told[what] < count:
                    self.problems.append(f"{name}: {what}: {count} times or more, told {told[what]}")
            for what in OF_VALUES:
                del told[what]
            for what in sorted(difference.counts.keys() | told.keys()):
                count = difference.counts[what]
                self.announced += min(count, told[what])
                if count != told[what]:
                    place = f", as at {difference.paths[what]}" if count else ""
                    self.problems.append(f"{name}: {what}: {count} times, told {told[what]}{place}")

    def check_fields(self):
        for name, shapes in sorted(self.written.items()):
            if not name.startswith(("NS", "UI")):
                continue
            known = self.originals[name] or UNSEEN.get(name)
            if not known:
                self.problems.append(f"{name} is written, but no original file has an object of this class")
                continue
            for one in shapes - known:
                self.problems.append(f"{name} is written with fields that no original has: {sorted(one)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keepsake", required=True)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--lossy", action="store_true")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch) / "random"
        write_random(made, arguments.random, arguments.seed)
        check = Check(arguments.keepsake, arguments.folders, made, scratch)
        base = check.base
        may_refuse = arguments.pairs or arguments.lossy
        options = ["--lossy"] if arguments.lossy else []
        starts = {}
        for target in FORMATS if may_refuse else ["json"]:
            step = check.convert(base, target, *options)
            starts[target] = (step, check.convert(step, "keyed"))
            check.compare(base, base, *starts[target], may_refuse)
        if arguments.lossy:
            step = check.convert(base, "json")
            starts = {"json": (step, check.convert(step, "keyed"))}
        for one, (step, keyed) in starts.items() if may_refuse else ():
            for target in FORMATS:
                if target == one and not arguments.lossy:
                    continue
                after = check.convert(step, target, *options)
                check.compare(step, keyed, after, check.convert(after, "keyed"), may_refuse)
        check.check_fields()
    refused = check.refused - check.refused_by_archives
    if check.compared < LEAST_SHARE * (check.compared + refused):
        check.problems.append(f"{refused} conversions were refused, of {check.compared + refused}")
    for problem in check.problems:
        print(problem)
    print(
        f"{check.compared} keyed archives compared, {check.refused} refused, {check.announced} differences told, "
        f"{len(check.problems)} problems, {time.monotonic() - began:.0f} s")
    sys.exit(1 if check.problems or check.compared == 0 else 0)


if __name__ == "__main__":
    main()
