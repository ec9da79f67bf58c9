#!/usr/bin/env python3
"""Zeroes 100 bytes of a large store, at one place after the other, and prints what `keepsake doctor` takes to say what
is wrong: exit status, seconds, peak memory, when it said its first word, and what it found.

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
    """Returns the exit status, seconds, MiB, the seconds until the first word, and what was said at the end."""
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
    return (process.returncode, time.monotonic() - began, usage.ru_maxrss / 1_024, min(first, default=0),
            output[0] if output else "")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keepsake", required=True, help="the command, built for release")
    options.add_argument("--stores", required=True, help="the folder that LargeStoreTests wrote")
    options.add_argument("--only", nargs="*", help="only these stores")
    options = options.parse_args()
    print(f"{'store':16} {'MiB':>5} {'damage':10} {'secret':6} {'exit':>4} {'s':>7} {'MiB':>6} {'first':>6}"
          "  what it says")
    secret = os.path.join(options.stores, "secret")
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
                    print(f"{store:16} {os.path.getsize(path) >> 20:5} {damage:10} {'yes' if has_secret else '':6} "
                          f"{status:4} {seconds:7.2f} {mib:6.0f} {first:6.2f}  {said[:90]}", flush=True)
            finally:
                if before is not None:
                    with open(path, "r+b") as file:
                        file.seek(offset)
                        file.write(before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
