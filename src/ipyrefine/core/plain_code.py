"""Code of the notebook without the data in it, for a server elsewhere."""

import ast
import re

from ipyrefine.core.syntax import try_parse, unparse

_KEPT = (bool, type(None), type(...))
_CELL = re.compile(r"^\[([^\]\n]+)\]\n", re.MULTILINE)  # heads a cell


def without_data(cells: str, shown: str) -> str:
    """Return cells with types in the place of the data in them, and without comments.

    Strings stay as a subscript, as the value of a keyword, and where they name a column that is
    shown anyway. A cell that isn't plain Python is left out.
    """
    _, *parts = _CELL.split(cells)
    found = []
    for head, source in zip(parts[::2], parts[1::2], strict=True):
        if head != "its output" and (tree := try_parse(source)) and tree.body:
            plain = ast.fix_missing_locations(_Plain(shown).visit(tree))
            if text := unparse(plain).strip():
                found.append(f"[{head}]\n{text}")
    return "\n\n".join(found)


class _Plain(ast.NodeTransformer):
    """Puts types in the place of data."""

    def __init__(self, shown: str) -> None:
        self._shown, self._keeps = shown, False

    def _visit_kept(self, node: ast.expr) -> ast.expr:
        before, self._keeps = self._keeps, True
        try:
            return self.visit(node)  # type: ignore[no-any-return]
        finally:
            self._keeps = before

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)  # a docstring

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value, node.slice = self.visit(node.value), self._visit_kept(node.slice)
        return node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        node.value = self._visit_kept(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        before, self._keeps = self._keeps, False
        try:
            return self.generic_visit(node)
        finally:
            self._keeps = before

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        named = isinstance(value, str) and self._names_column(value)
        return node if self._keeps or named or isinstance(value, _KEPT) else _name(value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Name("str", ast.Load())

    def visit_List(self, node: ast.List | ast.Tuple | ast.Set) -> ast.AST:
        return self._visit_items(node, node.elts)

    visit_Tuple = visit_Set = visit_List

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        return self._visit_items(node, [*filter(None, node.keys), *node.values])

    def _visit_items(self, node: ast.expr, items: list[ast.expr]) -> ast.AST:
        values = [one.value for one in items if isinstance(one, ast.Constant)]
        columns = any(isinstance(one, str) and self._names_column(one) for one in values)
        if self._keeps or columns or not items or len(values) < len(items):
            return self.generic_visit(node)
        kinds = " | ".join(sorted({type(one).__name__ for one in values}))
        return ast.Name(f"{type(node).__name__.lower()}[{kinds}]", ast.Load())

    def _names_column(self, text: str) -> bool:
        return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", self._shown) is not None


def _name(value: object) -> ast.Name:
    return ast.Name(type(value).__name__, ast.Load())
