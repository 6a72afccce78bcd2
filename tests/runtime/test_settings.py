from __future__ import annotations

import json
from pathlib import Path

import pytest

from evolution.arms import ENUMERATORS
from runtime.errors import SettingsError
from runtime.models import ModelEndpoint
from runtime.settings import Settings, load_settings, settings_table

ENDPOINT = {"name": "local", "base_url": "http://127.0.0.1:8000/v1", "model": "m"}


def test_every_setting_and_endpoint_field_is_documented() -> None:
    table = settings_table()
    for cls in (Settings, ModelEndpoint):
        for name, info in cls.model_fields.items():
            assert info.description, name
            assert name.lower() in table.lower()


def test_models_come_from_json_text_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPWRIGHT_MODELS", json.dumps([ENDPOINT]))
    inline = load_settings()
    (tmp_path / "models.json").write_text(json.dumps([ENDPOINT]))
    monkeypatch.setenv("WARPWRIGHT_MODELS", str(tmp_path / "models.json"))
    assert load_settings().models == inline.models
    assert inline.proposer_names == (*ENUMERATORS, "model", "local")
    assert inline.endpoint("local") is inline.models[0]
    assert inline.endpoint("other") is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[{]", "not JSON"),
        ("/no/such/file", "readable file"),
        (json.dumps([{**ENDPOINT, "base_url": "ftp://x"}]), "base_url"),
        (json.dumps([ENDPOINT, ENDPOINT]), "two endpoints"),
        (json.dumps([{**ENDPOINT, "name": "synthesiser"}]), "proposer's name"),
    ],
)
def test_a_wrong_models_setting_is_refused_in_words(monkeypatch: pytest.MonkeyPatch, value: str, words: str) -> None:
    monkeypatch.setenv("WARPWRIGHT_MODELS", value)
    with pytest.raises(SettingsError, match="WARPWRIGHT_MODELS") as caught:
        load_settings()
    assert words in str(caught.value)
    assert str(caught.value).count("WARPWRIGHT_MODELS: ") == 1
    assert "Value error" not in str(caught.value)


def test_wrong_values_name_their_variable_and_never_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_PORT", "secret-text")
    with pytest.raises(SettingsError, match="WARPWRIGHT_PORT") as caught:
        load_settings()
    assert "secret-text" not in str(caught.value)


def test_an_empty_key_is_none_and_a_gpu_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "")
    assert load_settings().api_key is None
    monkeypatch.setenv("WARPWRIGHT_GPU_DEVICE", "bogus")
    with pytest.raises(SettingsError, match="WARPWRIGHT_GPU_DEVICE: name a GPU as cuda:N, such as cuda:0"):
        load_settings()


def test_hosts_are_split_at_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPWRIGHT_ALLOWED_HOSTS", "a.example, b.example")
    assert load_settings().allowed_hosts == ("a.example", "b.example")


def test_prices_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = ModelEndpoint(**ENDPOINT, usd_per_million_input=1.0, usd_per_million_output=4.0, api_key_env="KEY_X")
    assert endpoint.priced
    assert endpoint.usd(1_000_000, 500_000) == pytest.approx(3.0)
    assert not ModelEndpoint(**ENDPOINT).priced
    monkeypatch.delenv("KEY_X", raising=False)
    with pytest.raises(SettingsError, match="KEY_X"):
        endpoint.api_key()
    monkeypatch.setenv("KEY_X", "k")
    assert endpoint.api_key() == "k"
