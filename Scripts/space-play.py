#!/usr/bin/env python3
"""Plays the example Space in a pseudo-terminal: steers, drifts, leaves the field, resizes; looks at what is drawn and
what is kept. Then starts it where it can't be played, and reads what it says. Exits with status 1 if anything is not as
it should be."""
import argparse
import os
import pty
import shutil
import subprocess
import sys
import tempfile

from space_harness import MIDDLE, Failure, Player, numbers

SHIP, FLAME = 159, 208


def require(condition, what, player=None):
    if not condition:
        raise Failure(what + (f"; the last row shows {player.screen.line(player.screen.rows)!r}" if player else ""))


def now(player):
    return numbers(player.lines()[-1][1])


def says(player, text):
    return lambda: text in player.screen.line(player.screen.rows)


def ship_is_where_it_is(player):
    """The ship's characters stand around the place that is kept; it may have flown on by a frame."""
    _, x, y, _, _ = now(player)
    row, column = y / 200 * player.screen.rows + 1, x / 320 * player.screen.columns + 1
    drawn = player.screen.drawn(SHIP)
    return drawn and all(
        min(abs(r - row), player.screen.rows - abs(r - row)) <= 3
        and min(abs(c - column), player.screen.columns - abs(c - column)) <= 6
        for r, c in drawn
    )


def steer(space, folder, picture):
    player = Player(space, folder)
    require(numbers(player.begun()[1]) == MIDDLE, "the first run starts in the middle")
    player.until(says(player, "heading 000  speed 000"), "the last row shows heading and speed")
    player.until(lambda: ship_is_where_it_is(player), "the ship is drawn in the middle")
    require(len(player.screen.cells) > 100, "the stars are drawn", player)
    for _ in range(3):
        player.key("\x1b[C")
    player.until(says(player, "heading 030"), "three keys turn it by thirty degrees")
    for _ in range(10):
        player.key("\x1b[A")
    player.until(says(player, "speed 060"), "ten thrusts make it fast")
    player.until(lambda: player.screen.drawn(FLAME), "the flame is drawn")
    if picture:
        player.until(lambda: ship_is_where_it_is(player), "the ship is drawn for the picture")
        with open(picture, "w") as file:
            file.write(player.screen.svg("Space, drawn in a terminal of 80 by 24 characters"))
    _, _, _, vx, vy = now(player)
    require(abs(vx - 30) < 0.01 and abs(vy + 60 * 3**0.5 / 2) < 0.01, f"it flies where it looks: {vx}, {vy}")
    player.until(lambda: not player.screen.drawn(FLAME), "the flame goes out")
    # Without a key: it drifts, by a sixtieth of its speed in each step, and leaves the field above to come in below.
    seen = player.lines()
    player.until(lambda: now(player)[2] > numbers(seen[-1][1])[2] + 100, "it comes in at the other edge")
    player.until(lambda: ship_is_where_it_is(player), "it is drawn there")
    lines = player.lines()
    first, last = lines[len(seen) - 1], lines[-1]
    flown = (last[0] - first[0]) / 60
    (_, x0, y0, _, _), (_, x1, y1, _, _) = numbers(first[1]), numbers(last[1])
    require(abs((x0 + vx * flown) % 320 - x1) < 1e-6 and abs((y0 + vy * flown) % 200 - y1) < 1e-6, "it drifts evenly")
    require(player.screen.clears == 2, f"nothing flickers: the screen was cleared {player.screen.clears} times")
    player.resize(100, 30)
    player.until(says(player, "speed 060"), "the last row is drawn where it is now")
    player.until(lambda: ship_is_where_it_is(player), "the ship is drawn on the larger screen")
    player.resize(1, 1)
    player.until(lambda: player.screen.clears > 3, "the smallest screen is drawn")
    player.resize(80, 24)
    player.until(says(player, "speed 060"), "the last row is back")
    player.key("q")
    require(player.end() == "exit 0", "q quits")
    left = player.lines()[-1]
    player.close()
    again = Player(space, folder)
    require(again.begun() == left, "it continues where it was left, to the last bit")

    # The same data twice.
    status, output = in_terminal(space, "--data", os.path.join(folder, "data"))
    require(status == 1 and "being played already" in output, f"a second one says so: {output!r}")
    again.key("q")
    again.end()
    left = again.lines()[-1]
    again.close()
    command = [space, "--data", os.path.join(folder, "data"), "--print"]
    printed = subprocess.run(command, capture_output=True, text=True).stdout
    require(printed.split()[0] == str(left[0]), f"--print shows what is saved: {printed!r}")


def in_terminal(*command):
    """Status and output of a command that has a terminal."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(command[0], command)
    output = b""
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    os.close(terminal)
    _, how = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(how), output.decode("utf-8", "replace")


def refusals(space, assets, folder):
    piped = subprocess.run([space, "--data", folder], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    require(piped.returncode == 1 and "played in a terminal" in piped.stderr, f"no terminal: {piped.stderr!r}")
    unknown = subprocess.run([space, "--colour", "red"], capture_output=True, text=True)
    require(
        unknown.returncode == 1 and "--colour is not known" in unknown.stderr,
        f"an unknown option: {unknown.stderr!r}",
    )

    def told(name, change, *words):
        copy = os.path.join(folder, name)
        shutil.copytree(assets, copy)
        change(copy)
        status, output = in_terminal(space, "--data", os.path.join(folder, "data"), "--assets", copy)
        require(status == 1 and all(word in output for word in words), f"{name}: {output!r}")
        require("\x1b[?1049h" not in output, f"{name}: reported before play")

    def damage(copy):
        with open(os.path.join(copy, "stars.txt"), "r+") as file:
            file.write("#!")

    told(
        "missing", lambda copy: os.remove(os.path.join(copy, "ship.txt")),
        "ship.txt", "1 missing", "Install the game again",
    )
    told("damaged", damage, "stars.txt", "Install the game again")
    told("unlisted", lambda copy: os.remove(os.path.join(copy, "keepsake-assets.json")), "manifest")
    told("gone", shutil.rmtree, "gone")


def disks(space, folder):
    """A folder that may not be written, also by root, and a disk that is full: in a mount namespace of their own."""
    inside = ["unshare", "-m", "--propagation", "private", "sh", "-ec"]
    mount = os.path.join(folder, "mount")
    os.mkdir(mount)
    probe = subprocess.run([*inside, f"mount -t tmpfs -o size=1m keepsake {mount}"], capture_output=True)
    if probe.returncode != 0:
        print("skipped: a read-only folder and a full disk (a process can't mount a file system of its own here)")
        return
    play = f"exec {space} --data {mount}/data --steps 5"
    status, output = in_terminal(*inside, f"mount -t tmpfs -o size=1m,ro keepsake {mount}; {play}")
    require(status == 1 and "notPermitted" in output and "--data" in output, f"read-only: {output!r}")
    fill = f"dd if=/dev/zero of={mount}/filler bs=1k count=4096 2>/dev/null || true"
    status, output = in_terminal(*inside, f"mount -t tmpfs -o size=1m keepsake {mount}; {fill}; {play}")
    require(status == 1 and "diskFull" in output and "make some room" in output, f"a full disk: {output!r}")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--space", required=True, help="the game's executable")
    options.add_argument("--picture", help="write the frame with the flame into this SVG")
    options = options.parse_args()
    space = os.path.abspath(options.space)
    assets = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Examples/Space/Assets")
    folder = tempfile.mkdtemp(prefix="space-")
    try:
        steer(space, folder, options.picture)
        refusals(space, assets, folder)
        disks(space, folder)
    except Failure as failure:
        print(f"Space: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder)
    print(
        "Space was played: steered, drifted, came in at the other edge, was resized; "
        "and it reported why it can't be played where it can't"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
