"""Creates files where other users may have put links, pipes or files of their own."""

import errno
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

_OPEN_TO_ALL = stat.S_ISVTX | stat.S_IWOTH


def create_anew(path: Path, mode: int = 0o600) -> int:
    """Create an empty file in the place of any other, and return its descriptor.

    No link is followed and no pipe opened: what had the name loses it.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.open(path, flags, mode)


def refuse_foreign(path: Path) -> None:
    """Refuse a path that another user's link, pipe or device decides about.

    Root follows root's links alone. Others follow links of themselves and of root in a directory
    such as /tmp, as the kernel does, and any link elsewhere.

    Raises:
        PermissionError: the error names the link, and whose it is.
    """
    whole = path.absolute()
    for place in (*reversed(whole.parents), whole):
        try:
            status = place.lstat()
        except OSError:
            return
        is_ordinary = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
        if not is_ordinary and _is_foreign(status, place.parent):
            kind = "link" if stat.S_ISLNK(status.st_mode) else "pipe or device"
            reason = f"it is a {kind} of {_name_of(status.st_uid)}"
            raise PermissionError(errno.EACCES, reason, str(place))


def _is_foreign(status: os.stat_result, directory: Path) -> bool:
    """Return whether what lies in a directory may be there to mislead this user."""
    user = os.geteuid()
    is_open = directory.stat().st_mode & _OPEN_TO_ALL == _OPEN_TO_ALL
    return status.st_uid not in {0, user} and (user == 0 or is_open)


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
