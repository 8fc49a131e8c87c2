"""Make ``scripts.npz``: the Unicode property Script of every code point, asked of the package ``regex``.

    python tokpack/analysis/make_scripts.py          needs the package regex

``names`` are the scripts in alphabetical order, ``runs`` uint32 ``[n, 2]``: first code point, index of its script.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["main"]

_SIZE = 0x110000
# regex knows names without underscores; these are those of PropertyValueAliases.txt that have some
_SPELLED = """
Anatolian_Hieroglyphs Bassa_Vah Beria_Erfe Canadian_Aboriginal Caucasian_Albanian Cypro_Minoan Dives_Akuru
Egyptian_Hieroglyphs Gunjala_Gondi Gurung_Khema Hanifi_Rohingya Imperial_Aramaic Inscriptional_Pahlavi
Inscriptional_Parthian Katakana_Or_Hiragana Kayah_Li Khitan_Small_Script Kirat_Rai Linear_A Linear_B Masaram_Gondi
Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Nag_Mundari New_Tai_Lue Nyiakeng_Puachue_Hmong
Ol_Chiki Ol_Onal Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian
Old_Turkic Old_Uyghur Pahawh_Hmong Pau_Cin_Hau Phags_Pa Proto_Cuneiform Psalter_Pahlavi SignWriting Sora_Sompeng
Syloti_Nagri Tai_Le Tai_Tham Tai_Viet Tai_Yo Tolong_Siki Tulu_Tigalari Warang_Citi Zanabazar_Square
""".split()  # noqa: SIM905
_SHORT = {"hani": "Han", "laoo": "Lao", "mroo": "Mro", "nkoo": "Nko", "vaii": "Vai", "yiii": "Yi"}


def main() -> None:
    """Write the table beside this script."""
    import regex
    from regex._regex_core import PROPERTIES, PROPERTY_NAMES

    number, values = PROPERTIES["SCRIPT"]
    full: dict[int, str] = {}
    for name, value in values.items():
        full[value] = max(full.get(value, ""), PROPERTY_NAMES[number][1].get(value, name), key=len)
    spelled = {name.replace("_", "").lower(): name for name in _SPELLED} | _SHORT
    names = sorted({spelled.get(name.lower(), name.title()) for name in full.values()})
    text = "".join(map(chr, range(_SIZE)))
    table = np.full(_SIZE, names.index("Unknown"), dtype=np.uint8)
    for index, name in enumerate(names):
        for match in regex.finditer(rf"\p{{Script={name}}}+", text):
            table[match.start() : match.end()] = index
    starts = np.flatnonzero(np.diff(table, prepend=table[:1] ^ 1))
    runs = np.stack([starts, table[starts]], axis=1).astype(np.uint32)
    np.savez_compressed(Path(__file__).with_name("scripts.npz"), names=np.array(names), runs=runs)


if __name__ == "__main__":
    main()
