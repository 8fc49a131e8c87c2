"""Hypothesis strategies: texts made of what has gone wrong in tokenizers before, and bytes that are not UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tokpack.unicode.llamacpp import whitespace

__all__ = ["atoms", "raw_bytes", "texts"]


def _words(text: str) -> list[str]:
    return text.split()


def _points(text: str) -> list[str]:
    return [chr(int(number, 16)) for number in text.split()]


CONTRACTIONS = _words("""
    's 't 're 've 'm 'll 'd 'S 'T 'RE 'Ve 'M 'lL 'D 'ſ 'x 'l 'r 'v ' '' ’s ‘t ''s I'm we'LL don't 's' (it's) 'K 'İ
""")
DIGITS = _words("0 7 12 123 1234 12345 123456 1234567 3.14 1,000,000 0x1F ² ½ Ⅷ ٣٤٥ ०१२३ 𝟘𝟙𝟚 ①② ٣1२")
CASED = _words("""
    a Z hello Hello HELLO helloWorld HTTPServer ÉCOLE École éa Ωmega ß ẞ ǅ ʰ ª Привет ПРИВЕТ ἀρχή İ ı K
""")
CJK = _words("""
    中 中文 汉字かな 日本語 ひらがな カタカナ ｶﾅ 한국어 ㄱㄴ ㄅㄆㄇ ー 々 〆 。 、 「」 ！ ？ ～ ＡＢ １２ 〇
    ภาษาไทย ລາວ ខ្មែរ မြန်မာ
""")
MARKS = ["\u0301", "e\u0301", "E\u0301x", "a\u0300\u0323", "\u094d", "न\u093f", "\u0e33", "\u20dd", "\u3099", "\ufe0f"]
EMOJI = ["👍", "👍🏽", "👩\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇩🇪", "\u200d", "1\ufe0f\u20e3", "🫨"]
SIGNS = _words(r"""
    ! " # $ % & ( ) * + , - . / : ; < = > ? @ [ \ ] ^ _ ` { | } ~ ... ?! -- :// </ />
    € « » “ ” — … ¿ § © ° · ، ۔ । ‰ ∑ →
    IMGIMGABCDZ IMGIMGZ <sentinel:12> <sentinel:> <0x41> ▁ Ġ Ċ
""")
SPACES = [chr(c) for c in whitespace().tolist()]
SPACES += [" " * n for n in (1, 2, 3, 4, 9, 31)] + ["\n\n", "\n\n\n", "\r\n", "\r\n\r\n", " \n", "\n ", "\t\t", " \t"]
NOT_SPACES = _points("1C 1D 1E 1F 200B 180E FEFF 2060 AD")
CONTROLS = ["\0", "\0\0", "\x01", "\x07", "\x1b[0m", "\x7f", "\x80", "\x9f", "\u202e", "\u2066"]
SURROGATES = ["\ud800", "\udbff", "\udc00", "\udfff", "\ud83d\ude00"]
# unassigned in a Han block, at the ends of the blocks, beside them
HAN_EDGES = _points("""
    FA6E FA6F FADA FAFF 2B73A 2EBE1 2EBEF 2FA1E 2FA1F 2A6DE 2A6DF 9FFF 3400 4DBF F900 2A700 2F800
    4DC0 33FF A000 F8FF FB00 2A6E0 2A6FF 2EBF0 2EE5D 2F7FF 30000 9FA5 9FA6
""")
UNASSIGNED = _points("378 897 1C89 E000 FFFD FFFE FFFF 1FFFE 10FFFF F0000 E0001 EFF 2FDF")
# ends of the ranges that the patterns name
EDGES = _points("""
    7E A0 B5 C0 800 3000 3002 3040 309F 30A0 30FF 4E00 AC00 D7A3 D7A4 D7AF D7FF FF01 FF0F FF1A FF5E FF65 FF9F
    2018 201F 1E900 1E943 10FF E40 E7F E80 17FF 1780 AA60 A9FF 1100 11FF 2F00 FE30 FE4F 318E 312F
""")

# what one pattern keeps together and another does not
JOINTS = [
    "!\n",
    ".\n\n",
    ".\r\n",
    "/\n",
    "a\n\nb",
    "\n\r",
    " \n\n ",
    "x\u0301y",
    "`a`",
    "$1",
    "1234a",
    "a 1234 ",
    "a b",
    "#é",
]

JOINTS += ["中\ufa6e文", "!\ufa6e", "\ufada\ufadb", "a中b", "中's", " 中 中"]

GROUPS: tuple[Sequence[str], ...] = (
    CONTRACTIONS, DIGITS, CASED, CJK, MARKS, EMOJI, SIGNS, SPACES, NOT_SPACES, CONTROLS, SURROGATES,
    HAN_EDGES, UNASSIGNED, EDGES, JOINTS, [" ", "'", "1", "a", "\n", "."],
)  # fmt: skip

BROKEN = [bytes([b]) for b in (0x80, 0xBF, 0xC0, 0xC1, 0xC3, 0xE2, 0xE4, 0xED, 0xF0, 0xF4, 0xF5, 0xF8, 0xFE, 0xFF)]
BROKEN += [b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9f", b"\xe4\xb8", b"\xed\xa0\x80", b"\xed\xbf\xbf"]  # cut; surrogates
BROKEN += [b"\xc0\x80", b"\xc1\xa1", b"\xc0\xa7", b"\xe0\x80\xb1", b"\xf0\x80\x80\x8a", b"\xc0\x8a"]  # overlong
BROKEN += [b"\xc0\xa0", b"\xe0\x80\xa0", b"\xf0\x80\x80\xa0"]  # overlong spaces
BROKEN += [b"\xf4\x90\x80\x80", b"\xf7\xbf\xbf\xbf"]  # above U+10FFFF


def atoms(specials: Sequence[bytes] = ()) -> SearchStrategy[str]:
    """Short strings of one kind; of ``specials`` that are text also their beginnings and ends."""
    kinds = [st.sampled_from(group) for group in GROUPS] + [st.characters(codec=None)]
    names = sorted({name.decode() for name in specials if _is_text(name)})
    if names:
        parts = st.tuples(st.sampled_from(names), st.integers(1, 4)).flatmap(
            lambda pair: st.sampled_from([pair[0], pair[0][: pair[1]], pair[0][: -pair[1]], pair[0][pair[1] :]])
        )
        space = st.sampled_from(["", " ", "\t", "\n", "\v", "\f", "\r", " \v\n ", "\x1c", "\x85", "\u3000"])
        spaced = st.tuples(space, st.sampled_from(names), space).map("".join)
        kinds += [st.sampled_from(names), parts, spaced, st.sampled_from(names).map(str.upper)]
    return st.one_of(kinds)


def texts(specials: Sequence[bytes] = (), max_atoms: int = 12) -> SearchStrategy[str]:
    """Texts of a few atoms, some of them repeated."""
    repeated = st.tuples(atoms(specials), st.sampled_from([1, 1, 1, 2, 3, 7])).map(lambda pair: pair[0] * pair[1])
    return st.lists(repeated, max_size=max_atoms).map("".join)


def raw_bytes(specials: Sequence[bytes] = ()) -> SearchStrategy[bytes]:
    """Bytes that need not be UTF-8: whole and broken sequences, and texts cut anywhere."""
    text = atoms(specials).map(_utf8)
    cut = st.tuples(text, st.integers(0, 4)).map(lambda pair: pair[0][: len(pair[0]) - pair[1]])
    parts = [text, cut, st.sampled_from(BROKEN), st.binary(max_size=4)]
    if specials:
        parts.append(st.sampled_from(sorted(specials)))
    return st.lists(st.one_of(parts), max_size=10).map(b"".join)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_text(raw: bytes) -> bool:
    try:
        return bool(raw.decode())
    except UnicodeDecodeError:
        return False
