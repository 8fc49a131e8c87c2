"""Loads damaged files, one after the other, with bounded time and memory. Run as a program.

    worker.py FOLDER SECONDS MEGABYTES BASE ... < cases > results

Each line of the input is a JSON object: ``name``, ``base`` (which of the files BASE), one of ``cut`` (keep so many
bytes) and ``patch`` (list of [offset, bytes to replace, hex of the new bytes]). Each line of the output is another:
``name``, ``result`` (``loaded``, ``refused``, ``hang`` or ``crash``), ``error``, ``seconds``. A last line has the
``peak`` of the process in bytes. Memory is limited by the operating system, so a file that asks for more than
MEGABYTES beyond what the interpreter has at the start ends in a MemoryError, which is a crash.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any


def status(field: str) -> int:
    """A figure of /proc/self/status in bytes; 0 where there is no such file."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def damaged(base: bytes, case: dict[str, Any]) -> bytes:
    """The bytes of a case."""
    if "cut" in case:
        return base[: case["cut"]]
    for offset, size, new in case["patch"]:
        base = base[:offset] + bytes.fromhex(new) + base[offset + size :]
    return base


def main(folder: str, seconds: str, megabytes: str, *bases: str) -> None:
    """Read cases from standard input."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    import numpy  # noqa: F401  so that its memory is not counted as that of a file

    import tokpack
    from tests.hostile.guard import Hang, limit

    contents = [Path(base).read_bytes() for base in bases]
    for base in bases:
        with contextlib.suppress(tokpack.TokpackError):
            tokpack.load(base).encode("warm up")
    if status("VmSize"):
        bound = status("VmSize") + int(megabytes) * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    for line in sys.stdin:
        case = json.loads(line)
        path = Path(folder) / ("case" + Path(bases[case["base"]]).suffix)
        path.write_bytes(damaged(contents[case["base"]], case))
        answer = {"name": case["name"], "result": "loaded", "error": ""}
        starved = False
        start = time.process_time()
        try:
            with limit(float(seconds)):
                tokenizer = tokpack.load(path, allow=case.get("allow", ()))
                ids = tokenizer.encode("Hello world 123")
                tokenizer.decode(ids)
        except tokpack.TokpackError as error:
            answer |= {"result": "refused", "error": f"{type(error).__name__}: {error}"[:300]}
        except Hang:
            answer |= {"result": "hang"}
        except MemoryError:
            starved = True  # no more here: the frames of the error still hold the memory
        except BaseException as error:
            answer |= {"result": "crash", "error": f"{type(error).__name__}: {error}"[:300]}
        if starved:
            answer |= {"result": "crash", "error": "MemoryError"}
        answer["seconds"] = time.process_time() - start
        path.unlink()  # a new file each time: an old mapping keeps its own content
        print(json.dumps(answer), flush=True)
    print(json.dumps({"peak": status("VmHWM")}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main(*sys.argv[1:])
