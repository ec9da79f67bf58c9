#!/usr/bin/env python3
"""Converts keyed archives to JSON and back, and compares them with plistlib: classes, fields and values.

Every difference has to be in the report that `keepsake convert --json` prints, by its class and with its count. And an
object of a class of Foundation's has to have fields that its class has in the original files.

  Scripts/check-keyed.py --keepsake .build/debug/keepsake FOLDER...

With --pairs, they go through each of the other formats, and from each of them through each other one, instead.
With --lossy, they go through each of the other formats with `keepsake convert --lossy`, also after JSON in tagged form.
"""
import argparse
import collections
import json
import pathlib
import plistlib
import re
import subprocess
import sys
import tempfile


def is_keyed(path):
    try:
        with open(path, "rb") as file:
            archive = plistlib.load(file)
    except Exception:  # Not every file in the folder is a property list; only the readable ones are compared.
        return None
    return archive if isinstance(archive, dict) and "$objects" in archive and "$top" in archive else None


class Archive:
    def __init__(self, plist):
        self.objects = plist["$objects"]
        self.top = plist["$top"]

    def resolve(self, value):
        """Returns the value, and the number of the object that it is; None for one that is in place."""
        if isinstance(value, dict) and list(value) == ["CF$UID"]:
            value = plistlib.UID(value["CF$UID"])
        if isinstance(value, plistlib.UID):
            if value.data == 0 or value.data >= len(self.objects):
                return None, value.data
            return self.objects[value.data], value.data
        return value, None

    def class_of(self, value):
        if not isinstance(value, dict) or "$class" not in value:
            return None
        described, _ = self.resolve(value["$class"])
        return described.get("$classname") if isinstance(described, dict) else None


def shape(value):
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "number"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "text", bytes: "data", list: "list", dict: "dictionary"}.get(type(value), type(value).__name__)


def in_order(old, a, new, b):
    """Returns b with the pairs of its dictionary in the order of a, if both have the same texts as keys."""
    if not all(isinstance(value.get(key), list) for value in (a, b) for key in ("NS.keys", "NS.objects")):
        return b
    keys, others = ([archive.resolve(key)[0] for key in value["NS.keys"]] for archive, value in ((old, a), (new, b)))
    if not all(isinstance(key, str) for key in keys + others) or sorted(keys) != sorted(others):
        return b
    if len(set(keys)) != len(keys):
        return b
    order = [others.index(key) for key in keys]
    return {**b, "NS.keys": [b["NS.keys"][i] for i in order], "NS.objects": [b["NS.objects"][i] for i in order]}


def members(archive, value):
    """Returns what an object has, by the names that are shown: of a dictionary by its keys, else by its fields."""
    keys, values = value.get("NS.keys"), value.get("NS.objects")
    if isinstance(keys, list) and isinstance(values, list) and len(keys) == len(values):
        names = [archive.resolve(key)[0] for key in keys]
        if all(isinstance(name, str) for name in names):
            return dict(zip(names, values))
    return {key[1:] if key.startswith("$$") else key: item for key, item in value.items() if key != "$class"}


def by_names(old, a, new, b):
    """Whether these are dictionaries with different texts as keys."""
    if not all("NS.keys" in value and "NS.objects" in value for value in (a, b)):
        return False
    return members(old, a).keys() != members(new, b).keys()


def differences(old, new):
    """Yields (what, path) for every place where two archives differ, each object once."""
    work = []
    for key, value in old.top.items():
        if key in new.top:
            work.append((value, new.top[key], key))
        else:
            yield ("fields", key)
    met = set()
    while work:
        a, b, path = work.pop()
        (a, first), (b, second) = old.resolve(a), new.resolve(b)
        if first is not None and second is not None:
            if (first, second) in met:
                continue
            met.add((first, second))
        (one, other) = old.class_of(a), new.class_of(b)
        if one != other:
            yield (one or shape(a), path)
            # Below what came back as something else, only the same fields can be compared.
            if not (isinstance(a, dict) and isinstance(b, dict)):
                continue
            if a.keys() != b.keys():
                below, others = members(old, a), members(new, b)
                for key in below.keys() & others.keys():
                    is_nil = old.resolve(below[key])[0] is None
                    # What shows a field that is nil in a dictionary.
                    if not (is_nil and new.class_of(new.resolve(others[key])[0]) == "NSNull"):
                        work.append((below[key], others[key], f"{path}.{key}"))
                continue
        elif shape(a) != shape(b):
            yield (shape(a), path)
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            b = in_order(old, a, new, b)
            by_name = by_names(old, a, new, b)
            if by_name:
                below, others = members(old, a), members(new, b)
                for key, value in below.items():
                    if key in others:
                        work.append((value, others[key], f"{path}.{key}"))
                    else:
                        value, _ = old.resolve(value)
                        yield (old.class_of(value) or shape(value), f"{path}.{key}")
            for key, value in a.items():
                if key == "$class" or by_name and key in ("NS.keys", "NS.objects"):
                    continue
                if key in b:
                    work.append((value, b[key], f"{path}.{key}"))
                elif one == other:
                    yield ("fields", f"{path}.{key}")
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                yield ("list", path)
            work.extend((x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b)))
        elif one == other and a != b and not (shape(a) == "number" and float(a) == float(b)):
            yield (shape(a), path)


def fields(archive, found):
    for value in archive.objects:
        name = archive.class_of(value)
        if name:
            found[name].add(frozenset(key for key in value if key != "$class"))


# The formats of `keepsake convert`, by the extension that it knows them by.
FORMATS = {"json": "json", "xml": "plist", "binary": "bplist", "archive": "keepsake"}


def convert(keepsake, path, way, scratch):
    """Converts a file to each format of `way` in turn, with --lossy if it says so. Returns the last file, None if a
    conversion is refused, and what the reports tell, or the refusal."""
    losses = []
    for step, name in enumerate(way):
        name, *lossy = name.split(" ")
        target = f"{scratch}/{step}.{FORMATS.get(name, 'archive')}"
        run = subprocess.run(
            [keepsake, "convert", str(path), target, "--force", "--json", *lossy], capture_output=True, text=True)
        if run.returncode != 0:
            return None, json.loads(run.stdout)["error"]["code"]
        losses += json.loads(run.stdout).get("losses", [])
        path = target
    return path, losses


def tells(loss, what):
    """Whether a loss is about what differs: a class by its whole name, or the first word of what it says."""
    return re.match(rf"(value of the class )?{re.escape(what)}(?![\w.])", loss["what"]) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keepsake", required=True)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--lossy", action="store_true")
    arguments = parser.parse_args()
    ways = [["json"]]
    if arguments.pairs:
        ways = [[one] for one in FORMATS] + [[one, two] for one in FORMATS for two in FORMATS if one != two]
    if arguments.lossy:
        ways = [before + [one + " --lossy"] for before in ([], ["json"]) for one in FORMATS]
    ways = [way + ["keyed"] for way in ways]
    files = sorted(p for folder in arguments.folders for p in pathlib.Path(folder).rglob("*") if p.is_file())
    originals, written = collections.defaultdict(set), collections.defaultdict(set)
    compared = announced = refused = 0
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in files:
            plist = is_keyed(path)
            if plist is None:
                continue
            old = Archive(plist)
            fields(old, originals)
            for way in ways:
                name = f"{path.name} through {' and '.join(way[:-1])}"
                back, losses = convert(arguments.keepsake, path, way, scratch)
                if back is None:  # Refused, which loses nothing.
                    refused += 1
                    if losses not in ("data", "unwritable") or not (arguments.pairs or arguments.lossy):
                        problems.append(f"{name}: refused with {losses}")
                    continue
                compared += 1
                new = Archive(is_keyed(back))
                fields(new, written)
                counts = collections.Counter(what for what, _ in differences(old, new))
                for what, count in counts.items():
                    told = sum(loss["count"] for loss in losses if tells(loss, what))
                    if told < count:
                        example = next(p for w, p in differences(old, new) if w == what)
                        problems.append(f"{name}: {what} differs {count} times, told {told}, as at {example}")
                    else:
                        announced += count
    for name, shapes in sorted(written.items()):
        if name.startswith("NS"):
            known = set().union(*originals[name]) if originals[name] else None
            for one in shapes:
                if known is not None and not one <= known:
                    problems.append(f"{name} is written with fields that its class doesn't have: {sorted(one - known)}")
    for problem in problems:
        print(problem)
    print(
        f"{compared} keyed archives compared, {refused} refused, {announced} differences told, "
        f"{len(problems)} problems")
    sys.exit(1 if problems or compared == 0 else 0)


if __name__ == "__main__":
    main()
