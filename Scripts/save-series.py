#!/usr/bin/env python3
"""Makes series of saves as games write them, the same each time, for `keepsake estimate`: save-series.py FOLDER"""
import json
import random
import sqlite3
import struct
import sys
import zlib
from pathlib import Path


def growing(rng):
    """Structures of floats, appended to; a few bytes change anywhere."""
    world = bytearray()
    for _ in range(60):
        world += b"".join(
            struct.pack("<fffI", rng.random(), rng.random(), rng.random(), rng.randrange(1000)) for _ in range(13000)
        )
        for _ in range(200):
            world[rng.randrange(len(world))] = rng.randrange(256)
        yield bytes(world)


def region(rng):
    """Chunks compressed one by one into sectors of 4 KiB, behind a table; one in twenty changes."""
    def chunk():
        return zlib.compress(rng.randbytes(rng.randrange(2000, 5500)) * 2)

    chunks = [chunk() for _ in range(1024)]
    for version in range(25):
        out = bytearray(8192)
        for index, body in enumerate(chunks):
            struct.pack_into(">I", out, index * 4, len(out) // 4096 << 8 | 1)
            struct.pack_into(">I", out, 4096 + index * 4, version if rng.random() < 0.05 else 0)
            out += struct.pack(">I", len(body)) + body
            out += bytes(-len(out) % 4096)
        yield bytes(out)
        for _ in range(50):
            chunks[rng.randrange(1024)] = chunk()


def threshold(rng):
    """Noise that is now a little larger than 4 MiB, now a little smaller."""
    noise = bytearray(rng.randbytes(4_300_000))
    for version in range(30):
        for _ in range(40):
            noise[rng.randrange(4_000_000)] = rng.randrange(256)
        yield bytes(noise[: (4 << 20) + (1 if version % 2 else -1) * rng.randrange(1000, 90_000)])


def database(rng):
    """A game that keeps its world in SQLite."""
    world = sqlite3.connect(":memory:")
    world.execute("CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT, x REAL, data BLOB)")
    things = (
        (i, f"item{rng.randrange(99999)}", rng.random(), rng.randbytes(rng.randrange(100))) for i in range(60_000)
    )
    world.executemany("INSERT INTO thing VALUES (?, ?, ?, ?)", things)
    for _ in range(30):
        world.commit()
        yield world.serialize() if hasattr(world, "serialize") else dumped(world)
        for _ in range(300):
            moved = (rng.random(), f"moved{rng.randrange(9999)}", rng.randrange(60_000))
            world.execute("UPDATE thing SET x = ?, name = ? WHERE id = ?", moved)
        for _ in range(50):
            world.execute("INSERT INTO thing (name, x, data) VALUES ('new', ?, ?)", (rng.random(), rng.randbytes(50)))


def dumped(world):
    """What older Pythons have instead of serialize()."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        copy = sqlite3.connect(f"{folder}/copy")
        world.backup(copy)
        copy.close()
        return Path(f"{folder}/copy").read_bytes()


def xml(rng):
    """Text of 6 MB in which things move, come, and now and then come by the thousand."""
    def thing(index):
        at = f'x="{rng.randrange(9999)}" y="{rng.randrange(9999)}"'
        return f'<thing id="{index}" {at} hp="{rng.randrange(100)}">{rng.getrandbits(160):x}</thing>'

    lines = [thing(index) for index in range(60_000)]
    for version in range(40):
        yield "\n".join(lines).encode()
        for _ in range(600):
            index = rng.randrange(len(lines))
            lines[index] = thing(index)
        for _ in range(100):
            lines.insert(rng.randrange(len(lines)), f"<new>{rng.getrandbits(256):x}</new>")
        if version % 7 == 6:
            place = rng.randrange(len(lines))
            lines[place:place] = [f"<map>{rng.getrandbits(512):x}</map>" for _ in range(3000)]


def inventory(rng):
    """JSON of 300 kB, autosaved 300 times."""
    items = [
        {"id": i, "name": f"item{rng.randrange(500)}", "count": rng.randrange(99), "at": [rng.random(), rng.random()]}
        for i in range(3500)
    ]
    for _ in range(300):
        yield json.dumps({"items": items}).encode()
        for _ in range(30):
            item = rng.choice(items)
            item["count"], item["at"] = rng.randrange(99), [rng.random(), rng.random()]


def small(rng):
    """20 kB of noise, in which ten bytes change, 600 times."""
    noise = bytearray(rng.randbytes(20_000))
    for _ in range(600):
        yield bytes(noise)
        for _ in range(10):
            noise[rng.randrange(len(noise))] = rng.randrange(256)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for number, series in enumerate([growing, region, threshold, database, xml, inventory, small]):
        folder = Path(sys.argv[1]) / series.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for version, save in enumerate(series(random.Random(number + 1))):
            (folder / f"save{version:03}").write_bytes(save)


if __name__ == "__main__":
    main()
