"""The folder in which a learner works, made from the course and brought up to date with it.

Beside the notebooks it has a hidden folder:

    .attnlab/handed_out/    the notebooks as they were handed out last, to tell what was changed
    .attnlab/earlier/       the learner's notebooks as they were before an update
    .attnlab/jupyter/       what JupyterLab and IPython write

Every file is written atomically, the learner's notebook before the record of what was handed out.
So an update that was interrupted is completed by the next one.
"""

import contextlib
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from attnlab.editions import notebooks
from attnlab.editions.merge import merge
from attnlab.editions.notebooks import Notebook

KEPT_UPDATES, KEPT_DAYS = 5, 30  # earlier states are removed when both are exceeded


class CopyError(Exception):
    """Why nothing could be done, in sentences for the learner."""


def make(course: Path, edition: Callable[[Notebook], Notebook]) -> dict[str, Notebook]:
    """An edition of every notebook of a course, by the name of its file.

    Raises:
        CopyError: if there is none, or one is not a notebook.
    """
    made = {}
    for path in sorted(course.glob("0*.ipynb")):
        try:
            made[path.name] = edition(notebooks.parse(path.read_bytes()))
        except ValueError:
            raise CopyError(f"{path} is damaged. Nothing can be made from it.") from None
    if not made:
        raise CopyError(f"There are no notebooks of the course in {course}.")
    return made


def write(path: Path, data: bytes) -> None:
    """Write a file atomically: there is either the old one or the whole new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds this file; then hold it. A process that dies lets go."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            while True:
                with contextlib.suppress(OSError):  # after ten seconds it gives up: try again
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
            import fcntl

            with contextlib.suppress(OSError):  # some network disks have no locks
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


class LearnersCopy:
    """A learner's folder.

    Args:
        folder: where it is; it need not exist yet.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.hidden = folder / ".attnlab"
        self.handed_out = self.hidden / "handed_out"

    def last_worked_in(self) -> Path | None:
        """The notebook that the learner saved last; the first one if none was changed yet."""
        bases = sorted(self.handed_out.glob("*.ipynb"))
        files = [file for base in bases if (file := self.folder / base.name).exists()]
        changed = [f for f in files if f.read_bytes() != (self.handed_out / f.name).read_bytes()]
        return max(changed or files[:1], key=lambda file: file.stat().st_mtime, default=None)

    def to_update(self, new: dict[str, Notebook]) -> list[str]:
        """The notebooks that are missing, damaged, or handed out in another edition than this."""
        return [
            name
            for name, notebook in new.items()
            if _read(self.handed_out / name) != notebooks.serialize(notebook)
            or not _readable(_read(self.folder / name))
        ]

    def update(self, new: dict[str, Notebook]) -> list[str]:
        """Make the copy, or bring it up to date with an edition of the course.

        Returns:
            What happened, in sentences: nothing if there was nothing to do.

        Raises:
            OSError: if a file cannot be read or written. What the learner typed is there.
        """
        said: list[str] = []
        if not self.to_update(new):
            return said
        self.handed_out.mkdir(parents=True, exist_ok=True)
        with _locked(self.hidden / "lock"):
            for left_over in [*self.folder.glob(".*.part"), *self.hidden.rglob(".*.part")]:
                left_over.unlink()  # of an update that was killed
            earlier = _unused(self.hidden / "earlier" / time.strftime("%Y%m%d-%H%M%S"))
            for name in self.to_update(new):  # another process may have done it by now
                said += self._update_one(name, new, earlier)
            for old in sorted(earlier.parent.glob("*"))[:-KEPT_UPDATES]:
                if old.stat().st_mtime < time.time() - KEPT_DAYS * 24 * 3600:
                    shutil.rmtree(old, ignore_errors=True)
        if earlier.exists():
            said.append(f"Your notebooks as they were before are in {earlier}.")
        return said

    def _update_one(self, name: str, new: dict[str, Notebook], earlier: Path) -> list[str]:
        """Bring one notebook up to date and say what happened."""
        target, base = self.folder / name, self.handed_out / name
        data = notebooks.serialize(new[name])
        said = [] if base.exists() else self._follow_new_name(name, new)
        mine, handed_out = _read(target), _read(base)
        own = _readable(mine)
        if mine is None or not mine.strip():
            write(target, data)
            said.append(f"{name} is new." if handed_out is None else f"{name} was gone. It is new.")
        elif own is None:
            aside = _unused(target.with_stem(f"{target.stem}_damaged"))
            os.replace(target, aside)
            write(target, data)
            said.append(f"{name} could not be read. It is kept as {aside.name}, beside a new one.")
        elif mine == handed_out:
            if mine != data:
                write(target, data)
                said.append(f"{name} is updated. You had changed nothing in it.")
        else:
            merged, notes = merge(_readable(handed_out), own, new[name])
            if merged != own:
                saved = target.stat()
                earlier.mkdir(parents=True, exist_ok=True)
                write(earlier / name, mine)
                write(target, notebooks.serialize(merged))
                os.utime(target, ns=(saved.st_atime_ns, saved.st_mtime_ns))  # an update is no work
                said.append(f"{name} is updated. What you typed is still there.")
                said += [f"    {note}" for note in notes]
        write(base, data)
        return said

    def _follow_new_name(self, name: str, new: Container[str]) -> list[str]:
        """If the course has renamed a notebook, which keeps its number, rename the learner's."""
        number = name.split("_")[0]
        gone = [old for old in self.handed_out.glob(f"{number}_*") if old.name not in new]
        said = []
        for old in gone[:1]:
            mine, target = self.folder / old.name, self.folder / name
            if mine.exists() and not target.exists():
                os.replace(mine, target)
                said = [f"{old.name} is called {name} now."]
            os.replace(old, self.handed_out / name)
        return said


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _readable(data: bytes | None) -> Notebook | None:
    """The learner's notebook, if it can be read and something is in it."""
    try:
        notebook = notebooks.parse(data or b"")
    except ValueError:
        return None
    return notebook if any(cell["source"].strip() for cell in notebook["cells"]) else None


def _unused(path: Path) -> Path:
    numbered = (path.with_stem(f"{path.stem}_{number}") for number in itertools.count(2))
    return next(one for one in itertools.chain([path], numbered) if not one.exists())
