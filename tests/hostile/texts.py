"""Texts that might be interpreted as code, and improbable numbers."""

from hypothesis import strategies as st

TEXTS = (
    "",
    " ",
    "-",
    "--",
    ".",
    "/",
    "=cmd|'/c calc'!A1",
    "@SUM(1+1)",
    "\t=1+1",
    "\uff1d1+1",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</script><!--",
    "&lt;b&gt;&#60;",
    "]]>",
    "| a | b |",
    "`code` **bold** [a](javascript:alert(1)) ![b](x)",
    "# heading\n\n- item\n",
    "a\nb\r\nc\u2028d\x85e",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\x9b1m",
    "\u202egnp.exe\u2066\u200b\ufeff\u061c",
    "::set-output name=a::b",
    "\n::error title=a,b::c%0A::warning::d",
    "##[error]x",
    "%{x} $x$ ${x} {x} %s %n %0A",
    "'; drop table kv; --",
    "x=1; drop table kv",
    "\x00\x01\x08\x0b\x1f\x7f\ufffe\uffff",
    "e\u0301" * 40,
    "\U0001f600\U000e0001",
    "x" * 3000,
    "\x1b" * 3000,
    " " * 3000 + "x",
)
"""Markup, formulas, commands of terminals and of CI, control characters, and long texts."""

NUMBERS = (
    "0", "-0", "-1", "1", "2", "3", "7", "8", "64", "512", "1000", "1024", "1025", "10000", "65536",
    "1000000",
    "4294967295", "4294967296", "9223372036854775808", "1" + "0" * 30, "9" * 5000, "1e9", "1e308", "-1e308",
    "1e400", "1e-320", "0.5", "1.0", ".5", "1.5", "nan", "-nan", "inf", "-Infinity", "0x10", "1_000", "1__0",
    "+5", " 5 ", "\u0663", "\uff11", "50%", "101%", "nan%", "%", "1e3%", "0s", "1ms", "2s", "1h", "48h",
    "1e308s",
    "9" * 400 + "h", "-2s", "1-8", "8-1", "1-1000000", "1,2,4-6", "1,,2", ",", "1-1024," * 200 + "1", "1-",
    "-1-2",
)  # fmt: skip
"""Numbers, shares, durations and ranges: valid ones, and ones beyond any bound."""

written = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
"""Any UTF-8 text of a command line."""
odd_bytes = st.binary(min_size=1, max_size=8).map(
    lambda data: data.replace(b"\0", b"\xff").decode("utf-8", "surrogateescape")
)
"""Bytes of a command line that may be undecodable, as Python passes them."""
arguments = st.sampled_from([text for text in TEXTS if "\0" not in text]) | written | odd_bytes
"""Any argument of a command line."""
