"""Report elliptic and inverted English in docstrings, comments, names and Markdown.

All comments of C, JavaScript, CSS, Go, shell scripts and configuration files are checked like docstrings.

    python -m tests.english [PATH...]

A line with `# dialect: ok` and a reason is exempt. Exits 1 if there is a hit.
"""

# ruff: noqa: E501

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

WH = r"(?:what|who|whom|whose|where|which|why)"

# Code -> (what is wrong, pattern, where it applies). D: a docstring's first words; S: each sentence
# of docstrings and comments; E: each sentence of docstrings only.
RULES: dict[str, tuple[str, str, str]] = {
    "D01": (
        "noun wanted after the verb, not a clause",
        rf"^(?:Return|Yield|Say|Tell|Write|Draw|Read|Make|Do|Give|Look at|Remove|Wait until|Hear of|Hand on|Warn of|Take down|Show|Check|Call)s? (?:{WH}|how (?!many|much|long|often))\b",
        "D",
    ),
    "D02": (
        "docstring opens with a question word: open with the noun",
        r"^(?:What|Who|Whose|Where|Which|Why|How)\b[^?]*$",
        "D",
    ),
    "D03": (
        "docstring opens with a pronoun or preposition",
        r"^(?:It(?! was)|Its|They|Their|Those|Them|That|Ours|Such|Of|From|Into|Beside|Among|But for|In which|By which|Before|Until)\b(?! (?:file|module|class|function|is|will|should|exception|method)\b)",
        "D",
    ),
    "D04": (
        "refers to the docstring above: name the thing",
        r"^(?:(?:Do|Say|Return|Yield|Make|Tell) )?[Tt]he same\b",
        "D",
    ),
    "D05": ("odd imperative", r"^(?:Have|Take that|Hear|Lay|Carry|Say|Tell|Begin to tell|Take for)\b", "D"),
    "S01": (
        "verb left out: write the full condition",
        r"(?:\bNone|\"\"|\b0|\bFalse|\binfinite|\bempty|\bnothing|\belse)(?: (?:when|where|if|of|for|what|is|that|it|without)|:|,)[^.;:]{0,60}?\b(?<!there is )(?<!there are )(?<!does )(?:none|nothing|nobody|it is|it was|it does|it did|it has|they are|they were|they do|they don't|not|it can|it must|there is|there are|isn't|doesn't|don't|can't)(?=[.;]|$)",
        "S",
    ),
    "S02": (
        "'so many/much/often' without 'that': give the number's name",
        r"\bso (?:many|much|often|few)\b(?! (?:that|as|about|more|of the time)\b)(?<!not so many)(?<!not so much)",
        "S",
    ),
    "S03": (
        "'none' as a predicate",
        r"(?<!there )\b(?:is|are|was|were|of|has|have|had) none\b(?! of\b)|\bnone of it\b|\bof which any\b",
        "S",
    ),
    "S04": (
        "'tell' for report, state, distinguish",
        r"\b(?:is|are|was|were|be|been|not|that) (?:un)?told\b|\bcan(?:no|')t be told\b|\btells? of\b|\buntold\b",
        "S",
    ),
    "S05": (
        "'asked for/of' for request, configure",
        r"\b(?:is|are|was|were|what|it|they|nobody|anybody|who) (?:is |are |was )?ask(?:s|ed) (?:for|of|nobody|anybody|whether)\b",
        "S",
    ),
    "S06": ("'beside' for besides, next to, in addition to", r"\bbeside\b", "S"),
    "S07": (
        "dated connective",
        r"\b(?:all the same|thereby|therein|anew|begun again|whatever that is|at hand|what of (?:it|them|that|the))\b",
        "S",
    ),
    "S08": (
        "double genitive: use the possessive or an adjective",
        r"\bof (?:ours|theirs|the user's|the users'|SQLite's|the library's)(?= that |[.,;:)]|$)|\b(?:is|are) ours\b",
        "S",
    ),
    "S09": (
        "a person for a process, connection or caller",
        r"\b(?:somebody|nobody|strangers?|whoever|who (?:calls|waits|writes|works|holds|reads|asks|needs|makes|locks|runs|starts|stays|knows))\b(?! (?:else|should|cares|will|really|actually)\b)",
        "E",
    ),
    "S10": (
        "'stands' for is, appears, is stored",
        r"\bst(?:ands?|ood) (?:in(?! for)|on|at|below|before|beside|first|there|as|together|side|behind|between|above|under|alone|still|after|open)\b",
        "S",
    ),
    "S11": (
        "pro-form 'one': repeat the noun",
        r"\b(?:another|the next|a later|the former) one\b(?! of|, but)|(?<!than the )\b[Oo]ne (?:that|who) (?:is|was|has|had|can|did|does)\b|\bof ones? (?:that|with|without)\b|^Of one\b",
        "E",
    ),
    "S12": (
        "trailing adverb that inverts the sentence",
        r"\b(?<!and )(?<!until )(?<!since )(?<!now and )(?:then|meanwhile|alike|besides|thereby|anyhow)[.;]?$",
        "E",
    ),
    "S13": (
        "clause as noun: 'what is/was ...'",
        r"\b(?:of|by|with|into|beside|from|for|to|as|and|than|in|after|before|on|also|only|all|but|is|:|,) what (?:is|was|are|were|has|have|it|they|its|their|no|a|an|the|others?|processes?|workers?|each|only|cases?)\b(?! going\b)(?!'s)",
        "E",
    ),
    "S14": (
        "three or more question words in a sentence",
        rf"^(?!(?:\S+ ){{45}})(?:.*\b(?:{WH}|how|whatever|whoever)\b){{3}}",
        "E",
    ),
    "S15": (
        "'alike' or 'apart' as an adjective",
        r"\balike\b|(?<!far )(?<!tell )(?<!them )(?<!take )(?<!taken )(?<!told )(?<!drift )\bapart\b(?! from)",
        "S",
    ),
}
NAMES = {
    "N01": (
        "name begins with a question word",
        re.compile(r"^_*(?:what|who|whose|whom|which|why|how|where|that|those|some)(?:_|$)"),
    ),
    "N02": (
        "name begins with a preposition",
        re.compile(r"^_*(?:of|at|beside|apart|than|among|upon)_(?!least$|most$|exit$)"),
    ),
    "N03": (
        "bare participle: say what is returned",
        re.compile(
            r"^_?(?:told|found|asked|heard|given|known|wanted|promised|settled|written|made|held|taken|limited|compared|said|seen|"
            r"shown|begun|kept|chosen|named|meant|drawn|listed|moved|judged|tried|needed|ordered|prepared|filled|spelled|tracked|"
            r"planned|fitted|parsed|others?|each|every|worth|own|alike|apart|whole|lost|cut|joined|counted|tested)$"
        ),
    ),
    "N04": ("loop variable 'one': use the noun", re.compile(r"^one$")),
}
TEST_NAMES = {
    "T01": (
        "test name has no subject: name the thing under test",
        re.compile(
            r"^test_(?:what|who|whose|which|where|how|that|those|one|ones|it|of|in|at|by|with|without|nothing|nobody|some|others?)_"
        ),
    ),
    "T02": (
        "dialect in a test name",
        re.compile(
            r"_(?:is|are|be)_(?:told|said|asked|none)(?:_|$)|_(?:beside|somebody|nobody|alike)(?:_|$)|_that_is_(?:none|not|one)(?:_|$)"
        ),
    ),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
STRING_OR_COMMENT = re.compile(
    r'''(?s:"""(?:\\.|[^\\])*?"""|\'{3}(?:\\.|[^\\])*?\'{3}|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|#[^\n]*'''
)
"""A string literal or a comment. Faster than `tokenize`, and as exact up to Python 3.11, which has no nested quotes."""
_STRING = r"""(?s:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
SLASH_COMMENT = re.compile(rf"{_STRING}|(?s:`(?:\\.|[^`\\])*`|/\*.*?\*/)|//[^\n]*")
HASH_COMMENT = re.compile(rf"{_STRING}|(?<!\S)#[^\n]*")
LANGUAGES = {
    **dict.fromkeys((".c", ".h", ".js", ".mjs", ".css", ".go"), SLASH_COMMENT),
    **dict.fromkeys((".sh", ".toml", ".yml", ".cfg"), HASH_COMMENT),
}
"""Pattern of strings and comments, by suffix of the file."""


class Hit(NamedTuple):
    """A finding: where it is, which rule it breaks, and the sentence."""

    path: Path
    line: int
    code: str
    text: str


def sentences(text: str) -> list[str]:
    """Split prose into sentences; code spans are kept whole."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'(])", " ".join(text.split()))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the tree and its statements. Expressions are most of the nodes, and are skipped."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, block, None) or ()


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield the line and text of module, class, function and attribute docstrings."""
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in pairwise(node.body):
                value = after.value if isinstance(after, ast.Expr) else None
                prose = value.value if isinstance(value, ast.Constant) else None
                if isinstance(prose, str) and isinstance(before, ast.Assign | ast.AnnAssign):
                    yield after.lineno, prose


def comments(source: str, pattern: re.Pattern[str] = STRING_OR_COMMENT) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each comment block."""
    block: list[tuple[int, str]] = []
    for line, alone, comment in single_comments(source, pattern):
        text = re.sub(r"\n\s*\*", "\n", comment).lstrip("#:!/* \n").rstrip("*/ \n")
        if not text or re.match(r"#!|\W*(?:noqa|type:|pragma|ruff|mypy|fmt|pylint|dialect)", comment):
            continue
        if block and alone and line == block[-1][0] + 1:
            block.append((line, text))
            continue
        if block:
            yield block[0][0], " ".join(part for _, part in block)
        block = [(line, text)]
    if block:
        yield block[0][0], " ".join(part for _, part in block)


def single_comments(
    source: str, pattern: re.Pattern[str] = STRING_OR_COMMENT
) -> Iterator[tuple[int, bool, str]]:
    """Yield the line of each comment, whether its line has no code, and its text."""
    line, counted = 1, 0
    for match in pattern.finditer(source):
        if match[0].startswith(("#", "//", "/*")):
            line += source.count("\n", counted, match.start())
            counted = match.start()
            before = source[source.rfind("\n", 0, counted) + 1 : counted]
            yield line, not before.strip(), match[0]


def prose_hits(path: Path, line: int, text: str, kind: str) -> Iterator[Hit]:
    """Yield the hits in a docstring ("docstring"), comment ("comment") or paragraph ("markdown")."""
    prose = re.sub(r"(?s)::?\s*\n\n.*|```.*?```", "", text) if kind == "docstring" else text
    prose = re.sub(r'"[^"\n]{3,}"', '"..."', prose)  # quoted output is not the code's English
    parts = sentences(prose)
    for code, (_, pattern, scope) in RULES.items():
        if scope == "D":
            if kind == "docstring" and re.search(pattern, parts[0]):
                yield Hit(path, line, code, parts[0])
        elif scope == "S" or kind == "docstring":
            for sentence in parts:
                if re.search(pattern, sentence):
                    yield Hit(path, line, code, sentence)


def name_hits(path: Path, nodes: Iterable[ast.AST]) -> Iterator[Hit]:
    """Yield the hits in names of functions."""
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            is_test = node.name.startswith("test_")
            for code, (_, pattern) in (TEST_NAMES if is_test else NAMES).items():
                if code != "N04" and pattern.search(node.name):
                    yield Hit(path, node.lineno, code, f"def {node.name}")


def loop_hits(path: Path, source: str, tree: ast.AST) -> Iterator[Hit]:
    """Yield the hits in loop variables."""
    # To visit all expressions takes long, and few files have such a line.
    loops = ast.walk(tree) if re.search(r"\bfor\b.*\bone\b", source) else ()
    for node in loops:
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name) and NAMES["N04"][1].search(target.id):
                    yield Hit(path, target.lineno, "N04", f"for {target.id} in ...")


def check_python(path: Path) -> list[Hit]:
    """Return the hits of a Python file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    nodes = [*statements(tree)]
    exempt = {number for number, line in enumerate(source.splitlines(), 1) if "# dialect: ok" in line}
    hits = [hit for line, text in docstrings(nodes) for hit in prose_hits(path, line, text, "docstring")]
    hits += [hit for line, text in comments(source) for hit in prose_hits(path, line, text, "comment")]
    hits += [*name_hits(path, nodes), *loop_hits(path, source, tree)]
    return [hit for hit in hits if hit.line not in exempt]


def check_comments(path: Path) -> list[Hit]:
    """Return the hits in the comments of a file in another language."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    return [
        hit
        for line, text in comments(source, LANGUAGES.get(path.suffix, HASH_COMMENT))
        for hit in prose_hits(path, line, text, "docstring")
        if "dialect: ok" not in lines[line - 1]
    ]


def check_markdown(path: Path) -> list[Hit]:
    """Return the hits of a Markdown file."""
    hits: list[Hit] = []
    paragraph: list[str] = []
    start = 0
    fenced = False

    def flush() -> None:
        if paragraph:
            hits.extend(prose_hits(path, start, " ".join(paragraph), "markdown"))
            paragraph.clear()

    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        text = line.strip()
        if fenced or not text or text.startswith(("|", "#", "<!--", "!", "```")):
            flush()
            continue
        if re.match(r"([-*]|\d+\.) ", text):
            flush()
        if not paragraph:
            start = number
        paragraph.append(re.sub(r"^([-*]|\d+\.) ", "", text))
    flush()
    return hits


def check(paths: Iterable[Path]) -> list[Hit]:
    """Return the hits in files and folders."""
    checks = {".py": check_python, ".md": check_markdown, **dict.fromkeys(LANGUAGES, check_comments)}
    hits: list[Hit] = []
    for root in paths:
        files = (
            [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.suffix in checks)
        )
        for path in files:
            if path.parent.name != "results":  # outputs of measurements
                hits += checks.get(path.suffix, check_comments)(path)
    return hits


ROOT = Path(__file__).parents[1]
CHECKED = (
    "sqlstress",
    "tests",
    "benchmarks",
    "examples",
    "docs",
    ".ci/run",
    ".github",
    "setup.cfg",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)


def main(words: Sequence[str]) -> int:
    """Print the hits; return the exit code."""
    hits = check([Path(word) for word in words] or [ROOT / name for name in CHECKED])
    for hit in hits:
        print(f"{hit.path}:{hit.line}: {hit.code}: {hit.text}")  # noqa: T201
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
