"""The OpenAPI document says in words what every call does, and the page of the API shows it."""

from html import unescape

import pytest

from service.http import openapi
from service.http.app import create_app
from service.http.openapi import SCHEME, SHARED, operations
from service.settings import Settings

DOCUMENT = openapi.describe(create_app(Settings(database_url="sqlite:///never-opened")))
CALLS = [(f"{verb.upper()} {path}", call) for verb, path, call in operations(DOCUMENT)]
SCHEMAS = DOCUMENT["components"]["schemas"]
FIELDS = [(owner, name, field) for owner, schema in SCHEMAS.items()
          for name, field in schema.get("properties", {}).items()]  # fmt: skip

every_call = pytest.mark.parametrize("call", [each for _, each in CALLS], ids=[n for n, _ in CALLS])


@every_call
def test_a_call_has_a_summary_and_a_description_in_words(call):
    assert len(call["summary"].split()) >= 3
    assert call["description"].startswith(call["summary"].split()[0])
    assert ". " not in call["summary"], "one sentence"
    assert call["tags"][0] in {tag["name"] for tag in DOCUMENT["tags"]}


@every_call
def test_a_call_documents_the_errors_that_every_call_may_have(call):
    errors = {int(status) for status in call["responses"] if int(status) >= 400}
    if call["security"]:
        assert {401, 403, 500} <= errors
    if "requestBody" in call:
        assert {415, 422} <= errors
        # What a resource manager sends by itself is taken, and left out where it is no record.
        assert {400, 413} <= errors or call["tags"] == ["adapters"]


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


@every_call
def test_every_parameter_of_a_call_is_described(call):
    for parameter in call.get("parameters", ()):
        assert parameter["description"], parameter["name"]


@pytest.mark.parametrize("owner", SCHEMAS)
def test_every_field_of_a_type_is_described(owner):
    assert SCHEMAS[owner]["description"]
    for name, field in SCHEMAS[owner].get("properties", {}).items():
        assert field.get("description"), f"{owner}.{name}: say at the field what it means"


def test_no_shared_meaning_is_left_over():
    names = {name for _, name, _ in FIELDS}
    names |= {p["name"] for _, call in CALLS for p in call.get("parameters", ())}
    assert set(SHARED) <= names


@every_call
def test_a_call_names_its_errors_by_class(call):
    for status, answer in call["responses"].items():
        if int(status) < 400 or call["tags"] == ["health"]:
            continue
        schema = answer["content"]["application/json"]["schema"]
        for each in schema.get("anyOf", [schema]):
            name = each["$ref"].rpartition("/")[2]
            assert SCHEMAS[name]["properties"]["error"]["const"] == name
            assert SCHEMAS[name]["description"] in answer["description"]


def test_a_client_sees_which_errors_a_call_gives():
    accuracy = DOCUMENT["paths"]["/v1/users/{user}/accuracy"]["get"]["responses"]
    reference = accuracy["404"]["content"]["application/json"]["schema"]
    assert reference == {"$ref": "#/components/schemas/UnknownUserError"}


def test_the_page_of_the_api_lists_every_call(service):
    page = service.get("/docs").text
    for name, call in CALLS:
        assert f"<code>{name}</code>" in page
        assert call["summary"] in unescape(page)


def test_without_pages_there_is_the_document_alone(serve, sqlite_url):
    service = serve(sqlite_url, web_pages=False)
    assert [service.get(path).status_code for path in ("/", "/docs")] == [404, 404]
    assert service.get("/openapi.json").json()["paths"]
