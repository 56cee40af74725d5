"""The folder in which a learner works, made from the course and brought up to date with it.

Beside the notebooks it has a hidden folder:

    .attnlab/handed_out/    the notebooks as they were handed out last, to tell what was changed
    .attnlab/earlier/       the learner's notebooks as they were before an update
    .attnlab/state.json     which version of the course each notebook was made from
    .attnlab/jupyter/       what JupyterLab and IPython write

Every file is written atomically, the learner's notebook before the record of what was handed out.
So an update that was interrupted is completed by the next one.
"""

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from attnlab.editions import merge, notebooks
from attnlab.editions.notebooks import Notebook

HIDDEN = ".attnlab"
KEPT_UPDATES, KEPT_DAYS = 5, 30  # earlier states are removed when both are exceeded


class CopyError(Exception):
    """Why nothing could be done, in sentences for the learner."""


def course_files(course: Path) -> list[Path]:
    """The notebooks of a course, in their order.

    Raises:
        CopyError: if there is none.
    """
    if found := sorted(course.glob("0*.ipynb")):
        return found
    raise CopyError(f"There are no notebooks of the course in {course}.")


def read_course_file(path: Path) -> Notebook:
    """One notebook of the course.

    Raises:
        CopyError: if it is not a notebook.
    """
    try:
        return notebooks.parse(path.read_bytes())
    except ValueError:
        raise CopyError(f"{path} is damaged, so there is nothing to make a copy from.") from None


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
        with contextlib.suppress(OSError):
            part.unlink()
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds this file; then hold it. A process that dies lets go."""
    with path.open("a+b") as file:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            while True:
                with contextlib.suppress(OSError):  # after ten seconds it gives up: try again
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
        else:
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
        self.hidden = folder / HIDDEN
        self.handed_out = self.hidden / "handed_out"
        self.state_file = self.hidden / "state.json"

    def last_worked_in(self) -> Path | None:
        """The notebook that the learner saved last; the first one if none was changed yet."""
        bases = sorted(self.handed_out.glob("*.ipynb"))
        there = [base for base in bases if (self.folder / base.name).exists()]
        changed = [base for base in there if _read(self.folder / base.name) != base.read_bytes()]
        files = [self.folder / base.name for base in changed or there[:1]]
        return max(files, key=lambda path: path.stat().st_mtime, default=None)

    def is_up_to_date(self, course: Path) -> bool:
        """Whether an update would find nothing to do."""
        state = self._state()
        return all(
            state.get(source.name) == _version(source)
            and (self.handed_out / source.name).exists()
            and _readable(_read(self.folder / source.name)) is not None
            for source in course_files(course)
        )

    def update(self, course: Path) -> list[str]:
        """Make the copy, or bring it up to date.

        Returns:
            What happened, in sentences: nothing if there was nothing to do.

        Raises:
            CopyError: if ``folder`` is the course's own, or the course cannot be read.
            OSError: if a file cannot be read or written. What the learner typed is there.
        """
        if self.folder.resolve() == course.resolve():
            raise CopyError(f"{self.folder} is the course itself. Choose another folder.")
        if self.is_up_to_date(course):
            return []
        files = course_files(course)
        new = {path.name: notebooks.learners(read_course_file(path)) for path in files}
        self.handed_out.mkdir(parents=True, exist_ok=True)
        with _locked(self.hidden / "lock"):
            said = []
            for left_over in [*self.folder.glob(".*.part"), *self.hidden.rglob(".*.part")]:
                left_over.unlink()  # of an update that was killed
            self._earlier = _unused(self.hidden / "earlier" / time.strftime("%Y%m%d-%H%M%S"))
            state = self._state()
            for source in files:
                readable = _readable(_read(self.folder / source.name))
                if not readable or state.get(source.name) != _version(source):
                    said += self._update_one(source.name, new[source.name], set(new))
                    state[source.name] = _version(source)
                    write(self.state_file, json.dumps(state).encode())
            if self._earlier.exists():
                said.append(f"Your notebooks as they were before are in {self._earlier}.")
            self._forget_old_states()
        return said

    def _update_one(self, name: str, new: Notebook, names: set[str]) -> list[str]:
        """Bring one notebook up to date and say what happened."""
        target, base, data = self.folder / name, self.handed_out / name, notebooks.serialize(new)
        said = [] if base.exists() else self._follow_new_name(name, names)
        mine, handed_out = _read(target), _read(base)
        own = _readable(mine)
        if mine is None or not mine.strip():
            write(target, data)
            said.append(f"{name} is new." if handed_out is None else f"{name} was gone. It is new.")
        elif own is None:
            aside = _unused(target.with_stem(f"{target.stem}_damaged"))
            os.replace(target, aside)
            write(target, data)
            said.append(f"{name} could not be read. It is kept as {aside.name}; {name} is new.")
        elif mine == handed_out:
            if mine != data:
                write(target, data)
                said.append(f"{name} is updated. You had changed nothing in it.")
        else:
            merged, notes = merge.merge(_readable(handed_out), own, new)
            if merged != own:
                saved = target.stat()
                self._earlier.mkdir(parents=True, exist_ok=True)
                write(self._earlier / name, mine)
                write(target, notebooks.serialize(merged))
                os.utime(target, ns=(saved.st_atime_ns, saved.st_mtime_ns))  # who worked when
                said.append(f"{name} is updated. What you typed is still there.")
                said += [f"    {note}" for note in notes]
        write(base, data)
        return said

    def _follow_new_name(self, name: str, names: set[str]) -> list[str]:
        """If the course has renamed a notebook, which keeps its number, rename the learner's."""
        for old in sorted(self.handed_out.glob(f"{name.split('_')[0]}_*.ipynb")):
            if old.name not in names:
                mine, target = self.folder / old.name, self.folder / name
                said = []
                if mine.exists() and not target.exists():
                    os.replace(mine, target)
                    said = [f"{old.name} is called {name} now."]
                os.replace(old, self.handed_out / name)
                return said
        return []

    def _state(self) -> dict[str, str]:
        try:
            return dict(json.loads(self.state_file.read_bytes()))
        except (OSError, ValueError, TypeError):
            return {}

    def _forget_old_states(self) -> None:
        for path in sorted((self.hidden / "earlier").glob("*"))[:-KEPT_UPDATES]:
            if path.stat().st_mtime < time.time() - KEPT_DAYS * 24 * 3600:
                shutil.rmtree(path, ignore_errors=True)


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


def _version(source: Path) -> str:
    """What a notebook's edition depends on: the course's file and the code that makes editions."""
    return hashlib.sha256(Path(notebooks.__file__).read_bytes() + source.read_bytes()).hexdigest()


def _unused(path: Path) -> Path:
    numbered = (path.with_stem(f"{path.stem}_{number}") for number in itertools.count(2))
    return next(one for one in itertools.chain([path], numbered) if not one.exists())
