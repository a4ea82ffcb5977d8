"""The OpenAPI document says in words what every call does, and its examples fit it."""

import json

import pytest
from jsonschema import Draft202012Validator

from service.contract.vocabulary import WORDS
from service.http import openapi
from service.http.app import create_app
from service.http.examples import BATCH, EXTENSION, PREDICTION
from service.http.gate import SCHEME
from service.http.openapi_prose import STARTING, operations
from service.settings import Settings

DOCUMENT = openapi.describe(create_app(Settings(database_url="sqlite:///never-opened")))
CALLS = [(f"{verb.upper()} {path}", call) for verb, path, call in operations(DOCUMENT)]
SCHEMAS = DOCUMENT["components"]["schemas"]
FIELDS = [(owner, name, field) for owner, schema in SCHEMAS.items()
          for name, field in schema.get("properties", {}).items()]  # fmt: skip

every_call = pytest.mark.parametrize("call", [each for _, each in CALLS], ids=[n for n, _ in CALLS])


def contents(call):
    """Everything that is sent and answered, with its status; a body has none."""
    for kind, body in call.get("requestBody", {}).get("content", {}).items():
        yield kind, None, body
    for status, answer in call["responses"].items():
        for kind, content in answer["content"].items():
            yield kind, int(status), content


def values(content):
    """The examples of a body or an answer."""
    named = [each["value"] for each in content.get("examples", {}).values()]
    return [*named, *([content["example"]] if "example" in content else [])]


@every_call
def test_a_call_has_a_summary_and_a_description_in_words(call):
    assert len(call["summary"].split()) >= 3
    assert call["description"].startswith(call["summary"].split()[0])
    assert ". " not in call["summary"], "one sentence"
    assert call["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}


@every_call
def test_a_call_shows_what_is_sent_and_what_is_answered_errors_too(call):
    for kind, status, content in contents(call):
        assert values(content), f"no example of {status or 'a body'} as {kind}"
        numbers = [name for name in content.get("examples", ()) if name.isdecimal()]
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


@every_call
def test_every_example_of_a_call_fits_its_schema(call):
    for kind, _, content in contents(call):
        if kind == "application/json":
            schema = {**content["schema"], "components": DOCUMENT["components"]}
            for value in values(content):
                Draft202012Validator(schema).validate(value)


def test_examples_ask_for_what_their_summaries_say():
    asked = {name: body for name, (_, body) in PREDICTION.items()}
    told = {name: summary for name, (summary, _) in PREDICTION.items()}
    assert asked["coverage"]["coverage"] == 4 / 5
    assert "four jobs in five" in told["coverage"]
    assert asked["underestimation_rate"]["underestimation_rate"] == 1 / 10
    assert "one job in ten" in told["underestimation_rate"]
    assert f"{asked['elapsed']['elapsed']:,} s" in told["elapsed"]
    assert asked["explain"]["explain"] is True
    ((summary, batch),) = BATCH.values()
    assert "hold four in five" in summary
    assert (batch["coverage"], batch["submissions"][1]["elapsed"]) == (4 / 5, 1000)
    for _, late in EXTENSION.values():
        assert late["predicted_walltime"] < late["elapsed"] < late["requested_walltime"]


@every_call
def test_a_call_documents_the_errors_that_every_call_may_have(call):
    errors = {int(status) for status in call["responses"] if int(status) >= 400}
    if call["security"]:
        assert {401, 403, 500} <= errors
    if "requestBody" in call:
        assert {415, 422} <= errors
        # What a resource manager sends by itself is taken, and left out where it is no record.
        assert {400, 413} <= errors or call["tags"] == ["adapters"]
    for status in errors - {503}:
        (content,) = call["responses"][str(status)]["content"].values()
        assert set(values(content)[0]) >= {"error", "detail"}


@every_call
def test_a_call_says_when_to_come_again_where_the_store_is_away_and_nowhere_else(call):
    if call["tags"] == ["health"]:
        return
    told = [int(status) for status, answer in call["responses"].items() if "headers" in answer]
    assert told == [503] * ("503" in call["responses"])


@pytest.mark.parametrize("path", ["/v1/tunings", "/v1/waits", "/v1/reports/users"])
def test_calls_that_ask_the_store_say_that_it_may_be_away(path):
    assert "503" in DOCUMENT["paths"][path]["get"]["responses"]


def test_a_token_is_asked_for_as_the_document_says():
    scheme = DOCUMENT["components"]["securitySchemes"][SCHEME]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert "walltimed token issue" in scheme["description"]
    assert {name for _, call in CALLS for way in call["security"] for name in way} == {SCHEME}


def test_a_service_that_starts_has_something_to_read_and_is_not_stale():
    assert STARTING["lag"] > 0
    assert STARTING["stale_seconds"] == 0


@every_call
def test_every_parameter_of_a_call_is_described(call):
    for parameter in call.get("parameters", ()):
        assert parameter["description"], parameter["name"]


@pytest.mark.parametrize("owner", SCHEMAS)
def test_every_field_of_a_type_is_described(owner):
    assert SCHEMAS[owner]["description"]
    for name, field in SCHEMAS[owner].get("properties", {}).items():
        assert field.get("description"), f"{owner}.{name}: put it into service/contract/vocabulary"


def test_no_word_of_the_vocabulary_is_left_over():
    known = {name for _, name, _ in FIELDS} | {f"{owner}.{name}" for owner, name, _ in FIELDS}
    known |= {p["name"] for _, call in CALLS for p in call.get("parameters", ())}
    assert set(WORDS) <= known


def test_the_page_of_the_api_shows_every_call_and_type(service):
    page = service.get("/docs").text
    for name, call in CALLS:
        verb, path = name.split(" ")
        assert f">{verb}</span> <code>{path}</code>" in page
        assert f"<strong>{call['summary'].replace(chr(39), '&#39;')}.</strong>" in page
    for owner in SCHEMAS:
        assert f'id="type-{owner}"' in page


def test_without_pages_the_address_of_the_service_leads_to_the_api(serve, sqlite_url):
    service = serve(sqlite_url, page=False)
    answer = service.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs")
    page = service.get("/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert json.dumps("POST /v1/predictions").strip('"').split(" ")[1] in page.text
