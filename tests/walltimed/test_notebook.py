"""docs/walltimed.ipynb, executed by a real kernel."""

import base64
import struct
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "walltimed.ipynb"
PICTURES = 4

pytestmark = [pytest.mark.acceptance, pytest.mark.cold, pytest.mark.lengthy(20)]


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells, after a kernel has run them."""
    notebook = nbformat.read(NOTEBOOK, 4)
    directory = tmp_path_factory.mktemp("notebook")
    resources = {"metadata": {"path": str(directory)}}
    NotebookClient(notebook, timeout=250, kernel_name="python3", resources=resources).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(cells, kind):
    found = (each for cell in cells for each in cell.outputs)
    return [each.data[kind] for each in found if kind in each.get("data", {})]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_every_cell_runs_and_every_picture_is_drawn(cells):
    assert all(cell.outputs for cell in cells)
    pictures = [base64.b64decode(each) for each in outputs(cells, "image/png")]
    assert len(pictures) == PICTURES
    for picture in pictures:
        assert picture.startswith(b"\x89PNG")
        width, height = struct.unpack(">II", picture[16:24])
        assert width > 500
        assert height > 200
        assert len(picture) > 5_000, "it is empty"


def test_the_tables_and_the_verdict_are_there(cells):
    tables = outputs(cells, "text/plain")
    assert any("mean_absolute_error" in each and "last-two" in each for each in tables)
    said = "".join(each.text for cell in cells for each in cell.outputs if "text" in each)
    assert "Played by easy" in said
    assert "* would be in force" in said


def test_the_notebook_is_kept_without_what_a_run_left():
    kept = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(kept)
    assert all(not cell.get("outputs") for cell in kept.cells)
    assert all(cell.get("execution_count") is None for cell in kept.cells)
