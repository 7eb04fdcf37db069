"""Text files from anywhere: read whole, but no further than a limit."""

from __future__ import annotations

from pathlib import Path

_SIZES = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))


def read_text(path: Path, most: int) -> str:
    """Return the text of a file of `most` bytes or fewer. What has no end, such as a device, is larger.

    Raises OSError, or ValueError that says what is wrong with it.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it is larger than {_size(most)}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("it is not text") from error


def _size(number: int) -> str:
    unit, name = next((unit, name) for unit, name in _SIZES if number >= unit)
    return f"{number // unit} {name}"
