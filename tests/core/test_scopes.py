"""Which names of the notebook code needs: that decides whose first rows a result comes from."""

import pytest

from ipyrefine.core.scopes import names_needed

PILE = "seen = []\ndef f(x):\n    seen.append(len(x))\n    return seen\n"
NEEDED = [
    ("total = df.v.sum()", ()), ("if reload: df = load()\ndf.head()", ()), ("df = df.dropna()", ()),
    ("df['a'] = 1", ()), ("del df", ()), ("f = lambda: df", ()), ("n = eval('len(df)')", ()),
    ("n = duckdb.sql('select count(*) from df').fetchone()", ()),
    ("import __main__ as m\nn = len(m.df)", ()), ("return df", ()), ("count the rows of df", ()),
    ("def g():\n    global df\n    df = df.dropna()\ng()", ()),
    ("rate = df.r.mean()\ndef f(x): return x * rate", "f(2)"),
    ("def g():\n    def h(): return len(df)\n    return h()", "g()"),
    ("class A:\n    n = len(df)\n    def m(self): return self.n", "A().m()"),
    ("def load():\n    global data\n    data = df\nload()", "data"),
    ("cache = {}\ndef fill(): cache['n'] = len(df)\nfill()\ndef get(): return cache['n']", "get()"),
    (f"{PILE}f(df)", "f([])"),
    ("class M:\n    def fit(self, d): self.n = len(d)\nm = M()\nm.fit(df)", "m.n"),
    ("def f(x): return x\nf.n = len(df)", "f.n"), ("xs.append(len(df))", "xs"),
    ("big = df\na, b = big.shape", "b"), ("for r in df.v: n = r", "n"), ("n = 3", "len(df)"),
    ("def total(): return len(df)", "from mine import total\ndef test_it(): assert total() == 3"),
    ("def total(): return len(df)", "import mine\ndef test_it(): assert mine.total() == 3"),
]  # fmt: skip
NOT_NEEDED = [
    ("def f(df): return df.dropna()", ()), ("def f(x): return g(df=x)", ()),
    ("df = load()\ndf.head()", ()), ("for df in frames: print(df.shape)", ()),
    ("[df for df in frames]", ()), ("class A:\n    def __init__(self, df): self.df = df", ()),
    ('def f(x):\n    """Unlike df."""\n    return x  # df', ()), ("n = df2.shape", ()),
    ("n = 3\ntotal = df.v.sum()", "n"), ("def f(x): return len(x)\nf(df)\nn = len(df)", "f([1])"),
    ("K = 3\ndef f(x): return K * x\nf(df)", "f(2)"),
    ("import pandas as pd\ndef f(x): return pd.Series(x)\nn = pd.concat([df])", "f([1])"),
    ("def f(x): return x", "df = small()\nf(df)"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "calls"), NEEDED)
def test_code_needs_a_name_that_it_may_read_or_that_its_calls_depend_on(code, calls):
    assert "df" in names_needed(code, *filter(None, [calls]))


@pytest.mark.parametrize(("code", "calls"), NOT_NEEDED)
def test_code_does_not_need_a_name_that_it_binds_first_or_that_is_another_ones(code, calls):
    assert "df" not in names_needed(code, *filter(None, [calls]))
