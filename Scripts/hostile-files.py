#!/usr/bin/env python3
"""Gives every reading command of keepsake what people and attackers give it instead of a save, and prints what each
one takes: exit status, seconds, peak memory, and the first line that it says.

    swift build --traits Cloud -c release --product keepsake
    Scripts/hostile-files.py --keepsake .build/release/keepsake [--only NAME ...]

Ends with status 1 if a command takes more than 2 seconds or 128 MiB, ends by a signal, or with the status of an
internal error. A sync of a file that grows may take longer. A first sync of 10,000 files, which keeps a version of
each, may take half as long as Unison's, which keeps none, in the same run, or 4 seconds if that isn't installed. Needs
only the standard library, and 200 MiB of room in the temporary folder.
"""
import argparse
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

SECONDS, MIB = 2, 128
PATIENCE = 60
INTERNAL = 70
NOBODY = 65534


def write(path, *parts):
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)
    return path


def sparse(folder):
    path = write(os.path.join(folder, "sparse"), b"\0")
    os.truncate(path, 1 << 30)
    return path


def sparse_text(folder):
    path = write(os.path.join(folder, "sparse.json"), b'{"a": [')
    os.truncate(path, 1 << 30)
    return path


def sparse_list(folder):
    path = write(os.path.join(folder, "sparse.plist"), b"bplist00")
    os.truncate(path, 1 << 30)
    return path


def fifo(folder):
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    return path


def loop(folder):
    for one, two in (("loop", "loop2"), ("loop2", "loop")):
        os.symlink(two, os.path.join(folder, one))
    return os.path.join(folder, "loop")


def many_names(folder):
    for number in range(10_000):
        write(os.path.join(folder, f"save{number}"), b"x")
    write(os.fsencode(folder) + b"/\xff\xfe", b"x")
    return folder


def deep_json(folder):
    return write(os.path.join(folder, "deep.json"), b"[" * 2_000_000)


def deep_xml(folder):
    return write(os.path.join(folder, "deep.plist"), b"<plist>", b"<array>" * 300_000)


def deep_openstep(folder):
    return write(os.path.join(folder, "deep.strings"), b"{a=(" * 500_000, b";")


def unreadable(folder):
    path = write(os.path.join(folder, "unreadable"), b"{}")
    os.chmod(path, 0)
    return path


def growing(folder):
    return write(os.path.join(folder, "growing.json"), b"[")


def zero(folder):
    os.symlink("/dev/zero", os.path.join(folder, "zero"))
    return "/dev/zero"


def gzip_bomb(folder):
    """10 MB that open to 10 GB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return write(os.path.join(folder, "bomb.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03", block * 640)


def zlib_bomb(folder):
    packer = zlib.compressobj(9)
    head = packer.compress(bytes(16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    more = packer.compress(bytes(16 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return write(os.path.join(folder, "bomb.zz"), head, more * 639)


def zstd_bomb(folder):
    """A frame of blocks that each are one byte, 128 KiB times."""
    block = struct.pack("<I", (128 << 10) << 3 | 1 << 1)[:3] + b"\0"
    last = struct.pack("<I", 1 << 3 | 1 << 1 | 1)[:3] + b"\0"
    return write(os.path.join(folder, "bomb.zst"), b"\x28\xb5\x2f\xfd\x00\x70", block * 81_920, last)


CASES = {
    "1 GiB, sparse": sparse, "1 GiB of JSON": sparse_text, "1 GiB of list": sparse_list, "FIFO": fifo,
    "loop of links": loop, "10,000 names": many_names, "JSON, deep": deep_json, "XML, deep": deep_xml,
    "OpenStep, deep": deep_openstep, "unreadable": unreadable, "growing": growing, "/dev/zero": zero,
    "gzip bomb": gzip_bomb, "zlib bomb": zlib_bomb, "zstd bomb": zstd_bomb,
}
# What waits for a file to stop growing: seconds.
LONGER = {("growing", "sync --once"): 15, ("growing", "wrap"): 20}
# What syncs a folder for the first time: seconds if there is nothing to compare it with.
FIRST_SYNC, FIRST_SYNC_SECONDS = ("sync --once", "wrap"), 4


def commands(path, folder, work):
    """Each reading command on the path, and those of folders on the folder in which it is."""
    out, good, home = (os.path.join(work, name) for name in ("out.json", "good.json", "home"))
    return {
        "inspect": ["inspect", path], "diff": ["diff", good, path], "convert": ["convert", path, out, "--force"],
        "verify": ["verify", path], "verify folder": ["verify", folder], "estimate": ["estimate", path],
        "doctor": ["doctor", path], "history": ["history", path], "export": ["export", path, "main", out, "--force"],
        "scores": ["scores", path],
        "sync --once": ["sync", folder, "--folder", os.path.join(work, "shared"), "--once", "--state",
                        os.path.join(work, "state")],
        "wrap": ["wrap", "--saves", folder, "--folder", os.path.join(work, "games"), "--state",
                 os.path.join(home, "wrapped"), "--", "true"],
    }


class Growth(threading.Thread):
    """Writes to a file until it is told to stop, up to 100 MiB, and then begins anew."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.ends = path, threading.Event()

    def run(self):
        while not self.ends.is_set():
            with open(self.path, "wb") as file:
                file.write(b"[")
                while not self.ends.is_set() and file.tell() < 100 << 20:
                    file.write(b'"a", ' * 1_000)
                    file.flush()
                    self.ends.wait(0.001)


def run(keepsake, arguments, work, user):
    """Returns the exit status or the negative signal, seconds, MiB and the first line."""
    environment = {"HOME": os.path.join(work, "home"), "PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    with open(os.path.join(work, "said"), "w+b") as said:
        began = time.monotonic()
        process = subprocess.Popen(
            [keepsake, *arguments], stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, env=environment,
            user=user, cwd=work, restore_signals=True)
        killer = threading.Timer(PATIENCE, lambda: os.kill(process.pid, signal.SIGKILL))
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        said.seek(0)
        line = said.read(1_000).decode(errors="replace").split("\n")[0]
    return process.returncode, seconds, usage.ru_maxrss / 1_024, line.replace(work, "")


def first_sync(folder, work):
    """Returns the seconds that Unison takes to sync the folder with an empty one; None if it isn't installed."""
    unison = shutil.which("unison")
    if not unison:
        return None
    home, other = os.path.join(work, "unison"), os.path.join(work, "other")
    for place in (home, other):
        os.mkdir(place)
    began = time.monotonic()
    subprocess.run([unison, folder, other, "-batch", "-silent"], stdin=subprocess.DEVNULL, check=True,
                   env={**os.environ, "HOME": home, "UNISON": home})
    return time.monotonic() - began


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keepsake", required=True, help="the command, built for release")
    options.add_argument("--only", nargs="*", help="only these cases, or commands")
    options = options.parse_args()
    failures = 0
    print(f"{'case':15} {'command':13} {'exit':>4} {'s':>6} {'MiB':>6}  first line")
    for case, make in CASES.items():
        work = tempfile.mkdtemp(prefix="hostile-files-")
        growth = first = None
        try:
            # As root, everything can be read.
            user = NOBODY if case == "unreadable" and os.geteuid() == 0 else None
            # A program may be in a folder that others can't enter.
            keepsake = shutil.copy(options.keepsake, os.path.join(work, "keepsake"))
            folder = os.path.join(work, "folder")
            for name in ("folder", "shared", "games", "home"):
                os.mkdir(os.path.join(work, name))
            write(os.path.join(work, "good.json"), b"{}")
            path = make(folder)
            if user:
                for root, folders, _ in os.walk(work):
                    os.chmod(root, 0o777)
            if case == "growing":
                growth = Growth(path)
                growth.start()
            for name, arguments in commands(path, folder, work).items():
                if options.only and case not in options.only and name not in options.only:
                    continue
                status, seconds, mib, line = run(keepsake, arguments, work, user)
                longest = LONGER.get((case, name), SECONDS)
                if case == "10,000 names" and name in FIRST_SYNC:
                    if first is None:
                        first = FIRST_SYNC_SECONDS
                        peer = first_sync(folder, work)
                        if peer is not None:
                            print(f"{case:15} {'Unison':13}      {peer:6.2f}")
                            first = peer / 2
                    longest = first
                is_bad = seconds > longest or mib > MIB or status < 0 or status == INTERNAL
                failures += is_bad
                print(f"{case:15} {name:13} {status:4} {seconds:6.2f} {mib:6.0f}  {line[:110]}"
                      f"{'   <-- too much' if is_bad else ''}", flush=True)
        finally:
            if growth:
                growth.ends.set()
                growth.join()
            shutil.rmtree(work, ignore_errors=True)
    print(f"{failures} beyond their limits" if failures else "all within their limits")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
