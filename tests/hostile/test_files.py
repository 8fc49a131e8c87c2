"""Writing: nothing half-written is ever seen under the final name, and sources are never touched, whatever happens."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.conftest import FIXTURES, ROOT
from tokpack import output
from tokpack.errors import ExistsError, ReadError, TokpackError

SOURCE = FIXTURES / "no-types.gguf"
OTHER = FIXTURES / "spm-bare.gguf"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.gguf"
    shutil.copy(SOURCE, path)
    return path


def visible(folder: Path) -> list[str]:
    """Names that a user sees."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def everything(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- killed at every step --------------------------------------------------------------------------------------------


class Killer:
    """Ends this process at a step."""

    def __init__(self, at: int) -> None:
        self._left = at

    def step(self) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self) -> None:
        """Put a step before and behind everything that the writer does to the disk; for a process that will end."""
        step, real_fsync = self.step, os.fsync

        class Handle:
            """A file whose writes come in three parts."""

            def __init__(self, handle: Any) -> None:
                self._handle = handle

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                step()
                self._handle.close()
                step()

            def write(self, content: bytes) -> None:
                size = len(content) // 3 + 1
                for begin in range(0, len(content), size):
                    self._handle.write(content[begin : begin + size])
                    self._handle.flush()
                    step()

            def flush(self) -> None:
                self._handle.flush()

            def fileno(self) -> int:
                number: int = self._handle.fileno()
                return number

        class Watched(type(Path())):  # type: ignore[misc]
            def open(self, mode: str = "r", *more: Any, **options: Any) -> Any:
                handle = super().open(mode, *more, **options)
                step()
                return Handle(handle) if "r" not in mode else handle

            def replace(self, target: Any) -> Any:
                step()
                done = super().replace(target)
                step()
                return done

            def unlink(self, *more: Any, **options: Any) -> None:
                step()
                super().unlink(*more, **options)

        def fsync(number: int) -> None:
            step()
            real_fsync(number)
            step()

        output.Path = Watched  # type: ignore[misc,attr-defined]
        os.fsync = fsync


def die_at(at: int, call: Callable[[], Any]) -> int:
    """Exit code of a process that kills itself at a step of what ``call`` writes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads of numpy, which nobody needs in the child
        child = os.fork()
    if child == 0:
        code = 3
        try:
            Killer(at).arm()
            call()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("existing", [False, True], ids=["new", "overwritten"])
def test_killed_at_every_step(existing: bool, source: Path, tmp_path: Path) -> None:
    """After SIGKILL there is the whole old file, or none, or the whole new file; and the next conversion works."""
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "out.tokpack"
    tokpack.convert(source, target)
    new, before = target.read_bytes(), source.read_bytes()
    tokpack.convert(OTHER, target, force=True)
    old = target.read_bytes()
    outcomes = set()
    for at in range(1, 40):
        shutil.rmtree(folder)
        folder.mkdir()
        if existing:
            target.write_bytes(old)
        code = die_at(at, lambda: tokpack.convert(source, target, force=True))
        outcomes.add((code, target.read_bytes() if target.exists() else None))
        assert visible(folder) in ([], ["out.tokpack"]), at
        assert source.read_bytes() == before
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("it never came to an end")
    assert at > 8
    assert {content for code, content in outcomes if code} == {old if existing else None, new}
    tokpack.convert(source, target, force=True)  # what was left behind is in nobody's way
    assert target.read_bytes() == new


def test_killed_between_a_file_and_its_index(source: Path, tmp_path: Path) -> None:
    """Two files: after SIGKILL an index beside never goes with another body; ids are right or there is an error."""
    folder = tmp_path / "out"
    folder.mkdir()
    target, options = folder / "out.mtok", {"write_options": {"index": "sidecar"}}
    text = "Hello world 123"
    ids = {name: tokpack.load(path).encode(text) for name, path in (("new", source), ("old", OTHER))}
    assert ids["new"] != ids["old"]
    tokpack.convert(source, target, **options)
    files = [(str(path), path.read_bytes()) for path in sorted(folder.iterdir())]  # the body, then its index
    tokpack.convert(OTHER, target, force=True, **options)
    old = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(old) == len(files) == 2
    seen, looked_at = set(), set()
    for at in range(1, 60):
        shutil.rmtree(folder)
        folder.mkdir()
        for name, content in old.items():
            (folder / name).write_bytes(content)
        code = die_at(at, lambda: output.write_files(files))
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert visible(folder) == sorted(old)
        now = tuple(path.read_bytes() for path in sorted(folder.iterdir()) if path.name in old)
        if now in looked_at:
            continue
        looked_at.add(now)
        try:
            tokenizer = tokpack.load(target)
        except TokpackError:
            seen.add("error")
        else:
            # without a fitting index it is read as MNN reads it, from the new body
            found = "other rules" if tokenizer.reference == "mnn" else tokenizer.encode(text)
            seen.add("new" if found == ids["new"] else "old" if found == ids["old"] else str(found))
    assert seen <= {"old", "new", "error", "other rules"}
    assert {"old", "new"} <= seen


# --- no room, no permission ------------------------------------------------------------------------------------------


def run(program: str, *arguments: str, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, preexec_fn=before)


CONVERT = """
import sys, tokpack
try:
    tokpack.convert(sys.argv[1], sys.argv[2], force=True)
except tokpack.ReadError as error:
    print(error)
    sys.exit(3)
"""


def small_files() -> None:
    """No file may grow beyond 20 kB, and the signal for it is ignored, so that write() fails in the middle."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("existing", [None, b"old"])
def test_no_room(existing: bytes | None, source: Path, tmp_path: Path) -> None:
    """The disk is full in the middle of a file: an error that says so, the old file is there, no other is."""
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "out.tokpack"
    if existing is not None:
        target.write_bytes(existing)
    done = run(CONVERT, str(source), str(target), before=small_files)
    assert done.returncode == 3, done.stderr
    assert "cannot write: File too large" in done.stdout
    assert str(target) in done.stdout
    assert everything(folder) == ([] if existing is None else ["out.tokpack"])
    assert existing is None or target.read_bytes() == existing
    assert source.read_bytes() == SOURCE.read_bytes()


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_no_room_at_each_step(where: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC and EIO may come late; what was written before is taken away again."""
    folder = tmp_path / "out"
    folder.mkdir()

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where == "write":
        real = Path.open

        def opened(self: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
            handle = real(self, mode, *more, **options)
            return Full(handle) if "r" not in mode else handle

        class Full:
            def __init__(self, handle: Any) -> None:
                self._handle = handle

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                self._handle.close()

            def write(self, content: bytes) -> None:
                self._handle.write(content[:1000])
                fail()

        monkeypatch.setattr(Path, "open", opened)
    elif where == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ReadError, match="No space left"):
        tokpack.convert(source, folder / "out.tokpack")
    assert everything(folder) == []


def test_a_folder_that_may_not_be_written() -> None:
    """An error that says so; nothing changes."""
    program = CONVERT
    if os.access("/", os.W_OK):  # root may write anywhere, so the program becomes somebody else
        imports = "import os, sys, tokpack, tokpack.formats.gguf, tokpack.pack.build, tokpack.pack.file, numpy\n"
        before = "tokpack.convert(sys.argv[1], sys.argv[3])\nos.setuid(65534)\n"  # all modules are there then
        program = CONVERT.replace("import sys, tokpack\n", imports + before)
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        shutil.copy(SOURCE, top / "source.gguf")
        folder = top / "out"
        folder.mkdir()
        (folder / "out.tokpack").write_bytes(b"old")
        folder.chmod(0o555)
        done = run(program, str(top / "source.gguf"), str(folder / "out.tokpack"), str(top / "first.tokpack"))
        assert done.returncode == 3, done.stderr
        assert "Permission denied" in done.stdout
        assert everything(folder) == ["out.tokpack"]
        assert (folder / "out.tokpack").read_bytes() == b"old"
        folder.chmod(0o755)


def test_a_folder_that_is_not_there(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No such file or directory"):
        tokpack.convert(source, tmp_path / "none/out.tokpack")
    assert visible(tmp_path) == ["source.gguf"]


def test_a_name_that_is_as_long_as_a_name_can_be(source: Path, tmp_path: Path) -> None:
    """The name of the file that waits is not longer than that of the output."""
    target = tmp_path / ("x" * (255 - len(".tokpack")) + ".tokpack")
    tokpack.convert(source, target)
    assert tokpack.load(target).encode("Hello") == tokpack.load(source).encode("Hello")


def test_what_another_process_left_behind_is_in_nobodys_way(source: Path, tmp_path: Path) -> None:
    """A file of the name that an earlier version used, of a process with the same number."""
    left = tmp_path / f".out.tokpack.{os.getpid()}.tmp"
    left.write_bytes(b"left behind")
    tokpack.convert(source, tmp_path / "out.tokpack")
    assert left.read_bytes() == b"left behind"
    assert tokpack.load(tmp_path / "out.tokpack").vocab_size


def test_two_threads_that_write_one_file(source: Path, tmp_path: Path) -> None:
    """The one or the other, whole; neither takes away what the other is about to rename."""
    target = tmp_path / "out.tokpack"
    packs = []
    for path in (source, OTHER):
        tokpack.convert(path, target, force=True)
        packs.append(target.read_bytes())
    errors: list[BaseException] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                output.write_files([(str(target), content)])
                assert target.read_bytes() in packs
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in packs * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert everything(tmp_path) == ["out.tokpack", "source.gguf"]


# --- what may not be written over ------------------------------------------------------------------------------------


def test_a_source_is_never_written_over(source: Path, tmp_path: Path) -> None:
    """Under its own name, through a link, and with force."""
    (tmp_path / "link.tokpack").symlink_to(source)
    os.link(source, tmp_path / "hard.tokpack")
    before = source.read_bytes()
    for target in ("source.gguf", "./source.gguf", "link.tokpack", "hard.tokpack"):
        with pytest.raises(ExistsError):
            tokpack.convert(source, tmp_path / target, target_format="tokpack", force=True)
        assert source.read_bytes() == before


def test_a_file_of_a_source_folder_is_never_written_over(tmp_path: Path) -> None:
    """A folder is read whole: with force, tokenizer.json and its companions are safe; an earlier output is not."""
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(FIXTURES / "hf/gpt2.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"eos_token": null}')
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in before:
        for path in (folder / name, tmp_path / "model/../model" / name):
            with pytest.raises(ExistsError):
                tokpack.convert(folder, path, target_format="tokpack", force=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    for _ in range(2):
        tokpack.convert(folder, folder / "tokenizer.mtok", force=True)
    assert tokpack.load(folder / "tokenizer.mtok").encode("a")


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_file_is_not_written_over(kind: str, source: Path, tmp_path: Path) -> None:
    """A rename over /dev/null would replace it for everybody."""
    target = tmp_path / "target.tokpack"
    if kind == "fifo":
        os.mkfifo(target)
    else:
        target.symlink_to("/dev/null")
    for force in (False, True):
        with pytest.raises(ExistsError):
            tokpack.convert(source, target, force=force)
    assert not target.is_file()
    assert everything(tmp_path) == ["source.gguf", "target.tokpack"]


def test_the_sidecar_is_not_written_over_the_source(source: Path, tmp_path: Path) -> None:
    from tokpack.pack.view import SIDECAR_SUFFIX

    odd = tmp_path / f"out.mtok{SIDECAR_SUFFIX}"
    shutil.copy(source, odd)
    with pytest.raises(ExistsError):
        tokpack.convert(odd, tmp_path / "out.mtok", write_options={"index": "sidecar"}, force=True)
    assert odd.read_bytes() == source.read_bytes()


# --- files that change while they are mapped -------------------------------------------------------------------------


@pytest.fixture
def pack(source: Path, tmp_path: Path) -> Path:
    tokpack.convert(source, tmp_path / "mapped.tokpack")
    return tmp_path / "mapped.tokpack"


def test_a_mapped_pack_may_be_replaced(pack: Path, tmp_path: Path) -> None:
    """By a rename, as every conversion does: who has it open goes on, who opens it gets the new one."""
    text = "Hello world 123"
    first = tokpack.load(pack)
    before = tokpack.load(SOURCE).encode(text)
    tokpack.convert(OTHER, pack, force=True)
    assert first.encode(text) == before
    assert first.decode(before) == tokpack.load(SOURCE).decode(before)
    assert tokpack.load(pack).encode(text) == tokpack.load(OTHER).encode(text) != before
    pack.unlink()
    assert first.encode(text) == before


TRUNCATED = """
import os, sys, tokpack
tokenizer = tokpack.load(sys.argv[1])
before = tokenizer.encode("Hello world 123")
os.truncate(sys.argv[1], int(sys.argv[2]))
try:
    for text in ("Hello world 123", "another text, zebra", "été 12345\\n" * 50):
        ids = tokenizer.encode(text)
        tokenizer.decode(ids)
        tokenizer.token_to_id("zzz")
except tokpack.TokpackError:
    sys.exit(7)
"""


@pytest.mark.parametrize("kept", [0, 4096, 20_000])
def test_a_mapped_pack_that_is_cut_in_place(kept: int, pack: Path) -> None:
    """The one thing that is not promised: a page that is gone is a bus error. SECURITY.md says so."""
    done = run(TRUNCATED, str(pack), str(kept))
    assert done.returncode in (0, 7, -signal.SIGBUS), done.stderr
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "truncated in place" in page
    assert "bus error" in page
    with pytest.raises(TokpackError):
        tokpack.load(pack)


def test_a_source_may_change_once_it_is_read(source: Path) -> None:
    """What was read from a GGUF lives in memory."""
    tokenizer = tokpack.load(source)
    before = tokenizer.encode("Hello world 123")
    os.truncate(source, 100)
    assert tokenizer.encode("Hello world 123") == before
    with pytest.raises(TokpackError):
        tokpack.load(source)
    source.unlink()
    assert tokenizer.encode("Hello world 123") == before


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "fifo", "folder"])
def test_what_is_no_file_is_not_read(name: str, tmp_path: Path) -> None:
    """It would block, or never end."""
    path = Path(name) if name.startswith("/") else tmp_path / name
    if name == "fifo":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    with pytest.raises(ReadError):
        tokpack.load(path)


def test_a_read_only_source_is_enough(source: Path, tmp_path: Path) -> None:
    """Nothing is written beside a source, not even for a moment."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    shutil.copy(source, folder / "model.gguf")
    times = (folder.stat().st_mtime_ns, (folder / "model.gguf").stat().st_mtime_ns)
    folder.chmod(0o555)
    tokpack.convert(folder / "model.gguf", tmp_path / "out.tokpack")
    assert (folder.stat().st_mtime_ns, (folder / "model.gguf").stat().st_mtime_ns) == times
    folder.chmod(0o755)
