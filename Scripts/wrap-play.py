#!/usr/bin/env python3
"""Plays Moria, a terminal game of Debian (apt-get install moria), under `keepsake wrap` in a pseudo-terminal, on two
machines that share a folder: a game goes on where it was left on the other machine, both sides of a conflict are kept,
and the terminal is the game's. Compares saves byte by byte. Says "skipped" if Moria isn't installed. Exits with status
1 if anything is not as it should be."""
import argparse
import fcntl
import glob
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import space_harness

# Nothing here takes so long on any machine that runs at all.
PATIENCE = 120
ROWS, COLUMNS = 24, 80
TITLE = b"press any key to continue"


class Failure(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Failure(what)


class Terminal:
    """A process in a terminal of its own, and everything that it has written there."""

    def __init__(self, command, home, **more):
        environment = dict(os.environ, HOME=home, TERM="vt100", LINES=str(ROWS), COLUMNS=str(COLUMNS), **more)
        for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
            environment.pop(name, None)
        self.process, self.master = pty.fork()
        if self.process == 0:
            for number in space_harness.SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.chdir(home)
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.output, self.read = b"", 0

    def more(self):
        """Reads what there is; false at the end."""
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data
        return bool(data)

    def wait_for(self, *texts):
        """Waits until one of the texts was written since the last time, and returns it."""
        end = time.monotonic() + PATIENCE
        while True:
            places = [(self.output.find(text, self.read), text) for text in texts]
            found = [(place, text) for place, text in places if place >= 0]
            if found:
                place, text = min(found)
                self.read = place + len(text)
                return text
            if not self.more() or time.monotonic() > end:
                raise Failure(f"{texts} didn't come; the last output is {self.output[-600:]!r}")

    def type(self, keys, *texts):
        os.write(self.master, keys)
        return self.wait_for(*texts) if texts else None

    def insist(self, keys, text):
        """Types until the text is written: a game throws away what was typed before something happened in it."""
        end = time.monotonic() + PATIENCE
        while self.output.find(text, self.read) < 0:
            require(time.monotonic() < end, f"{text} didn't come; the last output is {self.output[-600:]!r}")
            os.write(self.master, keys)
            for _ in range(10):
                self.more()
                if self.output.find(text, self.read) >= 0:
                    break
        self.wait_for(text)

    def foreground(self):
        return os.tcgetpgrp(self.master)

    def end(self, keys=b""):
        """Types until the end, and returns the exit status or the negative signal, and what was written last."""
        end = time.monotonic() + PATIENCE
        typed = 0
        while self.more():
            if keys and time.monotonic() - typed > 1 and b"keepsake: " not in self.output[self.read:]:
                os.write(self.master, keys)
                typed = time.monotonic()
            if time.monotonic() > end:
                os.kill(self.process, signal.SIGKILL)
                raise Failure(f"the process didn't end; the last output is {self.output[-600:]!r}")
        _, status = os.waitpid(self.process, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status), self.output[self.read:].decode(errors="replace")


class Machine:
    def __init__(self, options, root, name):
        self.keepsake, self.moria, self.name = options.keepsake, options.moria, name
        self.home = os.path.join(root, name)
        self.shared = os.path.join(root, "Dropbox")
        self.saves = os.path.join(self.home, ".local/share/moria")
        os.makedirs(self.saves)
        os.makedirs(self.shared, exist_ok=True)
        settings = os.path.join(self.home, ".config/keepsake")
        os.makedirs(settings)
        with open(os.path.join(settings, "wrap.json"), "w") as file:
            file.write('{"folder": "%s"}' % self.shared)
        with open(os.path.join(settings, "manifest.yaml"), "w") as file:
            file.write("Moria:\n  files:\n    <xdgData>/moria:\n      when:\n        - os: linux\n")

    @property
    def save(self):
        return os.path.join(self.saves, "game.sav")

    def bytes(self, path=None):
        path = path or self.save
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read()

    def start(self, *options, wrapped=True):
        game = [self.moria, self.save]
        if not wrapped:
            return Terminal(game, self.home)
        return Terminal([self.keepsake, "wrap", "--game", "Moria", *options, "--", *game], self.home)

    def run(self, *arguments):
        done = subprocess.run(
            [self.keepsake, *arguments], env=dict(os.environ, HOME=self.home), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        require(done.returncode == 0, f"keepsake {arguments}: {done.returncode} {done.stderr!r}")
        return done.stdout.decode()


def create(terminal, name):
    """Makes a human warrior."""
    terminal.insist(b" ", b"Choose a race")
    terminal.type(b"a", b"Female")
    terminal.type(b"m", b"accept characteristics")
    terminal.type(b"\x1b", b"Choose a class")
    terminal.type(b"a", b"Enter your player's name")
    terminal.type(name + b"\r", b"to continue, or Q to exit")
    terminal.type(b"\r", b"Town level")


def leave(terminal):
    """Saves and ends, and returns what is said afterwards."""
    terminal.insist(b"\x1b\x18", b"Saving game...")
    terminal.insist(b" ", b"press any key to continue")
    return terminal.end(b" ")


def go_on(terminal, name, turns=1):
    """Loads the game, and searches for some turns, which the save counts."""
    terminal.insist(b" ", name)
    terminal.insist(b" ", b"Town level")
    terminal.type(b"s" * turns)


def first_game(one, two):
    terminal = one.start()
    terminal.wait_for(TITLE)
    require(terminal.foreground() == terminal.process, "the game isn't in the terminal's group")
    create(terminal, b"Ann")
    status, said = leave(terminal)
    require(status == 0 and "kept 1 version of 1 save; uploaded" in said, f"after the first game: {status} {said!r}")
    require(not two.bytes(), "the second machine has a save before its game")


def second_machine(one, two):
    before = one.bytes()
    terminal = two.start()
    terminal.wait_for(b"received 1 save")
    terminal.wait_for(TITLE)
    require(two.bytes() == before, "the save isn't the same on both machines before the game starts")
    go_on(terminal, b"Ann")
    status, said = leave(terminal)
    require(status == 0 and "uploaded" in said, f"after the second game: {status} {said!r}")
    require(two.bytes() != before, "the second game didn't save")
    terminal = one.start()
    terminal.wait_for(TITLE)
    require(one.bytes() == two.bytes(), "the save doesn't come back")
    go_on(terminal, b"Ann")
    status, _ = leave(terminal)
    require(status == 0, f"the third game: {status}")


def conflict(one, two, answer, check):
    """Plays on both machines, on the second without keepsake, and answers the question there."""
    for machine in (one, two):
        terminal = machine.start("--conflict", "theirs")
        terminal.wait_for(TITLE)
        go_on(terminal, b"Ann")
        require(leave(terminal)[0] == 0, "a game before the conflict")
    terminal = one.start()
    terminal.wait_for(TITLE)
    go_on(terminal, b"Ann")
    require(leave(terminal)[0] == 0, "the first side of the conflict")
    terminal = two.start(wrapped=False)
    terminal.wait_for(TITLE)
    go_on(terminal, b"Ann", turns=5)
    require(leave(terminal)[0] == 0, "the second side of the conflict")
    mine, theirs = two.bytes(), one.bytes()
    require(mine != theirs, "both sides are the same")
    terminal = two.start()
    terminal.wait_for(b"[m/t/b]")
    terminal.type(b"what\r", b"[m/t/b]")
    terminal.type(answer + b"\r", TITLE)
    check(mine, theirs, glob.glob(two.save + ".conflict-*"))
    go_on(terminal, b"Ann")
    require(leave(terminal)[0] == 0, "the game after the conflict")
    history = two.run("history", os.path.join(two.home, ".local/share/keepsake/games/moria"),
                      "file:xdgData/moria/game.sav", "--json")
    require(history.count('"version"') >= 4, f"the history: {history}")


def conflicts(one, two):
    def mine(ours, theirs, beside):
        require(two.bytes() == ours and not beside, "mine isn't kept")

    def theirs(ours, others, beside):
        require(two.bytes() == others and not beside, "theirs isn't there")

    def both(ours, others, beside):
        require(two.bytes() == ours, "mine isn't kept beside theirs")
        require(len(beside) == 1 and two.bytes(beside[0]) == others, f"theirs isn't beside mine: {beside}")

    conflict(one, two, b"m", mine)
    conflict(one, two, b"theirs", theirs)
    conflict(one, two, b"b", both)


def keys_of_the_terminal(one):
    """Ctrl-Z stops the game and the command, in a shell that lets both go on; Ctrl-C is the game's."""
    terminal = Terminal(["bash", "--norc", "-i"], one.home, PS1="shell> ")
    terminal.wait_for(b"shell> ")
    wrap = f"'{one.keepsake}' wrap --game Moria -- sh -c 'trap \"echo int\" INT; echo rea\"\"dy; while :; do "
    # The shell gives the terminal to the command some time after the line was echoed. What is typed before that is read
    # in the shell's own mode, in which Return doesn't end a line for the program that reads it.
    terminal.type(wrap.encode() + b"read x && echo got $x; test \"$x\" = end && exit 5; done'\r", b"ready")
    terminal.type(b"one\r", b"got one")
    terminal.type(b"\x03", b"int")
    terminal.type(b"\x1a", b"Stopped")
    terminal.wait_for(b"shell> ")
    terminal.type(b"fg\r", b"done'")
    terminal.type(b"two\r", b"got two")
    terminal.type(b"end\r", b"no save changed")
    terminal.type(b"echo status $?.\r", b"status 5.")
    count = terminal.output.count(b"int\r\n")
    require(count == 1, f"Ctrl-C came {count} times: {terminal.output[-2000:]!r}")
    terminal.type(b"exit\r")
    require(terminal.end()[0] == 0, "the shell")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keepsake", required=True, help="the command")
    options = options.parse_args()
    options.keepsake = os.path.abspath(options.keepsake)
    options.moria = shutil.which("moria", path=os.environ.get("PATH", "") + ":/usr/games")
    if not options.moria:
        print("skipped: Moria isn't installed (apt-get install moria)")
        return 0
    root = tempfile.mkdtemp(prefix="wrap-")
    try:
        one, two = (Machine(options, root, name) for name in ("one", "two"))
        first_game(one, two)
        second_machine(one, two)
        conflicts(one, two)
        keys_of_the_terminal(one)
    except Failure as failure:
        print(f"keepsake wrap: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(root)
    print("Moria was played on two machines: its saves were the same on both, and no side of three conflicts was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
