"""The check of docstrings in ``make lint`` names fragments, questions and repetitions alone."""

import docstring_check
import pytest


def found_in(tmp_path, docstring):
    file = tmp_path / "module.py"
    file.write_text(f'"""Holds one function."""\n\n\ndef function():\n    """{docstring}"""\n')
    return [(each.line, each.words) for each in docstring_check.fragments(file)]


@pytest.mark.parametrize(
    "docstring", ["What it is.", "Of, say, two.", "The same\n    again.", "Does it pay?"]
)
def test_a_fragment_is_found_with_line_and_words(tmp_path, docstring):
    assert found_in(tmp_path, docstring) == [(5, " ".join(docstring.split()))]


@pytest.mark.parametrize(
    "docstring", ["", "Return what it is.", "The runtime.", "Offers two.", "Match ``a?``."]
)
def test_a_verb_or_a_noun_is_not_found(tmp_path, docstring):
    assert found_in(tmp_path, docstring) == []


def test_all_files_of_a_folder_are_read_and_the_exit_code_tells(tmp_path, capsys):
    (tmp_path / "good.py").write_text('"""Return it."""\n')
    assert docstring_check.main([str(tmp_path)]) == 0
    (tmp_path / "bad.py").write_text('"""Whose it is."""\n')
    assert docstring_check.main([str(tmp_path)]) == 1
    assert 'bad.py:1: a docstring begins with "Whose it is."' in capsys.readouterr().out


ENTRIES = '''
class Store:
    """Keep runs.

    Args:
        settings: {}
        clock: Unix seconds; tests give their own.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        """Open it.

        Raises:
            StoreError: the store.
        """
'''


@pytest.mark.parametrize("says", ["of the service.", "the settings.", "its settings of the store."])
def test_an_entry_that_repeats_name_type_or_owner_is_found(tmp_path, says):
    file = tmp_path / "module.py"
    file.write_text(ENTRIES.format(says))
    (found,) = docstring_check.repetitions(file)
    assert (found.line, found.words) == (6, f"settings: {says}")


@pytest.mark.parametrize("says", ["bounds of memory.", "of the\n            service."])
def test_an_entry_that_says_more_is_not_found(tmp_path, says):
    file = tmp_path / "module.py"
    file.write_text(ENTRIES.format(says))
    assert list(docstring_check.repetitions(file)) == []
