"""The fields of requests: texts that can be stored and shown, whole numbers, amounts."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function

from runtime.addresses import read_url

MAX_SOURCE_BYTES = 1 << 20

# Invisible characters, line breaks, and those that turn the direction of text; spaces other than U+0020.
_ODD = r"\x00-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
ONE_LINE = rf"^[^{_ODD}]*[^ {_ODD}][^{_ODD}]*$"


class Matching:
    """A text that must match a pattern; the refusal is in words, the document shows the pattern."""

    def __init__(self, pattern: str, message: str) -> None:
        self.pattern, self.message = pattern, message
        self.compiled = re.compile(pattern.removesuffix("$") + r"\Z")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), "pattern": self.pattern}

    def _check(self, text: str) -> str:
        if not self.compiled.match(text):
            raise ValueError(self.message)
        return text


def _stripped(text: str) -> str:
    return text.strip(" ")


def _fits(text: str) -> str:
    if len(text.encode()) > MAX_SOURCE_BYTES:
        raise ValueError(f"a source has at most {MAX_SOURCE_BYTES} bytes")
    return text


def _whole(value: object) -> object:
    """Accept 2.0 as a whole number, since JSON has one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)  # after a Field, or the document would lose its limits
Name = Annotated[
    str,
    Field(min_length=1, max_length=200),
    Matching(ONE_LINE, "give one line of printable text"),
    AfterValidator(_stripped),
]
Text = Annotated[str, Matching(r"^[^\x00]*$", "a NUL character cannot be stored: remove it")]
SizeName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
SizeText = Annotated[Text, Field(min_length=1, max_length=200)]
Source = Annotated[Text, Field(min_length=1, max_length=MAX_SOURCE_BYTES), AfterValidator(_fits)]
Count = Annotated[int, Field(ge=1, le=10**9), WHOLE]
Amount = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_PORT = r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_REST = r"[/?][A-Za-z0-9._~!$&'()*+,;=:@/?%-]*"
URL = rf"^https?://{_LABEL}(\.{_LABEL})*(:{_PORT})?({_REST})?$"
"""An http(s) URL with a name or an IPv4 address, without user or fragment."""


def _readable(url: str) -> str:
    read_url(url)
    return url


WebhookURL = Annotated[
    str,
    Field(max_length=2000, examples=["https://ci.example.com/done"]),
    AfterValidator(_readable),  # says the reason
    Matching(URL, "give a URL with a name or an IPv4 address, and other characters as %XX"),
]
ProblemRef = Annotated[Text, Field(max_length=100, examples=["prob_01jd3z8v5e0000q4x9k2m7n8p1"])]
CandidateRef = Annotated[str, Field(pattern=r"^cand_[0-9a-z]{8,34}$", examples=["cand_01jd3z8v5e0000q4x9k2m7n8p1"])]
ProposerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$")]


class Strict(BaseModel):
    """A request: unknown fields are refused, nothing is converted, no input is echoed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)
