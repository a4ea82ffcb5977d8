"""Properties that all Python scripts of integrations/ share."""

import pytest
from site_scripts import FOLLOWER, FORWARDER, loaded

PARSED = {FOLLOWER: [], FORWARDER: ["--token-file", "x"]}
"""Options that a script needs."""


@pytest.mark.parametrize("script", PARSED, ids=lambda script: script.name)
def test_a_script_asks_the_service_of_its_machine_and_explains_its_options(script, capsys):
    module = loaded(script)
    assert module.parsed(PARSED[script]).url == "http://127.0.0.1:8580"
    with pytest.raises(SystemExit, match="0"):
        module.parsed(["--help"])
    assert "--url" in capsys.readouterr().out


READERS = (FOLLOWER.with_name("walltimed_accounting.py"), FORWARDER)


@pytest.mark.parametrize("script", READERS, ids=lambda script: script.name)
def test_a_file_that_holds_more_than_the_token_is_refused_without_telling_it(script, tmp_path):
    (tmp_path / "token").write_text("Token 1 for x, shown only now:\nwt_1_secret\n")
    with pytest.raises(ValueError, match="one token") as refused:
        loaded(script).token_in(str(tmp_path / "token"))
    assert "secret" not in str(refused.value)
