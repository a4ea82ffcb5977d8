"""The check of docstrings in ``make lint`` names what begins with a fragment, and nothing else."""

import docstring_check
import pytest


def found_in(tmp_path, docstring):
    file = tmp_path / "module.py"
    file.write_text(f'"""Holds one function."""\n\n\ndef function():\n    """{docstring}"""\n')
    return [(each.line, each.words) for each in docstring_check.fragments(file)]


@pytest.mark.parametrize("docstring", ["What it is.", "Of, say, two.", "The same\n    again."])
def test_a_fragment_is_found_with_line_and_words(tmp_path, docstring):
    assert found_in(tmp_path, docstring) == [(5, " ".join(docstring.split()))]


@pytest.mark.parametrize("docstring", ["", "Return what it is.", "The runtime.", "Offers two."])
def test_a_verb_or_a_noun_is_not_found(tmp_path, docstring):
    assert found_in(tmp_path, docstring) == []


def test_all_files_of_a_folder_are_read_and_the_exit_code_tells(tmp_path, capsys):
    (tmp_path / "good.py").write_text('"""Return it."""\n')
    assert docstring_check.main([str(tmp_path)]) == 0
    (tmp_path / "bad.py").write_text('"""Whose it is."""\n')
    assert docstring_check.main([str(tmp_path)]) == 1
    assert 'bad.py:1: a docstring begins with "Whose it is."' in capsys.readouterr().out
