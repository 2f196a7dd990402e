from __future__ import annotations

from pathlib import Path

import pytest

from pdes.errors import os_words


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "Is a directory; a file is needed: name one in it"),
        ("file/x", "Not a directory; a part of this path is a file: name another place"),
        ("none/x", "No such file or directory; the file, or the directory it would be in, must be "
                   "there: check the path"),
    ],
)  # fmt: skip
def test_what_the_system_refuses_is_a_sentence_with_the_path_and_the_cure(
    tmp_path: Path, path: str, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as refused:  # noqa: PT011
        (tmp_path / path).write_text("")
    assert os_words(refused.value) == f"{tmp_path / path}: {words}"


def test_an_error_without_a_number_keeps_its_words() -> None:
    assert os_words(OSError("no such luck")) == "no such luck"
