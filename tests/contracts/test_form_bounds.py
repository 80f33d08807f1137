"""The description of every bounded field in the Run form contains the bounds."""

from pydantic import TypeAdapter

from flows.settings import Settings
from tasks.form import complete_schema


def test_bounds_are_appended_to_the_description():
    schema = {
        "properties": {
            "a": {"description": "Share.", "minimum": 0, "maximum": 1},
            "b": {"exclusiveMinimum": 0},
            "c": {"description": "Free"},
        }
    }
    complete_schema(schema)
    assert [about.get("description") for about in schema["properties"].values()] == [
        "Share (0 to 1)",
        " (more than 0)",
        "Free",
    ]


def test_descriptions_of_bounded_fields_end_with_the_bounds():
    bounded = 0
    for kind in TypeAdapter(Settings).json_schema()["$defs"].values():
        for name, about in kind["properties"].items():
            if {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} & set(about):
                bounded += 1
                assert about["description"].endswith(")"), f"{kind['title']}.{name}"
    assert bounded > 30
