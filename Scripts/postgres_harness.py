"""What the scripts share that measure a cloud on PostgreSQL. The server is started by Scripts/with-postgres.sh."""

import glob
import shutil
import subprocess
import sys


def program(name):
    """Returns where a program of PostgreSQL is."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    path = shutil.which(name) or (found[-1] if found else None)
    if not path:
        sys.exit(f"{name} isn't installed; it comes with PostgreSQL (Debian: postgresql).")
    return path


def query(address, text):
    """Returns the lines that psql prints for a statement."""
    ran = subprocess.run([program("psql"), "-qXAt", address, "-c", text], check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout.splitlines()
