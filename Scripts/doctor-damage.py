#!/usr/bin/env python3
"""Zeroes 100 bytes of a large store, at one place after the other, and prints what `keepsake doctor` takes to say what
is wrong: exit status, seconds, peak memory, when it said its first word (of its progress, or the result), and what it
found. At the end, the table of docs/BENCHMARKS.md.

    swift build --traits Cloud --build-tests
    KEEPSAKE_LARGE_STORES=/tmp/stores swift test --traits Cloud --skip-build --filter LargeStoreTests
    swift build --traits Cloud -c release --product keepsake
    Scripts/doctor-damage.py --keepsake .build/release/keepsake --stores /tmp/stores

The stores are as they were afterwards. Needs three times the room of the largest, and only the standard library.
"""
import argparse
import os
import subprocess
import sys
import threading
import time

ZEROED = 100
PAGE = 4_096
# Inner pages of tables and of tables without rowid, in SQLite's format.
INNER = (0x05, 0x02)
WORDS = {"none": "none", "header": "the header", "tree": "a page that leads to others", "a content": "a content",
         "the end": "the end of the file"}


def inner_page(file, size):
    """The offset of a page that only leads to others, the last one of the file; the first page's if there is none."""
    for page in range(size // PAGE - 1, 0, -1):
        file.seek(page * PAGE)
        if file.read(1)[0] in INNER and file.read(4)[0:2] == b"\0\0":
            return page * PAGE
    return 100


def places(path):
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        return {"none": None, "header": 0, "tree": inner_page(file, size), "a content": size // 2 // PAGE * PAGE + 500,
                "the end": size - 2 * ZEROED}


def zeroed(path, offset):
    """Zeroes bytes, and returns those that were there."""
    with open(path, "r+b") as file:
        file.seek(offset)
        before = file.read(ZEROED)
        file.seek(offset)
        file.write(bytes(ZEROED))
    return before


def run(command):
    """Returns the exit status, seconds, MiB, the seconds until the first word (of standard output or of standard error,
    whichever comes first; nan if nothing was said), and what was said at the end."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    first, output = [], []

    def listen(pipe, keeps):
        for line in pipe:
            first.append(time.monotonic() - began)
            if keeps:
                output.append(line.decode(errors="replace").rstrip())

    threads = [threading.Thread(target=listen, args=pair) for pair in ((process.stdout, True), (process.stderr, False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (process.returncode, time.monotonic() - began, usage.ru_maxrss / 1_024, min(first, default=float("nan")),
            output[0] if output else "")


def table(rows):
    """The lines of the table: a row for each damage of each store."""
    lines = [("store", "100 bytes zeroed in", "secret", "first word", "end", "peak")]
    for size, store, damage, has_secret, seconds, mib, first in rows:
        kind = "signed" if "signed" in store else "without a seal"
        secret = "" if "signed" not in store else "given" if has_secret else "not given"
        lines.append((f"{size:,} MiB, {kind}", WORDS[damage], secret, f"{first:.2f} s", f"{seconds:.1f} s",
                      f"{mib:.0f} MiB"))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for number, line in enumerate(lines):
        cells = [cell.ljust(width) if column < 3 else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(line, widths))]
        yield "| " + " | ".join(cells) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + (2 if column < 3 else 1)) + ("" if column < 3 else ":")
                                 for column, width in enumerate(widths)) + "|"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keepsake", required=True, help="the command, built for release")
    options.add_argument("--stores", required=True, help="the folder that LargeStoreTests wrote")
    options.add_argument("--only", nargs="*", help="only these stores")
    options = options.parse_args()
    print(f"{'store':16} {'MiB':>5} {'damage':10} {'secret':6} {'exit':>4} {'s':>7} {'MiB':>6} {'first':>6}"
          "  what it says")
    secret = os.path.join(options.stores, "secret")
    rows = []
    for store in sorted(os.listdir(options.stores)):
        path = os.path.join(options.stores, store, "store.sqlite")
        if not os.path.exists(path) or options.only and store not in options.only:
            continue
        for damage, offset in places(path).items():
            before = zeroed(path, offset) if offset is not None else None
            try:
                for has_secret in (False, True) if "signed" in store else (False,):
                    command = [options.keepsake, "doctor", os.path.join(options.stores, store)]
                    status, seconds, mib, first, said = run(command + ["--secret-file", secret] * has_secret)
                    size = os.path.getsize(path) >> 20
                    rows.append((size, store, damage, has_secret, seconds, mib, first))
                    print(f"{store:16} {size:5} {damage:10} {'yes' if has_secret else '':6} "
                          f"{status:4} {seconds:7.2f} {mib:6.0f} {first:6.2f}  {said[:90]}", flush=True)
            finally:
                if before is not None:
                    with open(path, "r+b") as file:
                        file.seek(offset)
                        file.write(before)
    print()
    # The smaller stores first, and those without a seal before the signed ones.
    for line in table(sorted(rows, key=lambda row: (row[0] > 500, "signed" in row[1], row[3]))):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
