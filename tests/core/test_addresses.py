"""Which addresses a text names: in Python those of its strings, elsewhere those of its words."""

import pytest

from ipyrefine.core.addresses import find_addresses


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("![](http://host/?k=1) and [a](//cdn.evil.example/x)", ["host", "cdn.evil.example"]),
        ("See https://good.example@evil.example:80/x.", ["evil.example"]),
        ("![](http:/a.example) ![](https:b.example)", ["a.example", "b.example"]),
        ("It runs on localhost:8888, or 127.0.0.1.", ["localhost", "127.0.0.1"]),
        ('urlopen("\\x68t" "tp://a.example")', ["a.example"]),
        ('urlopen(b"http://A.example")', ["a.example"]),
        ('urlopen(f"https://{host}/?k={key}")', ["{host}"]),
        ('urlopen("http://" + host)', ["http://…"]),
        ('s.connect(("10.0.0.3", 80))', ["10.0.0.3"]),
        ('create_engine("mysql://ada:secret@db/shop")', ["db"]),
        ('x = a // b  # see http://a.example\ndf.to_csv("orders.csv")', []),
        ("At 10:30, http: version 1.2.3 of a//b is out.", []),
    ],
)
def test_addresses_are_found_by_their_syntax(text, hosts):
    assert find_addresses(text) == hosts
