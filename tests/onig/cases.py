"""What the golden file holds: patterns by construct, and the texts that they are run on."""

from __future__ import annotations

TEXTS = [
    "",
    "a",
    "aaaa aab abab\nabc\n",
    "\n",
    "a\r\n\r\nb\n\n c \u2028d\x85e\x0bf\x0cg\x00h",
    "Hello, World! it's we'LL I'M 1234567 x=3.14 foo_bar-baz  \t end",
    "straße STRASSE Straẞe ßs sß sss ſs ſſ ﬀ ﬃ ffi fﬁ ﬆ st ſt",
    "K k K Σσς ŉ ʼn ʼN ǰ ǰ J\u030c İ i\u0307 I\u0307 ı I i ΐ ΐ \u1fd3 ᾳ ᾼ αι ΑΙ ᾀ ᾈ ἀι Ǆ ǅ ǆ",
    "中文，日本語のテキスト。한국어 ภาษาไทย العربية ١٢٣ हिन्दी Ⅷ½² 〇 e\u0301\u0301 😀👩\u200d🚀 \ue000\U0010ffff",
    "[]{}()^$-&|~#\\/*+?.:;\"'`@!%<>=_ é ñ \xa0\u3000x",
    "foofoobar foobarbar xxaaaxx abcabcabc 12,345,678 a1b22c333",
]

CONSTRUCTS: dict[str, list[str]] = {
    "characters": [
        "a", "ab", r"\x61", r"\x", r"\xg", r"\u4e2d", r"\x{4e2d}", r"\x{61}b+", r"\0", r"\012", r"\t|\n|\r|\f|\v",
        r"\a|\e", r"\o{141}", r"\/", r"\'", r"\_", r"\-", r"\<", r"\Q", r"\pL", r"\k", r"\u", "]", "}", "{", "a{,}",
        "a{x", "a{1", "é", r"\😀",
    ],
    "sets": [
        ".", r"\w+", r"\W+", r"\d+", r"\D+", r"\s+", r"\S+", r"\h+", r"\H+", r"\N+", r"\O+", r"\R+", r"\R\n",
        "(?m:.+)", "(?m:a.b)", ".+",
    ],
    "properties": [
        r"\p{L}+", r"\p{^L}+", r"\P{L}+", r"\P{^L}+", r"\p{Lu}", r"\p{lu}", r"\p{Uppercase_Letter}",
        r"\p{upper case-letter}", r"\p{N}+", r"\p{M}", r"\p{P}+", r"\p{Punct}+", r"\p{S}+", r"\p{Z}+", r"\p{Zs}",
        r"\p{C}+", r"\p{Cn}", r"\p{Han}+", r"\p{Hira}+", r"\p{Katakana}+", r"\p{Hangul}+", r"\p{Latin}+",
        r"\p{Greek}+", r"\p{Thai}+", r"\p{Arabic}+", r"\p{Devanagari}+", r"\p{Emoji}+", r"\p{Extended_Pictographic}",
        r"\p{Any}+", r"\p{Alnum}+", r"\p{Ideographic}+", r"\p{In_CJK_Unified_Ideographs}+", r"\p{XDigit}+",
    ],
    "brackets": [
        "[abc]+", "[^abc]+", "[a-c]+", "[]a]+", "[^]a]+", "[-a]+", "[a-]+", r"[a\-c]+", "[a-b-c]+", "[!--]+", "[--a]",
        r"[\w-]+", "[a&&b]", "[a-c&&b-d]+", "[a-z&&[^aeiou]]+", "[^a-z&&[^aeiou]]+", "[a-c&&]", "[&&a]", "[a&b]+",
        "[[a-c][x-z]]+", "[[a]-b]+", "[^[^a]]+", "[a[^b]]+", "[[:alpha:]]+", "[[:^alpha:]]+", "[^[:alpha:]]+",
        "[[:punct:]]+", "[[:space:][:digit:]]+", "[:alpha:]+", r"[\s\S]+", r"[\d\p{L}]+", r"[\p{^L}]+", r"[\P{L}\d]+",
        r"[\b]", r"[\n\r]+", r"[\x61-\x63]+", r"[\u4e00-\u9fff]+", r"[\x{3040}-\x{30ff}]+", "[一-龥]+", r"[\A\z]",
        "[.]+", r"[^\s\p{L}\p{N}]+", r"[(\s|[.,!?])]+", r"[\h&&\d]+", r"[\0-\x20]+", r"[\pL]+",
    ],
    "quantifiers": [
        "a?", "a*", "a+", "a??", "a*?", "a+?b", "a?+a", "a*+a", "a++a", "a++b", "a{2}", "a{2,}", "a{2,3}", "a{,2}",
        "a{2}?a", "a{1,2}?", "a{1,2}+", r"\d{1,3}+", r"\d{1,3}", "a{3,1}a", "a{2}+", "a{1,2}?+", "(?:ab)+", "abc+",
        "(?:abc){1}+", "(abc){1}+", "a{0}b", "(?:a+)?", "(?:a*)+", "(?:a*)??", "(?:a+?)*", "(?:a?)+?", "(?:a??)+",
        "a**", "a+*", "a?+?", "(?:a*){2,3}", "(?:ab|a)*b", "(?:a|ab)(?:c|bcd)?", "(a|b)*abb", "(?:a|)+b", "(?:|a)+b",
        "(?:a?b?)*c", "(?:a*?b*?)+c", "(^|a)*b", "(?:(?=a)a)+",
    ],
    "groups": [
        "(a)(b)", "(?:a|b)c", "(?<name>a)b", "(?'name'a)b", "(?<a b>c)", "(?<x>a)(b)*", "a(?#comment)b", "a(?#c)+",
        "(?#)", "(?x) a b # c\n c", "(?x:a b)c", "(?x: a + )", "(?>a+)a", "(?>a|ab)c", "(?>ab|a)b", "(?>a*?)b",
        "a(?i)b|c", "(?i)a(?-i)b", "(?i:a)b", "(?im:a.b)", "(?mi-x:a.b)", "(?-i:a)", "()", "a||b", "|a", "a|",
        "(?:)+", "(?:a|b|[cd])+e?", "(?<a>a+)+(b)",
    ],
    "anchors": [
        "^", "$", "^a", "a$", "^.*$", r"\A", r"\z", r"\Z", r"\Aa", r"\s\z", r"\s\Z", r"\b", r"\B", r"\b\w+\b", r"\Ba",
        r"a\B", "^$", "(?m:^.+$)", r"\w+$", r"^\s+|(?<=\d),(?=\d)",
    ],
    "lookaround": [
        "a(?=b)", "a(?!b)", "(?=a)", "(?!a).", "(?=(?:a+))a", r"\s+(?!\S)|\s+", "(?<=a)b", "(?<!a)b", "(?<=a|bc)b",
        "(?<!a|ab)b", "(?<=a(?:b|cd))a", "(?<=a+)b", "(?<=a*)b", r"(?<=\s|^)\w", "(?<=foo)bar", "(?<!foo)bar",
        "(?<=a{1,3}b)a", "(?<!a{1,2}b)a", "(?<=(?<=a)b)c", r"(?<=\b)a", r"(?<=\w\b) ", "(?<=^a)a", "(?<=(a))b",
        "(?i)(?<=ss)x|(?<=ß) ", r"(?<=[\p{L}])\d", "(?<=)a", "(?<!)a", "(?<=a|)b", "(?=)a", "(?!)a", r"(?<=\n)",
        r"(?<!\n)$",
    ],
    "folding": [
        "(?i:s)", "(?i:ss)", "(?i:sss)", "(?i:ssss)", r"(?i)s\u0073", "(?i)(?:s)s", "(?i)s(?:)s", "(?i)ss+",
        "(?i)(s)s", "(?i:ß)", "(?i:ẞ)", "(?i:[ß])", "(?i:[^ß])+", "(?i:k)", "(?i:K)", "(?i:[A-Z])+", "(?i:[a-z]+)",
        "(?i:[^a-z]+)", "(?i:σ)+", "(?i:ffi)", "(?i:ff)", "(?i:fi)", "(?i:ﬃ)", "(?i:st)", "(?i:ﬆ)",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)", "(?i:[sdmt]|ll|ve|re)", r"(?i:i\u0307)", "(?i:İ)", "(?i:I)", "(?i:ı)",
        "(?i:ʼn)", "(?i:ŉ)", "(?i:ΐ)", "(?i:ᾳ)", "(?i:αι)", "(?i:ἀι)", "(?i:ǆ)", r"(?i:\p{Lu})+", r"(?i:[\p{Lu}])+",
        r"(?i:[\p{L}]+)", r"(?i:[\p{Ll}]{2})", "(?i:[ß-ö])", "(?i)[ﬀ-ﬆ]+", r"(?i:[^\P{Ll}])+", "(?i)straße",
        "(?i)(?:[ß]s)s", "(?i)x(?:[ß]s)s", "(?i)s{2}", "(?i)(?:ss){2}", r"(?i:\x53s)",
    ],
    "wild": [
        r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}"
        r"\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"(?=(\d{3})+(?!\d))",
        r"(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})",
        r"\d{1,3}(?=(?:\d{3})*\b)",
        r"(?:^|(?<=\s))(?=\S)",
        r"(?<=[a-z])(?=[A-Z])",
        r"\s?\p{L}+|\s?\p{N}+|\s?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"[0-9][0-9][0-9]",
        r"\p{Nd}|\p{L}+|\P{L}",
        r"(\p{L}|\p{M})+",
        r"(?:(?:\r\n)|\n)+",
        r"[^\n]+|[\n]+",
        r"▁+|[^▁]+",
        r"\p{Hangul}{1,2}|\p{Hiragana}+|\p{Katakana}++|\p{Thai}*+\p{M}",
    ],
    "refused": [
        "(a", "a)", "[a", "[]", "[^]", "\\", "[\\\\", "*a", "a|*", "(?:*)", "(?P<n>a)", "(?s)a", "(?s:a)",
        r"\p{IsHan}", r"\p{Script=Han}", r"\p{sc=Han}", r"\p{Foo}", r"\p{L", r"[\w-a]", r"[a-\d]", "[c-a]",
        "[[:foo:]]", "a{100001}", "(?=a)*", "^*", "(?:^|a)*", "(?<=a(?=b))", "(?<!(a))", r"(?<=\z)", "(?<=(?<!a))",
        "(?<>a)", "(?<1>a)", "(?<a)b>c)", r"\b{2}", "(?z)", "(?", "(?#", r"\u12", "(?i", "(?@a)", r"\p{Ｌ}",
    ],
}  # fmt: skip

# taken by the library, refused by us: the reason is part of the message
UNSUPPORTED = [
    r"(a)\1", r"(?<n>a)\k<n>", r"(?<n>a)\g<n>", r"\Ga", r"a\Kb", r"\X", r"\y", "(?~abc)", "(?(a)b|c)", r"(?W:\w)",
    r"(?y{g})\X", r"\xE4\xB8\x80", r"\x{61 62}", "(?<=a.*)b", "(?<=a++)b", r"\cA", r"\C-a", r"\M-a", r"[\ca]",
    "[a-[bc]]", "(*FAIL)", r"[a-\x{7fffffff}]+", r"\x{110000}", r"[\1]", "(?<=x(?:a|b|cd){9})",
]  # fmt: skip
