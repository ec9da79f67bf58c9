#!/usr/bin/env python3
"""Sends series of real saves through two mirrored folders and compares the bytes on the wire with what zstd needs.

Each file of a series is copied over the same name in folder one, and waited for in folder two. The limit of a series is
twice what `zstd -3` needs for the first save and `zstd -3 --patch-from` for each pair after it, and 2 KiB a version.

    KEEPSAKE_CORPUS=folder Scripts/sync-series.py --keepsake .build/debug/keepsake
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sync_harness import PATIENCE, Harness, HarnessError, replace  # noqa: E402

PER_VERSION = 2048


def series_of(corpus):
    """Name -> files, oldest first."""
    result = {}
    root = os.path.join(corpus, "saves")
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            version = re.fullmatch(r"(.*)\.v(\d+)", name)
            # The older of a pair is written with an underscore, the newer with a hyphen.
            pair = re.fullmatch(r"(.*Aerlia)([_-])(\d+)", name)
            if version:
                key, order = version.group(1), int(version.group(2))
            elif pair:
                key, order = pair.group(1), 0 if pair.group(2) == "_" else 1
            else:
                key, order = name, 0
            key = os.path.join(os.path.relpath(folder, root), key)
            result.setdefault(key, []).append((order, path))
    return {key: [path for _, path in sorted(files)] for key, files in sorted(result.items())}


def zstd(path, base=None):
    command = ["zstd", "-3", "-q", "-c"]
    if base:
        command.append("--patch-from=" + base)
    return len(subprocess.run(command + [path], check=True, capture_output=True).stdout)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def wait_until_same(path, data, limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            if os.path.getsize(path) == len(data) and read(path) == data:
                return
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    raise HarnessError("%s did not arrive within %d s" % (path, limit))


def wire(process):
    """Bytes sent and received so far by a process that was asked to stop."""
    code, lines = process.stop()
    ends = [line for line in lines if line.get("event") == "end"]
    if code != 0 or not ends:
        raise HarnessError("sync ended with status %d and %d closing lines" % (code, len(ends)))
    return ends[-1]


def run(arguments, root):
    rows = []
    with Harness(arguments.keepsake, root, arguments.interval) as harness:
        one, two = harness.add("one"), harness.add("two")
        harness.pair(one, two)
        wire(one.process)
        for name, files in series_of(arguments.corpus).items():
            # A process of its own for each series, so that its counters count that series.
            process = one.start()
            process.wait_for(lambda line: line.get("event") == "ready")
            plain = limit = 0
            seconds = 0.0
            for index, path in enumerate(files):
                data = read(path)
                began = time.monotonic()
                replace(os.path.join(one.folder, name), data)
                wait_until_same(os.path.join(two.folder, name), data, arguments.limit)
                seconds = max(seconds, time.monotonic() - began)
                plain += len(data)
                limit += 2 * zstd(path, files[index - 1] if index else None) + PER_VERSION
            end = wire(process)
            rows.append(
                {
                    "series": name, "versions": len(files), "plain": plain, "sent": end["sentBytes"],
                    "received": end["receivedBytes"], "limit": limit, "within": end["sentBytes"] <= limit,
                    "slowestSeconds": round(seconds, 2),
                }
            )
            if not arguments.json:
                show(rows[-1])
        received = wire(two.process)["receivedBytes"]
        same = one.files() == two.files()
        digest = hashlib.sha256()
        for path, data in two.files().items():
            digest.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
        left = one.temporaries() + two.temporaries()
    return {
        "series": rows, "identical": same, "files": len(two.files()), "digest": digest.hexdigest(),
        "receivedByTwo": received, "temporariesLeft": left,
        "passed": same and not left and all(row["within"] for row in rows),
    }


def show(row):
    print(
        "%-56s %8d %11d %10d %10d %10d  %5.1f s  %s"
        % (
            row["series"][:56], row["versions"], row["plain"], row["sent"], row["received"], row["limit"],
            row["slowestSeconds"], "ok" if row["within"] else "OVER",
        ),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keepsake", required=True, help="the built command")
    parser.add_argument("--corpus", default=os.environ.get("KEEPSAKE_CORPUS"))
    parser.add_argument("--interval", type=int, default=100, help="milliseconds between checks of a folder")
    parser.add_argument("--limit", type=int, default=PATIENCE, help="seconds to wait for one save")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    arguments = parser.parse_args()
    if not arguments.corpus:
        print("skipped: KEEPSAKE_CORPUS is not set")
        return 0
    arguments.keepsake = os.path.abspath(arguments.keepsake)
    root = tempfile.mkdtemp(prefix="keepsake-series-")
    try:
        if not arguments.json:
            print("%-56s %8s %11s %10s %10s %10s" % ("series", "versions", "plain", "sent", "received", "limit"))
        result = run(arguments, root)
        if arguments.json:
            print(json.dumps(result, indent=2))
        else:
            print(
                "%d files, folders %s, %d bytes received by folder two"
                % (result["files"], "identical" if result["identical"] else "DIFFER", result["receivedByTwo"])
            )
            for path in result["temporariesLeft"]:
                print("left behind: " + path)
        return 0 if result["passed"] else 1
    except HarnessError as error:
        arguments.keep = True
        print("failed: %s (logs in %s)" % (error, root), file=sys.stderr)
        return 1
    finally:
        if not arguments.keep:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
