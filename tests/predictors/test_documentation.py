from pathlib import Path

import pytest

from predictors.accuracy_groups import GROUPS
from predictors.correction import CORRECTIONS
from predictors.registry import PREDICTORS, create

PAGE = (Path(__file__).parents[2] / "docs" / "predictors.md").read_text("utf-8")


def section(title: str) -> str:
    """The text under the heading ``title``."""
    assert f"\n## {title}\n" in PAGE, f"docs/predictors.md needs a section: ## {title}"
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("name", PREDICTORS)
def test_every_method_and_each_of_its_parameters_is_documented(name):
    text = section(name)
    for parameter in create(name).parameters:
        row = f"| `{parameter}` |"
        assert row in text, f"docs/predictors.md, ## {name}, needs a row that begins: {row}"


def test_every_correction_is_documented():
    for name in CORRECTIONS:
        assert f"`{name}`" in section("Corrections")


def test_the_groups_are_documented_as_they_are():
    rows = section("Accuracy groups and aging").splitlines()
    for group in GROUPS:
        interval = f"[{group.lower:.2f}, {group.upper:.2f})"
        interval = interval.replace("[0.00", "[0").replace("1.00)", "1]")
        assert f"| {group.name} | {interval} | {group.priority} |" in rows
