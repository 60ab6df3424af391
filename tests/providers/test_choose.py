"""Which model a name, the environment or this machine offers."""

import hashlib

import pytest

from ipyrefine.core.model import Price
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.providers import weights
from ipyrefine.providers.choose import choose_model
from ipyrefine.providers.local import LocalModel
from ipyrefine.providers.openai import OpenAIModel

CONTENT = b"GGUF"


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path, monkeypatch):
    for name in ("IPYREFINE_MODEL", "IPYREFINE_RECORD", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IPYREFINE_MODEL_DIR", str(tmp_path))


@pytest.fixture
def light(tmp_path, monkeypatch) -> str:
    """Put small weights under the light model's name, and return it."""
    pinned = {"file": "light.gguf", "size": 4, "sha256": hashlib.sha256(CONTENT).hexdigest()}
    light = weights.WEIGHTS[weights.LIGHT].model_copy(update=pinned)
    monkeypatch.setitem(weights.WEIGHTS, weights.LIGHT, light)
    (tmp_path / "light.gguf").write_bytes(CONTENT)
    return weights.LIGHT


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (None, r"ipyrefine pull.*OPENAI_API_KEY.*--model"),
        (weights.LIGHT, f"`ipyrefine pull {weights.LIGHT}`"),
        (
            "qwen2.5-coder-0.5",
            r"needs a server\. Set OPENAI_API_KEY.*Did you mean qwen2\.5-coder-0\.5b\?",
        ),
        (
            "gpt-4o",
            r"needs a server.*The embedded models are qwen2\.5-coder-1\.5b, qwen2\.5-coder-0\.5b\.",
        ),
    ],
)
def test_where_there_is_no_such_model_the_error_says_how_to_get_one(name, words):
    with pytest.raises(NoModel, match=words):
        choose_model(name)


def test_the_embedded_model_is_the_choice_where_nothing_else_is_named(light):
    assert (type(choose_model()), choose_model().name) == (LocalModel, light)


def test_a_named_model_is_asked_for_at_the_server(monkeypatch, light):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    model = choose_model("m", price=Price(prompt=1, completion=2))
    assert isinstance(model, OpenAIModel)
    assert (model.name, model.base_url) == ("m", "http://127.0.0.1:1/v1")
    assert model.price == Price(prompt=1, completion=2)


def test_a_name_wins_over_the_environment_s(monkeypatch, light):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("IPYREFINE_MODEL", "other")
    assert choose_model().name == "other"
    assert isinstance(choose_model(light), LocalModel)


def test_an_embedded_name_at_a_server_of_the_user_s_is_that_server_s_model(light):
    assert isinstance(choose_model(light, base_url="http://127.0.0.1:1/v1"), OpenAIModel)


def test_a_server_without_a_name_asks_for_one(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with pytest.raises(NoModel, match="--model NAME or IPYREFINE_MODEL"):
        choose_model()


@pytest.mark.parametrize(
    "name",
    [
        *("qwen2.5-coder-1.5", "qwen2.5coder-1.5b", "Qwen2.5-Coder-1.5B", "qwen2.5_coder_1.5b"),
        *("qwen2.5-coder:1.5b", "qwen-coder", "quen2.5-coder-1.5b"),
    ],
)
def test_a_slip_in_an_embedded_model_s_name_never_reaches_openai(monkeypatch, name):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    words = rf"{name}' would be asked for at OpenAI\. Did you mean qwen2\.5-coder-.*--base-url"
    for server in ("", "https://api.openai.com/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", server)
        with pytest.raises(UsageError, match=words):
            choose_model(name)
    assert isinstance(choose_model(name, base_url="https://models.example/v1"), OpenAIModel)


def test_a_server_s_own_name_is_asked_for_there(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    for name in ("gpt-4o", "o3", "gpt-5-codex", "ft:gpt-4o-mini:me::1"):
        assert choose_model(name).name == name
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    for name in ("qwen2.5-coder:1.5b", "qwen2.5-coder-14b"):
        assert choose_model(name).name == name
