"""Declaration of settings: unknown names are refused, and Prefect's Run form shows what it otherwise omits.

The form shows a field's description but not its bounds: they are put behind it, "Dimensions (2 to 4,096)". It
chooses the tab of a union by counting the value's keys among the properties of each member, the first of the
largest count, whatever constants the schema has (prefect 3.8.8, both UIs). So the name of a strategy has its
own key in the schema, `strategy_adam` for `name`; validation accepts both.
"""

from dataclasses import MISSING, dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")

SIDES = {"minimum": "at least", "exclusiveMinimum": "more than"}
SIDES |= {"maximum": "at most", "exclusiveMaximum": "less than"}


def complete_schema(schema: dict[str, Any]) -> None:
    """Completes the JSON schema of a settings class for the form, in place."""
    for key, about in schema.get("properties", {}).items():
        bounds = {words: f"{about[side]:,}" for side, words in SIDES.items() if side in about}
        text = ", ".join(f"{words} {bound}" for words, bound in bounds.items())
        if bounds.keys() == {"at least", "at most"}:
            text = " to ".join(bounds.values())
        if text:
            about["description"] = f"{about.get('description', '').rstrip('.')} ({text})"
        if "default" in about:
            about["default"] = in_form(about["default"])
        if key.startswith("strategy_"):  # other programs send `name`, which is not in the form
            schema["patternProperties"] = {"^name$": {"const": about["const"]}}


def in_form(value: Any) -> Any:
    """A value of settings as JSON, with the names of strategies under the keys that the form knows."""
    if isinstance(value, dict):
        strategy = f"strategy_{value['name']}" if isinstance(value.get("name"), str) else "name"
        return {strategy if key == "name" else key: in_form(item) for key, item in value.items()}
    return [in_form(item) for item in value] if isinstance(value, list | tuple) else value


FORM: Any = {"extra": "forbid", "validate_by_name": True, "json_schema_extra": complete_schema}


def setting(default: Any, description: str, **constraints: Any) -> Any:
    """A field of a settings class; ``...`` where a value must be given. Constraints are ``pydantic.Field``'s;
    ``keyed=False`` keeps the field out of the cache key.
    """
    value = MISSING if default is ... else default
    return field(default=value, metadata={"description": description, **constraints})


@dataclass_transform(kw_only_default=True, frozen_default=True)
def configurable(cls: type[T]) -> type[T]:
    """A frozen keyword-only dataclass of settings; one with a constant ``name`` is a strategy."""
    cls.__pydantic_config__ = FORM  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(name := cls.__dict__.get("name"), str):
        in_schema = {"validation_alias": f"strategy_{name}", "title": "Strategy"}
        cls.name = field(default=name, metadata=in_schema)  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass(frozen=True, kw_only=True)(cls)
