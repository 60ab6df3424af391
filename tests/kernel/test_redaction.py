"""What counts as a secret, and what is left of a text without its secrets."""

from time import process_time

from ipyrefine.kernel.redaction import HIDDEN, is_secret, is_secret_name, redact

TOKENS = [
    "sk-abcdefghijkl",
    "ghp_abcdefghijklmnop",
    "xoxb-1234567890-abc",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "9f86d081884c7d659a2feaa0c55ad015",
    "550e8400-e29b-41d4-a716-446655440000",
    "aB3dE6gH9jK2mN5pQ8",
]


def test_a_token_is_hidden_wherever_it_stands():
    for token in TOKENS:
        assert is_secret(token)
        for text in (token, f"x = '{token}'", f"see {token}, or not", f"a\n{token}\nb"):
            hidden = redact(text)
            assert HIDDEN in hidden, text
            assert token not in hidden


def test_what_is_assigned_to_a_secret_name_is_hidden():
    for text, hidden in {
        'api_key = "hunter2"': 'api_key = "[secret]"',
        "DB_PASSWORD=hunter2": "DB_PASSWORD=[secret]",
        '{"password": "hunter2", "n": 1}': '{"password": "[secret]", "n": 1}',
        'os.environ["API_KEY"] = "hunter2"': 'os.environ["API_KEY"] = "[secret]"',
        'token: str = """hunter2"""': 'token: str = """[secret]"""',
        "postgres://me:hunter2@host/db": "postgres://[secret]@host/db",
        "Authorization: Bearer hunter2hunter2": "Authorization: [secret]",
    }.items():
        assert redact(text) == hidden
        assert is_secret(text)


def test_known_secrets_are_hidden_in_any_text(monkeypatch):
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "plain words")
    assert redact("a plain words b, and other", ["other"]) == f"a {HIDDEN} b, and {HIDDEN}"
    assert is_secret("plain words")


def test_names_that_are_no_secrets():
    for name in ("monkey", "author", "keyboard", "token_count"):
        assert not is_secret_name(name, "a"), name
    assert not is_secret_name("max_tokens", 3)
    assert not is_secret_name("key_columns", ["a"])


def test_hiding_takes_linear_time():
    """Each of these took seconds with a pattern that looks back; a fast one takes a millisecond."""
    for piece in ("a", "key=", "eyJ", "bearer ", "-----BEGIN ", "A1", "key='", "sk-", "a:"):
        began = process_time()
        redact(piece * (20_000 // len(piece)))
        assert process_time() - began < 10
