"""The tables of docs/performance.md: our runtime beside each peer that is installed, interleaved in one run.

    python tests/bench/speed.py --fetch                 make the texts (Django's source archive, by pip), once
    python tests/bench/speed.py > tables.md             all tables, about ten minutes; --quick: two; --only prompt: one
    python tests/bench/speed.py NAME=SOURCE[,tiktoken=FILE][,sentencepiece=FILE] ...      other vocabularies
    python tests/bench/speed.py --large 100             one text of 100 MB through encode and encode_array

Ids are compared on the whole of each text as it is timed (both halves) before anything is timed; a peer whose ids
differ is named under the table and not timed. Throughput is CPU time of the process: *cold* a new tokenizer's first
text, *unseen* one half of a text after the other half, *again* the same half once more; peers: unseen. All else is wall
time. Figures are medians of three or more, the peers in turn; in brackets how many times faster we are.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # this checkout, installed or not
import texts as corpus
from fresh import Fresh, large, mnn_times
from peers import Peer, peers
from tables import Table, against, header

import tokpack

PROMPT = "The quick brown fox jumps over the lazy dog; it costs 1,234.50 (or so), doesn't it? Yes: they said so!"
PARTS = ("load", "start", "bulk", "prompt", "stream", "batch", "mnn")
SIZES = (30, 100, 300, 1000, 3000, 10000)
SHORT = 20_000  # bytes of the text for MNN, whose merging takes time that grows with the square of a word


def timed(clock: Callable[[], float], action: Callable[..., object], *arguments: object) -> float:
    """Seconds of one call."""
    start = clock()
    action(*arguments)
    return clock() - start


def rounds(clock: Callable[[], float], actions: dict[str, Callable[[], object]], count: int = 3) -> dict[str, float]:
    """Median time of each action, in turn; what takes more than a second runs once."""
    found: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(count):
        for name, action in actions.items():
            if sum(found[name]) < 1:
                found[name].append(timed(clock, action))
    return {name: statistics.median(times) for name, times in found.items()}


class Vocabulary:
    """One vocabulary under test: the pack, the peers, and what they give."""

    def __init__(self, name: str, source: Path, options: dict[str, str], others: dict[str, Path], folder: Path) -> None:
        self.name, self.parse_special = name, source.suffix == ".json"
        stem = name.replace(" ", "-")
        self.pack = folder / f"{stem}.tokpack"
        tokpack.convert(source, self.pack, read_options=dict(options))
        self.sizes = f"{self.pack.stat().st_size / 1e6:.1f}"
        self.mtok = folder / f"{stem}.mtok"
        try:
            tokpack.convert(source, self.mtok, read_options=dict(options))
            body = tokpack.load(self.mtok).view.footer.body_length
            self.sizes += f" / {body / 1e6:.1f} / {self.mtok.stat().st_size / body:.2f}"
        except tokpack.TokpackError:
            self.mtok = self.pack
        self.peers = list(peers(source, self.mtok, others))
        self.notes: list[str] = []
        self.made: dict[str, Any] = {}
        self.loads: dict[str, list[float]] = {}
        for peer in [peer for peer in self.peers if peer.name != "MNN"]:
            self._make(peer)

    def _make(self, peer: Peer) -> None:
        """Load it once or twice; what cannot load the file is no peer."""
        for _ in range(2):
            start = time.perf_counter()
            try:
                self.made[peer.name] = peer.make()
            except BaseException as error:  # panics of Rust are no Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                self.notes.append(f"{self.name}: {peer.name} does not load it: {str(error).splitlines()[0][:100]}")
                self.peers.remove(peer)
                return
            self.loads.setdefault(peer.name, []).append(time.perf_counter() - start)
            if self.loads[peer.name][0] > 1:
                break

    def ours(self, text: str) -> Any:
        """Ids of a new tokenizer."""
        return tokpack.load(self.pack).encode_array(text, False, self.parse_special)

    def call(self, peer: Peer, part: str, *values: object) -> Callable[[], object] | None:
        """A peer's code on values, ready to call."""
        names = {"encode": "t, x", "decode": "t, i", "batch": "t, b", "stream": "t, i"}[part]
        function = peer.function(part, names)
        made = self.made[peer.name]
        return (lambda: function(made, *values)) if function else None

    def equal(self, text: str, ids: Any, where: str) -> list[Peer]:
        """The peers that give these ids; the others are noted."""
        found = []
        for peer in self.peers:
            if peer.name not in self.made:
                continue
            try:
                call = self.call(peer, "encode", text)
                theirs = np.asarray(call() if call else [])
            except Exception as error:
                self.notes.append(f"{self.name}, {where}: {peer.name} fails: {str(error)[:80]}")
                continue
            if np.array_equal(theirs, ids):
                found.append(peer)
            else:
                self.notes.append(f"{self.name}, {where}: {peer.name} gives other ids")
        return found


def bulk(v: Vocabulary, name: str, text: str, table: Table, decoding: Table) -> None:
    first, second = corpus.halves(text)
    size = len(second.encode()) / 1e6
    ids = v.ours(second)
    known = {peer.name for peer in v.equal(first, v.ours(first), name)}
    same = [peer for peer in v.equal(second, ids, name) if peer.name in known]
    cold, unseen, again = [], [], []
    theirs: dict[str, list[float]] = {peer.name: [] for peer in same}
    for _ in range(3):
        tokenizer = tokpack.load(v.pack)
        cold.append(timed(time.process_time, tokenizer.encode_array, first, False, v.parse_special))
        unseen.append(timed(time.process_time, tokenizer.encode_array, second, False, v.parse_special))
        again.append(timed(time.process_time, tokenizer.encode_array, second, False, v.parse_special))
        for peer in same:
            call = v.call(peer, "encode", second)
            if call and sum(theirs[peer.name]) < 1:
                theirs[peer.name].append(timed(time.process_time, call))
    mine = statistics.median(unseen)
    speeds = {
        "vocabulary": v.name,
        "text": name,
        "cold": f"{len(first.encode()) / 1e6 / statistics.median(cold):.1f}",
        "unseen": f"**{size / mine:.1f}**",
        "again": f"{size / statistics.median(again):.1f}",
    }
    for peer_name, times in theirs.items():
        value = statistics.median(times)
        speeds[peer_name] = against(value, mine, f"{size / value:.1f}")
    table.add(**speeds)
    decode(v, name, second, ids, same, decoding)


def decode(v: Vocabulary, name: str, text: str, ids: Any, same: list[Peer], table: Table) -> None:
    tokenizer, listed, size = tokpack.load(v.pack), ids.tolist(), len(text.encode()) / 1e6
    actions: dict[str, Callable[[], object]] = {
        "array": lambda: tokenizer.decode_bytes(ids, False),
        "list": lambda: tokenizer.decode_bytes(listed, False),
    }
    actions["array"]()
    for peer in same:
        call = v.call(peer, "decode", listed)
        if call:
            actions[peer.name] = call
    found = rounds(time.process_time, actions)
    mine = found.pop("array")
    row = {"vocabulary": v.name, "text": name, "array": f"**{size / mine:.0f}**", "list": f"{size / found['list']:.0f}"}
    mine = found.pop("list")
    table.add(**row, **{n: against(value, mine, f"{size / value:.0f}") for n, value in found.items()})


def prompts(v: Vocabulary, name: str, text: str, sizes: Sequence[int], table: Table) -> None:
    """Median over different prompts, each seen before, one after the other: nobody's caches hold the one at hand."""
    tokenizer = tokpack.load(v.pack)
    for size in sizes:
        count = max(5, min(101, 60_000 // size))
        starts = [text.find(" ", (len(text) - size) * k // count) for k in range(count)]
        slices = [text[start : start + size] for start in starts]
        functions: dict[str, Callable[[str], object]] = {"ours": lambda x: tokenizer.encode(x, False, v.parse_special)}
        for peer in v.peers:
            function = peer.function("encode", "t, x") if peer.name in v.made else None
            if function and [list(function(v.made[peer.name], x)) for x in slices] == [
                functions["ours"](x) for x in slices
            ]:
                functions[peer.name] = lambda x, f=function, made=v.made[peer.name]: f(made, x)  # type: ignore[misc]
        times: dict[str, list[float]] = {key: [] for key in functions}
        for _ in range(3):
            for key, call in functions.items():  # one program at a time, or each empties the processor's caches
                for prompt in slices:
                    times[key].append(timed(time.perf_counter, call, prompt))
        middle = {key: statistics.median(values) for key, values in times.items()}
        mine = middle.pop("ours")
        row = {"vocabulary": v.name, "text": name, "characters": str(size), "ours": f"**{mine * 1e6:.1f}**"}
        table.add(**row, **{n: against(value, mine, f"{value * 1e6:.0f}") for n, value in middle.items()})


def loading(v: Vocabulary, table: Table) -> None:
    mine = statistics.median(timed(time.perf_counter, tokpack.load, v.pack) for _ in range(101))
    row = {
        "vocabulary": v.name,
        "pieces": f"{tokpack.load(v.pack).vocab_size:,}",
        "pack / body MB / mtok to body": v.sizes,
    }
    row["ours, ms"] = f"**{mine * 1e3:.2f}**"
    found = {p.name: min(v.loads[p.name]) for p in v.peers if p.starts and p.name in v.loads}
    table.add(**row, **{n: against(value, mine, f"{value * 1e3:.0f}") for n, value in found.items()})


def starting(v: Vocabulary, fresh: Fresh, table: Table) -> None:
    """New processes; memory is what is resident, in brackets what of it is private (the rest are pages of files)."""
    script = f"import tokpack\ntokpack.load({str(v.pack)!r}).encode({PROMPT!r})"
    mine = fresh.over_bare(script)
    row = {"vocabulary": v.name, "ours, ms": f"**{mine.ms:.1f}**", "ours, MB": f"{mine.mb:.1f} ({mine.private:.1f})"}
    for peer in v.peers:
        if peer.starts and peer.name in v.made:
            found = fresh.over_bare(peer.script(PROMPT), runs=3)
            row[peer.name] = against(found.ms, mine.ms, f"{found.ms:.0f} ms, {found.mb:.0f} MB")
    table.add(**row)


def streaming(v: Vocabulary, text: str, table: Table) -> None:
    tokenizer = tokpack.load(v.pack)
    ids = tokenizer.encode(text[:20_000], False, v.parse_special)

    def ours() -> None:
        stream = tokenizer.stream(skip_special_tokens=False)
        for token in ids:
            stream.push(token)

    actions: dict[str, Callable[[], object]] = {"ours": ours}
    for peer in v.peers:
        call = v.call(peer, "stream", ids) if peer.name in v.made else None
        if call:
            actions[peer.name] = call
    found = {name: value / len(ids) * 1e6 for name, value in rounds(time.perf_counter, actions).items()}
    mine = found.pop("ours")
    table.add(vocabulary=v.name, ours=f"**{mine:.2f}**", **{n: against(t, mine, f"{t:.2f}") for n, t in found.items()})


def batches(v: Vocabulary, name: str, text: str, table: Table) -> None:
    """Texts of 1,000 characters; lists from all, and arrays from us."""
    tokenizer = tokpack.load(v.pack)
    items = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    size = sum(len(item.encode()) for item in items) / 1e6
    actions: dict[str, Callable[[], object]] = {
        "one process": lambda: tokenizer.encode_batch(items, False, v.parse_special),
        "two processes": lambda: tokenizer.encode_batch(items, False, v.parse_special, workers=2),
        "arrays": lambda: tokenizer.encode_batch_array(items, False, v.parse_special),
        "arrays, two processes": lambda: tokenizer.encode_batch_array(items, False, v.parse_special, workers=2),
    }
    for peer in v.peers:
        call = v.call(peer, "batch", items) if peer.name in v.made else None
        if call:
            actions[f"{peer.name}, two threads"] = call
    found = rounds(time.perf_counter, actions)
    mine = found["two processes"]
    row = {key: f"{size / value:.1f}" for key, value in found.items() if "threads" not in key}
    row |= {key: against(value, mine, f"{size / value:.1f}") for key, value in found.items() if "threads" in key}
    table.add(vocabulary=v.name, text=name, **row)


def engine(v: Vocabulary, text: str, table: Table) -> None:
    """MNN's engine on our .mtok, in a process of its own: it may crash, or never end."""
    if not any(peer.name == "MNN" for peer in v.peers):
        return
    short = corpus.cut(text, SHORT)
    try:
        load, seconds, ids = mnn_times(v.mtok, short)
    except (subprocess.SubprocessError, ValueError) as error:
        v.notes.append(f"{v.name}: MNN fails ({type(error).__name__})")
        return
    tokenizer = tokpack.load(v.pack)
    ours = tokenizer.encode(short, False, True)
    mine = statistics.median(
        timed(time.perf_counter, tokpack.load(v.pack).encode, short, False, True) for _ in range(3)
    )
    size = len(short.encode()) / 1e6
    table.add(
        vocabulary=v.name,
        ours=f"{size / mine:.1f}",
        MNN=against(seconds, mine, f"{size / seconds:.2f}"),
        load=f"{load * 1e3:.0f} ms",
        ids="the same" if ids[-len(ours) :] == ours else "others",
    )


def run(arguments: argparse.Namespace, folder: Path) -> None:
    found = corpus.found_texts(arguments.text, int(arguments.mb * 1e6))
    tables = {
        "load": Table("Loading, ms", ["vocabulary", "pieces"]),
        "start": Table("A new process to the ids of 102 characters, over a bare interpreter", ["vocabulary"]),
        "bulk": Table("Encoding, MB/s of CPU time", ["vocabulary", "text", "cold", "unseen", "again", "tokenizers"]),
        "prompt": Table("Prompts, µs (median)", ["vocabulary", "text", "characters", "ours", "tokenizers"]),
        "decode": Table("Decoding, MB/s of CPU time; ratios to our list", ["vocabulary", "text", "array", "list"]),
        "stream": Table("Streaming, µs per id", ["vocabulary", "ours"]),
        "batch": Table("Batches of texts of 1,000 characters, MB/s of wall time", ["vocabulary", "text"]),
        "mnn": Table(f"MNN's engine on our .mtok, {SHORT:,} bytes, MB/s", ["vocabulary", "ours", "MNN"]),
    }
    fresh, notes = Fresh(), []
    for name, source, options, others in vocabularies(arguments, folder):
        start = time.perf_counter()
        v = Vocabulary(name, source, options, others, folder)
        parts = arguments.only or PARTS
        if "load" in parts:
            loading(v, tables["load"])
        if "start" in parts:
            starting(v, fresh, tables["start"])
        for number, (text_name, text) in enumerate(found.items()):
            if "bulk" in parts:
                bulk(v, text_name, text, tables["bulk"], tables["decode"])
            if "prompt" in parts:
                prompts(v, text_name, text, SIZES if number == 0 else (100, 1000), tables["prompt"])
        text_name, text = next(iter(found.items()))
        if "stream" in parts:
            streaming(v, text, tables["stream"])
        if "batch" in parts:
            batches(v, text_name, text, tables["batch"])
        if "mnn" in parts:
            engine(v, text, tables["mnn"])
        notes += v.notes
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    for table in tables.values():
        if table.rows:
            table.show()
    print("\nNot timed:\n" + "".join(f"- {note}\n" for note in dict.fromkeys(notes)) if notes else "")


def vocabularies(arguments: argparse.Namespace, folder: Path) -> Any:
    """(name, source, options, files of peers) of each vocabulary that is asked for and there."""
    if arguments.tokenizers:
        for entry in arguments.tokenizers:
            name, _, files = entry.partition("=")
            source, *more = files.split(",")
            options = dict(other.split("=", 1) for other in more)
            pattern = {"pattern": options.pop("pattern")} if "pattern" in options else {}
            yield name, Path(source), pattern, {key: Path(value) for key, value in options.items()}
        return
    for name in corpus.QUICK if arguments.quick else corpus.VOCABULARIES:
        relative, options, others = corpus.VOCABULARIES[name]
        source = corpus.unpacked(relative, folder)
        paths = {key: corpus.unpacked(value, folder) for key, value in others.items()}
        if source is None:
            print(f"{name}: there is no {corpus.DATA / relative}", file=sys.stderr)
        else:
            yield name, source, options, {key: path for key, path in paths.items() if path is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fetch", action="store_true", help="make the texts and stop")
    parser.add_argument("--text", action="append", default=[], metavar="NAME=FILE", help="instead of the fetched texts")
    parser.add_argument("--mb", type=float, help="of each text (2; with --quick 1); 0: all of it")
    parser.add_argument("--quick", action="store_true", help="four vocabularies, 1 MB")
    parser.add_argument("--only", action="append", choices=PARTS, help="one of the tables; may be given again")
    parser.add_argument("--large", type=int, metavar="MB", help="only a text of this size: seconds and memory")
    parser.add_argument("tokenizers", nargs="*")
    arguments = parser.parse_args()
    if arguments.fetch:
        corpus.fetch(corpus.CACHE)
        return
    if arguments.mb is None:
        arguments.mb = 1.0 if arguments.quick else 2.0
    if arguments.large:
        arguments.mb = 0
    arguments.mb = arguments.mb or 1e6
    with tempfile.TemporaryDirectory() as folder:
        print(header(f"{arguments.mb:g} MB of each text" if arguments.mb < 1e6 else "whole texts"))
        if arguments.large:
            large(
                arguments,
                list(vocabularies(arguments, Path(folder))),
                corpus.found_texts(arguments.text, 1 << 40),
                Path(folder),
            )
        else:
            run(arguments, Path(folder))


if __name__ == "__main__":
    main()
