"""Packages the course: its notebooks go into the wheel, its sources and tests into the sdist."""

from pathlib import Path

from setuptools.command.build_py import build_py

NOTEBOOKS = "course/0*.ipynb"  # attnlab/course/ in the wheel
SOURCES = [
    NOTEBOOKS,
    "course/0*.py",
    "tests/**/*.py",
    ".binder/*",
    ".ci/*",
    ".github/**/*.*",
    ".hub/*.py",
    ".jupyter/*.py",
    ".jupyter/labconfig/*",
    ".pre-commit-config.yaml",
    ".site/*.*",
    ".site/pages/*",
    ".site/static/*",
    ".slides/*.*",
    ".slides/deck/*",
    ".readme/*",
    ".slides/**/*.*",
    "Makefile",
    "environment.yml",
]


class BuildWithCourse(build_py):
    """The command that collects a distribution's files, with the folders beside ``src``."""

    def finalize_options(self):
        """Add the notebooks to the package's data."""
        super().finalize_options()
        # No longer needed; with "src" alone an editable install is a path and not an import hook.
        self.distribution.package_dir.pop("ci", None)
        notebooks = sorted(path.name for path in Path().glob(NOTEBOOKS))
        self.data_files += [("attnlab", "course", f"{self.build_lib}/attnlab/course", notebooks)]

    def get_source_files(self):
        """Add what the sdist needs, so that it can be tested and built again."""
        more = [str(path) for pattern in SOURCES for path in sorted(Path().glob(pattern))]
        return super().get_source_files() + more
