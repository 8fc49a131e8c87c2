"""What a release would hold: sdist and wheel, built from a clean copy of what git knows and does not ignore."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import FIXTURES, ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("build") is None, reason="the package build is not installed"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, the wheel made from the sdist, as for an upload."""
    folder = tmp_path_factory.mktemp("release")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
    for name in sorted(set(listed.stdout.decode().split("\0")) - {""}):
        if (ROOT / name).is_file():  # else it is deleted, but not yet committed
            target = folder / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(folder / "source")],
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    if "Could not find a version" in done.stderr + done.stdout or "NewConnectionError" in done.stderr + done.stdout:
        pytest.skip("building needs the package index")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


def test_the_wheel_holds_nothing_but_tokpack(built: Path) -> None:
    (wheel,) = (built / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = file.read(metadata).decode()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"tokpack", metadata.split("/")[0]}
    assert "tokpack/formats/__init__.py" in names
    assert "tokpack/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".gguf", ".mtok"))]
    assert "License-Expression: Apache-2.0" in text or "License: Apache-2.0" in text


def test_the_sdist_holds_the_sources(built: Path) -> None:
    (sdist,) = (built / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "tokpack/__init__.py", "formats/__init__.py"} <= names


def test_the_wheel_works_alone(built: Path) -> None:
    """The package out of the wheel, and nothing of the checkout, does the main job."""
    (wheel,) = (built / "dist").glob("*.whl")
    target = built / "site"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(target)
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r}); import tokpack\n"
        f"assert tokpack.__file__.startswith({str(target)!r}), tokpack.__file__\n"
        f"tokpack.convert({str(FIXTURES / 'demo.gguf')!r}, 'out.mtok', force=True)\n"
        "print(tokpack.load('out.mtok').encode('Hello world'))\n"
        "from tokpack import formats\n"
        "[entry.load() for entry in formats.all_formats().values()]"
    )
    done = subprocess.run(
        [sys.executable, "-P" if sys.version_info >= (3, 11) else "-I", "-c", code],
        cwd=built,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[478, 410]\n"
