"""docs/python.md: its examples, one after the other as a reader would type them."""

import re
from pathlib import Path

import pytest

import walltimed

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = [pytest.mark.acceptance, pytest.mark.lengthy(10)]


def test_the_examples_run_and_leave_what_they_say(log_file, url, monkeypatch, capsys):
    monkeypatch.chdir(log_file.parent)
    text = PAGE.read_text("utf-8")
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python") >= 5
    there = {"__name__": "__main__"}
    for number, block in enumerate(blocks, 1):
        code = block.replace("http://127.0.0.1:8580", url)
        exec(compile(code, f"docs/python.md, example {number}", "exec"), there)
    assert len(there["frame"]) == 2 * len(there["played"].log.runs) > 500
    assert set(there["frame"].method) == {"auto", "max-usage:window=10"}
    assert there["tested"].verdict in capsys.readouterr().out


def test_the_page_names_every_public_function_and_client():
    text = PAGE.read_text("utf-8")
    for name in ("read_log", "replay", "simulate", "backtest", "Client", "AsyncClient"):
        assert name in walltimed.__all__
        assert re.search(rf"\b{name}\b", text)
