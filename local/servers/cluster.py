"""The folder of a server's data, and its account: PostgreSQL refuses to run as root, and RabbitMQ need not.

As root we run a server as the owner of its data, the user that its package made (`postgres`, `rabbitmq`). That user
often can't reach our directory (a project under /root, pytest's temporary directories): the data then stands under
/var/lib, and a symbolic link in our directory leads there. Another leads to data to be thrown away, which is in memory.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from local.servers.processes import POLL_SECONDS, Account
from shared.errors import ConfigurationError

LINK_NAME = "cluster"
DATA_NAME = "data"
ELSEWHERE = Path("/var/lib")  # only root comes here: as another user, the server is us and goes where we go
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder that is made there is ours alone
MEMORY_BYTES = 4 * 1024**3
"""So much must be free there; a run of all tests takes a quarter of it."""
SHARED_MEMORY = Path("/proc/sysvipc/shm")
ORPHAN_SECONDS = 10.0


def find_account(data: Path, user: str) -> Account | None:
    """Return the account that the server runs as: the data's owner, else `user`.

    None: it runs as we do, since we aren't root or there is no such user.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        return None
    return Account(found.pw_uid, found.pw_gid)


def place_cluster(directory: Path, user: str = "postgres") -> Path:
    """Return the folder that holds, or is to hold, the data of this server directory: its real path.

    Raises ConfigurationError if the server's account can't reach it, or another user has taken its place.
    """
    place = directory / LINK_NAME
    if place.is_dir():
        if not _can_reach(place.resolve(), user):
            raise ConfigurationError(
                f"the user {user} can no longer enter {place}: allow it (chmod o+x on each"
                " folder above), or start anew with `make clean`, without the data"
            )
        return place.resolve()
    place.unlink(missing_ok=True)  # a link whose target is gone
    if _can_reach(directory, user):
        place.mkdir(mode=0o711)
    else:
        place.symlink_to(_make_elsewhere(directory, ELSEWHERE))
    place.chmod(0o711)  # whatever the umask
    return place.resolve()  # not through the link: its own folder is what the server's account can't enter


def place_in_memory(directory: Path) -> None:
    """Let the data of a server directory that has none yet stand in memory, if there is room.

    A disk's file system takes long to make files where thousands were deleted seconds ago, as with a database per test.
    """
    place = directory / LINK_NAME
    has_room = os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES
    if has_room and not os.path.lexists(place):
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        place.symlink_to(_make_elsewhere(directory, MEMORY))
        place.chmod(0o711)  # whatever the umask


def delete_cluster(directory: Path) -> None:
    """Delete the cluster of a server directory, wherever it stands; its server must not run."""
    place = directory / LINK_NAME
    if place.is_symlink():
        target = place.readlink()
        if target.parent in (ELSEWHERE, MEMORY) and target.name.startswith("feedmill-") and target.is_dir():
            shutil.rmtree(target)
        place.unlink()
    elif place.is_dir():
        shutil.rmtree(place)


def remove_stale_lock(data: Path) -> None:
    """Remove the postmaster.pid of a server that was killed, if its number looks alive to the next server.

    That happens when nobody has reaped the zombie yet, or the number was given to another process, as is usual
    in a container. In all other cases the server itself knows better. Raises ConfigurationError if backends of
    the killed server still use its data.
    """
    lock = data / "postmaster.pid"
    if not lock.exists():
        return
    lines = lock.read_text(encoding="ascii", errors="replace").split("\n")
    if not Path("/proc", lines[0].strip()).is_dir():
        return
    shared_memory_id = lines[6].split()[1] if len(lines) > 6 and lines[6].split()[1:] else ""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while _is_attached(shared_memory_id):
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"backends of a PostgreSQL server that was killed still work on {data}: end them, or wait"
            )
        time.sleep(POLL_SECONDS)
    lock.unlink()


def give(path: Path, account: Account | None) -> None:
    """Make the account, if there is one, the owner of a file, or of a folder and all in it."""
    if account is None:
        return
    for one in (path, *path.rglob("*")) if path.is_dir() else (path,):
        os.chown(one, account.uid, account.gid, follow_symlinks=False)


def _can_reach(folder: Path, user: str) -> bool:
    account = find_account(folder / DATA_NAME, user)
    if account is None:
        return True
    # Asked of the kernel, as that user: modes alone don't tell the whole truth (access lists, mount options).
    argv = ["setpriv", *account.setpriv(), "--", "test", "-x", str(folder)]
    return subprocess.run(argv, check=False).returncode == 0


def _make_elsewhere(directory: Path, parent: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    target = parent / f"feedmill-{digest}"
    if os.path.lexists(target):
        # Nothing leads to it: our directory was deleted without it. In a folder that all may write to, it could
        # also be somebody's trap.
        if target.is_symlink() or target.stat().st_uid != os.geteuid():
            raise ConfigurationError(f"{target} should be ours, but another user made it: remove it")
        shutil.rmtree(target)
    target.mkdir(mode=0o711)
    return target


def _is_attached(shared_memory_id: str) -> bool:
    """Return whether any process uses the System V shared memory segment that a server holds while it lives."""
    if not SHARED_MEMORY.exists():
        return False
    header, *rows = [line.split() for line in SHARED_MEMORY.read_text(encoding="ascii").splitlines()]
    users = {row[header.index("shmid")]: int(row[header.index("nattch")]) for row in rows}
    return users.get(shared_memory_id, 0) > 0
