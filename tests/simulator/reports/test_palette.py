"""One colour for each method."""

import pytest

from predictors.registry import METHODS
from simulator.reports import palette


@pytest.mark.parametrize("method", palette.METHODS)
def test_no_two_methods_have_the_same_colour(method):
    colour = palette.METHODS[method]
    others = [each for name, each in palette.METHODS.items() if name != method]
    assert colour.light not in [each.light for each in others]
    assert colour.dark not in [each.dark for each in others]


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", [*palette.METHODS])
def test_lines_stand_out_from_the_page_in_both_themes(name):
    colour, ground = palette.METHODS[name], palette.SURFACES["page"]
    assert contrast(colour.light, ground.light) >= 3
    assert contrast(colour.dark, ground.dark) >= 3


@pytest.mark.parametrize("name", ["text", "quiet", "good", "bad", "careful"])
@pytest.mark.parametrize("ground", ["page", "panel"])
def test_text_can_be_read_on_every_ground(name, ground):
    colour, below = palette.SURFACES[name], palette.SURFACES[ground]
    assert contrast(colour.light, below.light) >= 4.5
    assert contrast(colour.dark, below.dark) >= 4.5


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_every_method_has_a_colour(method):
    assert method in palette.METHODS


def test_a_method_without_a_colour_is_grey():
    assert palette.colour_of("tomorrow:window=3") is palette.SURFACES["quiet"]


def test_parameters_and_policies_do_not_change_a_method_s_colour():
    assert palette.colour_of("easy, percentile:key=user") is palette.METHODS["percentile"]


def test_lines_of_one_picture_differ_even_if_their_method_is_the_same():
    chosen = palette.colours_of(["knn", "knn:template=user", "wide jobs"])
    assert chosen[0] == palette.METHODS["knn"].light
    assert len(set(chosen)) == 3
