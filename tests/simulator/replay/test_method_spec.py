import pytest

from predictors.registry import UnknownMethodError
from simulator.replay.method_spec import MethodSpec, MethodSpecError


def test_a_bare_name_has_the_default_parameters():
    spec = MethodSpec.parse("max-usage")
    assert (spec.label, spec.name, spec.parameters) == ("max-usage", "max-usage", {})
    assert spec.predictor().parameters["window"] == 5


def test_parameters_are_numbers_words_or_nothing():
    spec = MethodSpec.parse("percentile:key=user+project,percentile=90,window_days=all")
    assert spec.label == "percentile:key=user+project,percentile=90,window_days=all"
    assert spec.parameters == {"key": "user+project", "percentile": 90, "window_days": None}
    assert spec.predictor().parameters["percentile"] == 90


@pytest.mark.parametrize("text", ["percentile:", "percentile:key"])
def test_a_parameter_needs_a_value(text):
    if text.endswith(":"):
        assert MethodSpec.parse(text).parameters == {}
        return
    with pytest.raises(ValueError, match="parameter=value"):
        MethodSpec.parse(text)


def test_unknown_methods_and_parameters_are_named():
    with pytest.raises(UnknownMethodError, match="crystal-ball"):
        MethodSpec.parse("crystal-ball").predictor()
    with pytest.raises(ValueError, match="span"):
        MethodSpec.parse("max-usage:span=3").predictor()


def test_forest_alone_which_would_answer_requests_is_refused():
    with pytest.raises(MethodSpecError, match="forest is taught by rounds: use auto"):
        MethodSpec.parse("forest").predictor()


def test_parameters_may_be_said_in_the_words_of_the_paper():
    spec = MethodSpec.parse("percentile:percentile=p85,window_days=6M,threshold=0.5")
    assert spec.parameters == {"percentile": 85.0, "window_days": 180, "lower_bound": 0.5}
    assert MethodSpec.parse("percentile:window_days=12M").parameters == {"window_days": 365}
    spec.predictor()
