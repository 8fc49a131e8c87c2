"""Files that are cut off or lie about their sizes, through the front door: ``tokpack.load`` and encode.

Each has to end in an error of the library in less than a second and 300 MB, or in a tokenizer that encodes.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import tokpack
from tests.hostile.gguf_builder import Field, Key, gguf, vocabulary, walk
from tests.hostile.guard import limit
from tests.hostile.mtok_walker import header_numbers, walk_body
from tests.pack.helpers import FOOTER, FOOTER_FIELDS, read_footer
from tokpack.errors import FormatError, TokpackError

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
WORKER = Path(__file__).resolve().parent / "worker.py"
SEED = 90_210
SECONDS, MEGABYTES = 1.0, 300

Case = dict[str, Any]
Run = Callable[[list[Path], Iterable[Case]], Counter[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``run(base files, cases)``: how often each result came; a hang, a crash, or too much of anything fails."""

    def start(bases: list[Path], cases: Iterable[Case]) -> Counter[str]:
        lines = [json.dumps(case) for case in cases]
        assert lines
        command = [sys.executable, str(WORKER), str(tmp_path), str(SECONDS), str(MEGABYTES), *map(str, bases)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command, input="\n".join(lines), capture_output=True, text=True, timeout=170, env=environment, check=False
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 0, f"ended with {done.returncode} after {answers[-1:]}: {done.stderr[-2000:]}"
        peak = answers.pop()["peak"]
        assert len(answers) == len(lines)
        bad = [answer for answer in answers if answer["result"] not in ("loaded", "refused")]
        kinds = Counter(f"{answer['result']} {answer['error']}"[:120] for answer in bad)
        shown = "\n".join(f"{answer['name']}: {answer['result']} {answer['error']}" for answer in bad[:20])
        assert not bad, f"{len(bad)} of {len(answers)}\n{shown}\n{kinds.most_common(10)}"
        assert max(answer["seconds"] for answer in answers) < SECONDS
        assert peak < MEGABYTES * 1_000_000
        return Counter(answer["result"] for answer in answers)

    return start


def cuts(size: int, base: int = 0, sample: int | None = None) -> list[Case]:
    print("seed", SEED)
    sizes = range(size) if sample is None else sorted(random.Random(SEED + size).sample(range(size), min(sample, size)))
    return [{"name": f"cut to {n} of {size}", "base": base, "cut": n} for n in sizes]


def settings(fields: Iterable[Field], base: int = 0) -> list[Case]:
    """Each field set to 0, 1, one more, one less, and its maximum, its sign bit included and not."""
    cases = []
    for field in fields:
        size = (field.maximum.bit_length() + 7) // 8
        for value in dict.fromkeys(
            (0, 1, field.maximum, field.maximum >> 1, min(field.value + 1, field.maximum), max(field.value - 1, 0))
        ):
            if value != field.value:
                raw = value.to_bytes(size, "big" if field.code[0] == ">" else "little").hex()
                name = f"{field.what} at {field.offset} = {value}"
                cases.append({"name": name, "base": base, "patch": [[field.offset, size, raw]]})
    return cases


def thin(cases: list[Case], sample: int) -> list[Case]:
    print("seed", SEED)
    return random.Random(SEED).sample(cases, min(sample, len(cases)))


def fixture(name: str) -> tuple[Path, bytes]:
    path = FIXTURES / f"{name}.gguf"
    return path, path.read_bytes()


# --- .gguf -----------------------------------------------------------------------------------------------------------


def test_the_walker_sees_the_whole_file() -> None:
    for name in ("no-types", "demo", "big-endian", "version-2", "odd-tokens"):
        _, data = fixture(name)
        fields, end = walk(data)
        assert len(data) - end < 32
        assert not data[end:].strip(b"\0")
        assert {field.what for field in fields} >= {"key count", "count of tokenizer.ggml.tokens"}


def test_a_gguf_cut_at_every_byte(run: Run) -> None:
    path, data = fixture("no-types")
    end = walk(data)[1]
    results = run([path], cuts(len(data)))
    assert results == {"refused": end, "loaded": len(data) - end}


@pytest.mark.parametrize("name", ["demo", "big-endian"])
def test_a_larger_gguf_cut_anywhere(run: Run, name: str) -> None:
    path, data = fixture(name)
    results = run([path], cuts(walk(data)[1], sample=400))
    assert set(results) == {"refused"}


@pytest.mark.slow
def test_the_example_gguf_cut_at_every_byte_of_its_header(run: Run) -> None:
    path, data = fixture("demo")
    end = walk(data)[1]
    dense = [*cuts(2000), *({"name": f"cut to {n}", "base": 0, "cut": n} for n in range(end - 3000, end))]
    results = run([path], [*dense, *cuts(end, sample=9000)])
    assert set(results) == {"refused"}


def test_every_count_and_length_of_a_gguf(run: Run) -> None:
    path, data = fixture("no-types")
    fields = walk(data)[0]
    assert len(fields) > 400
    results = run([path], settings(fields))
    assert results["refused"] > results["loaded"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", "odd-tokens", "big-endian", "fim-candidates"])
def test_every_length_of_every_string_of_a_gguf(run: Run, name: str) -> None:
    path, data = fixture(name)
    results = run([path], thin(settings(walk(data)[0]), 6000))
    assert results["refused"] > 0


def test_the_counts_of_the_example_gguf(run: Run) -> None:
    path, data = fixture("demo")
    fields = walk(data)[0]
    few = [field for field in fields if "[" not in field.what]
    run([path], [*settings(few), *thin(settings(fields), 150)])


def test_lies_that_refusals_cannot_catch(run: Run) -> None:
    """With everything allowed that can be allowed, the same files still encode or end in an error."""
    path, data = fixture("no-types")
    codes = ["gguf-duplicate-pieces", "gguf-array-short", "gguf-wrong-type", "gguf-merges-missing"]
    codes += ["gguf-byte-piece-short", "gguf-phi3-pieces", "gguf-architecture-missing"]
    run([path], [case | {"allow": codes} for case in thin(settings(walk(data)[0]), 400)])


def test_random_bytes_behind_a_good_start(run: Run) -> None:
    path, data = fixture("no-types")
    rng = random.Random(SEED)
    print("seed", SEED)
    cases: list[Case] = []
    for turn in range(300):
        at = rng.randrange(4, len(data))
        size = rng.choice((1, 2, 8, 64, len(data) - at))
        cases.append({"name": f"noise {turn} at {at}", "base": 0, "patch": [[at, size, rng.randbytes(size).hex()]]})
    run([path], cases)


def test_tiny_files(tmp_path: Path) -> None:
    for name, content in {
        "nothing": b"",
        "a byte": b"G",
        "magic": b"GGUF",
        "magic and version": b"GGUF\x03\0\0\0",
        "no keys": gguf([]),
        "text": b"hello",
        "zeros": bytes(100_000),
        "ones": b"\xff" * 100_000,
        "mtok header": b"430 4\n",
        "mtok counts": b"430 4\n4294967295 4294967295 4294967295\n\n",
        "json": b'{"model": ' + b"[" * 50_000,
        "openings": b"{" * 200_000,
    }.items():
        path = tmp_path / "tiny"
        path.write_bytes(content)
        for format_ in (None, "gguf", "mtok", "tokpack"):
            with limit(SECONDS), pytest.raises(TokpackError):
                tokpack.load(path, format=format_)
            with limit(SECONDS), pytest.raises(TokpackError):
                tokpack.read(path, format=format_)
        assert name


def test_what_is_no_file(tmp_path: Path) -> None:
    paths = [tmp_path, tmp_path / "missing.gguf", Path(os.devnull), tmp_path / "missing" / "x.mtok", Path("a\0b")]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in [*paths, pipe]:
        for format_ in (None, "gguf", "tokpack"):
            with limit(SECONDS), pytest.raises(TokpackError) as caught:
                tokpack.load(path, format=format_)
            assert caught.value.location.file == str(path)


def sparse(path: Path, head: bytes, size: int) -> None:
    path.write_bytes(head)
    try:
        os.truncate(path, size)
    except OSError as error:
        pytest.skip(f"the file system has no sparse files: {error}")
    if path.stat().st_blocks * 512 > size // 2:
        pytest.skip("the file system has no sparse files")


def test_a_20_gigabyte_model_costs_as_much_as_its_header(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "model.gguf"
    sparse(path, gguf(vocabulary(), tensors=700), 20 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    tokenizer = tokpack.load(path)
    assert tokenizer.encode("Hello world 123") == [259, 264, 266, 51]
    tokpack.convert(path, tmp_path / "x.tokpack")
    assert time.process_time() - start < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


@pytest.mark.parametrize(
    ("name", "kind"), [("tokenizer.ggml.tokens", "[str]"), ("tokenizer.x", "[[str]]"), ("model.x", "[str]")]
)
def test_a_huge_file_that_promises_huge_arrays(tmp_path: Path, name: str, kind: str) -> None:
    """20 GB of zeros are 2,684,354,560 empty strings: the count fits in the file, so only a limit can stop it."""
    path = tmp_path / "model.gguf"
    count = (20 << 30) // 16
    keys = [Key("general.architecture", "str", "gpt2"), Key("tokenizer.ggml.model", "str", "gpt2")]
    sparse(path, gguf([*keys, Key(name, kind, [], count=count)]), 20 << 30)
    with limit(SECONDS), pytest.raises(FormatError, match="limit"):
        tokpack.load(path)


@pytest.mark.parametrize("name", ["general.x", "tokenizer.ggml.token_type", "tokenizer.x"])
def test_a_huge_file_with_a_huge_array_of_numbers(tmp_path: Path, name: str) -> None:
    """Two gigabytes of numbers in a key that is kept: nobody needs them."""
    path = tmp_path / "model.gguf"
    lie = Key(name, "[i32]", [], count=1 << 29)
    keys = [key for key in vocabulary() if key.name != name]
    sparse(path, gguf([*keys, lie]), (2 << 30) + 100_000)
    program = (
        "import resource, sys, tokpack\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (3 << 30),) * 2)\n"
        "try:\n    tokpack.load(sys.argv[1]).encode('Hello')\n"
        "except tokpack.TokpackError as error:\n    print(error)\n"
        "peak = [line for line in open('/proc/self/status') if line.startswith('VmHWM')][0]\n"
        "print(peak.split()[1])\n"
    )
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert int(done.stdout.split()[-1]) < MEGABYTES * 1000, "kilobytes"


# --- .mtok -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mtoks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A converted fixture with its index inside, and the body alone."""
    folder = tmp_path_factory.mktemp("mtok")
    found: dict[str, Path] = {}
    for name in ("no-types", "demo"):
        whole = folder / f"{name}.mtok"
        tokpack.convert(FIXTURES / f"{name}.gguf", whole)
        body = folder / f"{name}-body.mtok"
        body.write_bytes(whole.read_bytes()[: read_footer(whole.read_bytes())["body_length"]])
        found |= {name: whole, f"{name}-body": body}
    return found


def body_cases(body: bytes) -> list[Case]:
    cases = settings(walk_body(body))
    for start, end in header_numbers(body):
        for text in (b"0", b"1", b"4294967295", b"18446744073709551616", b"-1", b"", b"x", b"9" * 5000):
            name = f"header number at {start} = {text[:20]!r}"
            cases.append({"name": name, "base": 0, "patch": [[start, end - start, text.hex()]]})
    return cases


def index_cases(data: bytes) -> list[Case]:
    """Numbers of the footer, and of the section table with its checksum made right."""
    import msgpack

    at = len(data) - FOOTER.size
    offsets = [0, 8, 12, 16, 24, 32, 40, 48, 56, 60, 64, 80, 96, 120]
    codes = ["Q", "I", "I", "Q", "Q", "Q", "Q", "Q", "I", "I", "Q", "Q", "Q", "Q"]
    true = read_footer(data)
    fields = []
    for name, offset, code in zip(FOOTER_FIELDS, offsets, codes, strict=True):
        value = true[name] if isinstance(true[name], int) else int.from_bytes(true[name][:8], "little")
        fields.append(Field(name, at + offset, "<" + code, value))
    cases = settings(fields)
    import zlib

    start, size = true["table_offset"], true["table_length"]
    table = msgpack.unpackb(data[start : start + size])
    for section in table:
        for place in (0, 1):
            for value in (0, 1, 4096, len(data), (1 << 31) - 1, 1 << 32, (1 << 64) - 1):
                changed = {**table, section: [value if i == place else part for i, part in enumerate(table[section])]}
                raw = msgpack.packb(changed)
                footer = true | {
                    "table_length": len(raw),
                    "table_checksum": zlib.crc32(raw),
                    "total_length": start + len(raw) + FOOTER.size,
                }
                tail = raw + FOOTER.pack(*footer.values())
                name = f"table entry {section}[{place}] = {value}"
                cases.append({"name": name, "base": 0, "patch": [[start, len(data) - start, tail.hex()]]})
    return cases


def test_an_mtok_cut_anywhere(run: Run, mtoks: dict[str, Path]) -> None:
    data = mtoks["no-types"].read_bytes()
    # what is cut behind the body is a plain .mtok, which is loaded and tried out: that takes its time
    ends = ({"name": f"cut to {n}", "base": 0, "cut": n} for n in range(len(data) - 140, len(data), 5))
    run([mtoks["no-types"]], [*cuts(400), *ends, *cuts(len(data), sample=60)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["no-types", "demo"])
def test_an_mtok_cut_at_many_bytes(run: Run, mtoks: dict[str, Path], name: str) -> None:
    run([mtoks[name]], cuts(mtoks[name].stat().st_size, sample=400))


def test_a_body_cut_at_every_byte(run: Run, mtoks: dict[str, Path]) -> None:
    path = mtoks["no-types-body"]
    run([path], cuts(path.stat().st_size, sample=400))


def test_every_count_and_length_of_a_body(run: Run, mtoks: dict[str, Path]) -> None:
    """Without an index the body alone is read; with one, the index notices some of the changes."""
    for name in ("no-types-body", "no-types"):
        body = mtoks["no-types-body"].read_bytes()
        run([mtoks[name]], thin(body_cases(body), 500))


@pytest.mark.slow
def test_every_count_and_length_of_the_larger_body(run: Run, mtoks: dict[str, Path]) -> None:
    body = mtoks["demo-body"].read_bytes()
    for name in ("demo-body", "demo"):
        run([mtoks[name]], thin(body_cases(body), 3000))


@pytest.mark.parametrize("name", ["no-types", "demo"])
def test_every_number_of_the_index(run: Run, mtoks: dict[str, Path], name: str) -> None:
    results = run([mtoks[name]], index_cases(mtoks[name].read_bytes()))
    assert results["refused"] > results["loaded"]


def test_values_of_the_sections(run: Run, mtoks: dict[str, Path]) -> None:
    """First, middle and last element of every section set to 0, 1 and its maximum."""
    from tokpack.pack.layout import SECTIONS
    from tokpack.pack.view import PackView

    data = mtoks["no-types"].read_bytes()
    fields = []
    for name, (start, size) in PackView(data).sections.items():
        step = SECTIONS[name].size
        code = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}[step]
        for index in {0, size // step // 2, size // step - 1} if size else ():
            at = start + index * step
            fields.append(Field(f"{name}[{index}]", at, code, int.from_bytes(data[at : at + step], "little")))
    run([mtoks["no-types"]], settings(fields))
