"""Looks at the generated module whose path is the first argument."""

import importlib.util
import sys
import typing

path = sys.argv[1]
with open(path, encoding="utf-8") as f:
    compile(f.read(), path, "exec")
spec = importlib.util.spec_from_file_location("kinds", path)
kinds = importlib.util.module_from_spec(spec)
sys.modules["kinds"] = kinds
spec.loader.exec_module(kinds)

types = {n: t for n, t in vars(kinds).items() if typing.is_typeddict(t)}
hints = {n: typing.get_type_hints(t, include_extras=False) for n, t in types.items()}


def same(got, want):
    assert got == want, f"{got!r}, want {want!r}"


mail = hints["SendMailInput"]
same(types["SendMailInput"].__required_keys__, frozenset({"to", "from", "lines", "class"}))
same(mail["to"], list[str])
same(mail["reply-to"], str | None)
same(mail["class"], typing.Literal["first", 'second "quoted"'])
same(mail["lines"], list[kinds.SendMailInputLinesItem] | None)
same(mail["labels"], dict[str, list[int | None]] | None)
same(mail["anything"], typing.Any)
same(mail["size"], typing.Literal[1, 2] | float | None)
same(mail["__name"], int)
same(types["SendMailInputLinesItem"].__required_keys__, frozenset({"sku"}))
node = hints["TreeNode"]
same(node["children"], list[kinds.TreeNode])
same(node["parent"], kinds.TreeNode | None)
same(node["import"], kinds.TreeNode)
same(types["TreeNode"].__optional_keys__, frozenset({"parent", "import"}))
same(kinds.TreeInput, kinds.TreeNode)
same(hints["PayInputCard"]["by"], typing.Literal["card"])
same(types["PayInputCard"].__required_keys__, frozenset({"amount", "card"}))
same(types["PayResult"].__required_keys__, frozenset({"id", "done"}))
same(kinds.Kind2faInput, dict[str, str])
same(kinds.SendMailInput2, str | None)
same(kinds.KindResult, typing.Literal["a", True, False] | None)
