"""What a file really holds, whatever its name says: other formats than that of its ending, and other encodings."""

from __future__ import annotations

from pathlib import Path

from openjev_core.datasets.places import file_error, utf8_of

SHEET = "save the sheet as CSV UTF-8"

OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"pk\x03\x04", "is a zip archive, as .xlsx workbooks are", SHEET),
    (b"\xd0\xcf\x11\xe0", "is an .xls workbook", SHEET),
    (b"\x1f\x8b", "is compressed with gzip", "`gunzip` unpacks it"),
    (b"par1", "is a Parquet file", "name it .parquet"),
    (b"%pdf", "is a PDF", "its text has to be put into rows first"),
    (b"version https://git-lfs.github.com/spec/", "is a pointer of Git LFS to the file", "`git lfs pull` fetches it"),
    (b"<!doctype html", "is a web page, as a download without a login gives", "open it in a browser to see why"),
    (b"<html", "is a web page, as a download without a login gives", "open it in a browser to see why"),
)
"""What other files begin with, in lower case; what they are, and what makes rows of them."""

LONGEST = max(len(beginning) for beginning, _, _ in OTHERS)


def check_content(path: Path) -> None:
    """Refuse a file that is in another format than its name says.

    Raises:
        RequestError: It is. Says which, and what to do.
        OSError: It cannot be read.
    """
    if path.exists() and not path.is_file():
        return  # what is read from a pipe is gone
    with path.open("rb") as file:
        start = file.read(LONGEST + 3).removeprefix(b"\xef\xbb\xbf").lower()
    for beginning, what, way in OTHERS:
        if start.startswith(beginning) and not (beginning == b"par1" and path.suffix.lower() == ".parquet"):
            raise file_error(path, f"{what}; {way}")


def text_of(path: Path, encoding: str | None) -> bytes:
    """The text of a file, in UTF-8.

    Args:
        path: The file.
        encoding: Of a text without a byte order mark; ``None`` for UTF-8.

    Raises:
        RequestError: It is in another encoding. Names the flag that reads it.
        SettingsError: The encoding is unknown.
        OSError: It cannot be read.
    """
    data = utf8_of(path.read_bytes(), path, encoding)
    if b"\0" in data:
        raise file_error(path, "holds NUL characters, as UTF-16 does; --encoding utf-16-le or utf-16-be reads that")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        msg = (
            f"is not valid UTF-8: {error.reason} at byte {error.start}. Programs on Windows write cp1252 in Western "
            "languages, gb18030 in Chinese, cp932 in Japanese, cp949 in Korean; --encoding cp1252 reads the first"
        )
        raise file_error(path, msg) from None
    return data
