"""An explanation as a tree for the terminal."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from tokpack.analysis.explanation.trace import Action, Choice, Explanation, Match, Merge, Part, Post, Step, Token, Word
from tokpack.analysis.show import readable, shorten

__all__ = ["as_tree"]

_TEXTS = 40  # texts of a step, words of a part, actions of a word: as many as are shown
_LENGTH = 200  # characters of a text
_ID, _TEXT, _NAME, _QUIET = "cyan", "green", "bold", "dim"
_PIECES = ("green", "magenta", "yellow", "blue")


def as_tree(found: Explanation, *, verbose: bool = False) -> Tree:
    """The stages from top to bottom; long lists and texts are cut unless ``verbose``."""
    return _Drawing(verbose).explanation(found)


class _Drawing:
    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._drawn: set[tuple[bytes, str]] = set()

    def explanation(self, found: Explanation) -> Tree:
        title = Text()
        title.append(readable(found.file or "in memory"), _NAME)
        title.append(f": as {found.reference} ({readable(found.rules)})")
        tree = Tree(title, guide_style=_QUIET)
        flags = f"add special {_yes(found.add_special)}, parse special {_yes(found.parse_special)}"
        tree.add(Text.assemble(("text ", _NAME), self._quoted(found.text), (f"  {flags}", _QUIET)))
        for part in found.parts:
            self._part(tree, part)
        tree.add(self._post(found.post))
        for note in found.notes:
            tree.add(Text(readable(note), _QUIET))
        result = tree.add(Text("result", _NAME))
        result.add(Text.assemble("ids ", (" ".join(map(str, found.ids)) or "none", _ID)))
        if found.tokens:
            result.add(self._pieces(found))
        return tree

    def _part(self, tree: Tree, part: Part) -> None:
        if part.token is not None:
            label = Text.assemble(("token ", _NAME), self._quoted(part.text), " is ")
            tree.add(label.append(self._token(part.token)))
            return
        if part.kind == "dropped":
            label = Text.assemble(("dropped ", _NAME), self._quoted(part.text))
            tree.add(label.append("  white space beside a special token", _QUIET))
            return
        branch = tree.add(Text.assemble(("part ", _NAME), self._quoted(part.text)))
        for step in part.steps:
            branch.add(self._step(step))
        for inner in part.parts:
            self._part(branch, inner)
        shown = self._some(len(part.words))
        for word in part.words[:shown]:
            self._word(branch, word)
        self._more(branch, len(part.words) - shown, "words")

    def _step(self, step: Step) -> Text:
        label = Text.assemble((f"{step.stage} ", _NAME), readable(step.name))
        if step.detail:
            detail = readable(step.detail, backslash=False)
            label.append(f" ({detail if self._verbose else shorten(detail, 60)})", _QUIET)
        if not step.changed:
            return label.append(": no change", _QUIET)
        label.append(": ")
        shown = self._some(len(step.texts))
        for index, text in enumerate(step.texts[:shown]):
            label.append(" " if index else "").append(self._quoted(text))
        if not step.texts:
            label.append("nothing left", _QUIET)
        if shown < len(step.texts):
            label.append(f" and {len(step.texts) - shown:,} more", _QUIET)
        return label

    def _word(self, tree: Tree, word: Word) -> None:
        label = Text.assemble(("word ", _NAME), self._quoted(word.text), " → ")
        shown = self._some(len(word.tokens))
        for index, token in enumerate(word.tokens[:shown]):
            label.append(", " if index else "").append(self._token(token))
        if not word.tokens:
            label.append("no ids", _QUIET)
        if shown < len(word.tokens):
            label.append(f" and {len(word.tokens) - shown:,} more", _QUIET)
        branch = tree.add(label)
        key = (word.text, word.method)
        if word.actions and key in self._drawn:
            branch.add(Text("as above", _QUIET))
            return
        self._drawn.add(key)
        if len(word.symbols) > 1:
            branch.add(self._symbols(word))
        shown = self._some(len(word.actions))
        for action in word.actions[:shown]:
            branch.add(self._action(action, word.method))
        self._more(branch, len(word.actions) - shown, "steps")
        if word.note:
            branch.add(Text(readable(word.note), _QUIET))

    def _symbols(self, word: Word) -> Text:
        label = Text("begins as")
        shown = self._some(len(word.symbols))
        for symbol in word.symbols[:shown]:
            label.append(" ").append(self._bare(symbol))
        if shown < len(word.symbols):
            label.append(f" and {len(word.symbols) - shown:,} more", _QUIET)
        return label

    def _action(self, action: Action, method: str) -> Text:
        if isinstance(action, Merge):
            rank = f"rank {action.rank}" if action.score is None else f"score {action.score:.6g}"
            pair = (self._bare(action.left), " + ", self._bare(action.right), " → ", self._bare(action.result))
            return Text.assemble("merge ", *pair, (f"  {rank}", _QUIET))
        if isinstance(action, Match):
            label = Text.assemble("match ", self._quoted(action.text))
            if action.id < 0:
                return label.append("  no piece: unknown", _QUIET)
            label.append(f"  {action.id}", _ID)
            if action.shorter:
                label.append("  longer than", _QUIET)
            for text in action.shorter:
                label.append(" ").append(self._quoted(text))
            return label
        return self._choice(action, "cost" if method == "min-cost" else "score")

    def _choice(self, choice: Choice, what: str) -> Text:
        label = Text.assemble("take ", self._quoted(choice.text))
        label.append(f"  {choice.id}", _ID) if choice.id >= 0 else label.append("  unknown")
        number = "{:,.0f}" if what == "cost" else "{:.6g}"
        label.append(f"  {what} {number.format(choice.value)}, sum {number.format(choice.total)}", _QUIET)
        if choice.rival is not None:
            label.append("  beats …", _QUIET).append(self._quoted(choice.rival[1]))
            label.append(f" sum {choice.rival[2]:.6g}", _QUIET)
        return label

    def _post(self, post: Post) -> Text:
        label = Text.assemble(("added ", _NAME), (f"{readable(post.rule)}: ", _QUIET))
        added = [("before", token) for token in post.before] + [("behind", token) for token in post.after]
        for index, (name, token) in enumerate(added):
            label.append(f"{', ' if index else ''}{name} ").append(self._token(token))
        return label if added else label.append("nothing")

    def _pieces(self, found: Explanation) -> Text:
        label = Text("pieces")
        shown = self._some(len(found.tokens))
        for index, piece in enumerate(found.tokens[:shown]):
            label.append(" ").append(self._quoted(piece.bytes, _PIECES[index % len(_PIECES)]))
        if shown < len(found.tokens):
            label.append(f" and {len(found.tokens) - shown:,} more", _QUIET)
        return label

    def _token(self, token: Token) -> Text:
        return Text.assemble((str(token.id), _ID), " ", self._bare(token.text))

    def _quoted(self, raw: bytes, style: str = _TEXT) -> Text:
        return Text(f'"{self._cut(raw)}"', style)

    def _bare(self, raw: bytes) -> Text:
        text = self._cut(raw)
        return Text(f'"{text}"' if not text or " " in text else text, _TEXT)

    def _cut(self, raw: bytes) -> str:
        text = readable(raw)
        return text if self._verbose else shorten(text, _LENGTH)

    def _some(self, count: int) -> int:
        return count if self._verbose or count <= _TEXTS else _TEXTS

    def _more(self, tree: Tree, count: int, what: str) -> None:
        if count > 0:
            tree.add(Text(f"and {count:,} more {what}; --verbose shows all", _QUIET))


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
