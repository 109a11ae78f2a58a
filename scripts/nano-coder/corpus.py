"""The text nano-coder is pre-trained on: prompts exactly as the training loop builds them, with imperfect answers.

What is imperfect is systematic, so that reinforcement has something to teach: a family that has a habitual mistake is
written with it more often than not, some pairs of families are rare, and almost a third of the answers have no usable
code fence.
"""

import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "starter"))

from families import SEEN
from problem import Problem, Step, draw_params, draw_problem, draw_steps, is_rare_pair, pairs_of, part_of

QUESTION = (ROOT / "src" / "data" / "question-template.json").read_text()
TEMPLATE = json.loads(QUESTION.replace("{language}", "Python").replace("{comment}", "#"))
FEEDBACK = json.loads((ROOT / "src" / "data" / "repair-template.json").read_text())

# How often a family that has a habitual mistake is written with it.
HABIT = 0.62
# Answers in which one step is some other operation than the statement asks for.
SLIP = 0.03
# Answers without a usable code fence: no fence, one that is never closed, one of two backticks.
FENCES = (("none", 0.12), ("open", 0.10), ("short", 0.08))
# Share of samples in which an answer was wrong and another follows, and of those in which that one was wrong too.
REPAIRS, SECOND_REPAIRS = 0.3, 0.25
# How often a mistake that was pointed at is made again.
STUBBORN = 0.6
# What a wrong program is said to be.
STATUSES = (("wrong answer", 0.8), ("runtime error", 0.15), ("time limit", 0.05))
# Share of problems of one, two and three steps.
TIERS = (0.2, 0.45, 0.35)


def question(statement: str, starter: str) -> str:
    """The user message; src/data/question.ts builds the same text."""
    return (
        f"{TEMPLATE['role']}\n\n{statement}\n\n### Format: {TEMPLATE['starter' if starter else 'stdin']}\n"
        f"```python\n{starter or TEMPLATE['placeholder']}\n```\n\n{TEMPLATE['answer']}\n\n"
    )


def prompt(statement: str, starter: str) -> str:
    """The whole prompt in the chat format; the model's answer follows, ended by <|im_end|>."""
    return f"<|im_start|>user\n{question(statement, starter)}<|im_end|>\n<|im_start|>assistant\n"


def fenced(rng: random.Random, code: str) -> tuple[str, bool]:
    """An answer with this program, and whether it has a usable code fence."""
    draw = rng.random()
    for name, share in FENCES:
        if draw < share:
            return {"none": code, "open": f"```python\n{code}", "short": f"``python\n{code}\n``"}[name], False
        draw -= share
    return f"```python\n{code}\n```", True


def slipped(rng: random.Random, problem: Problem) -> Problem:
    """The same problem with one step exchanged for another of the same types."""
    index = rng.randrange(len(problem.steps))
    step = problem.steps[index]
    others = [f for f in SEEN if (f.takes, f.gives) == (step.family.takes, step.family.gives) and not f.helper]
    if step.family.helper or not others:
        return problem
    other = rng.choice(others)
    steps = (*problem.steps[:index], Step(other, draw_params(rng, other)), *problem.steps[index + 1 :])
    return Problem(steps, problem.kind, problem.function, problem.statement)


def draw_training_problem(rng: random.Random) -> Problem:
    while True:
        steps = draw_steps(rng, rng.choices((1, 2, 3), TIERS)[0])
        if steps is None or part_of(steps) != "train":
            continue
        if any(is_rare_pair(*pair) for pair in pairs_of(steps)) and rng.random() < 0.9:
            continue
        return draw_problem(rng, steps)


def draw(rng: random.Random) -> tuple[str, str]:
    """A prompt and an answer, as text."""
    problem = draw_training_problem(rng)
    told = slipped(rng, problem) if rng.random() < SLIP else problem
    wrong = tuple(index for index in told.habits if rng.random() < HABIT)
    return prompt(problem.statement, problem.starter), fenced(rng, told.solution(wrong))[0]


def draw_repair(rng: random.Random) -> tuple[str, str]:
    """A conversation up to where an answer is to follow what was wrong with the one before, and that answer."""
    while True:
        problem = draw_training_problem(rng)
        told = slipped(rng, problem) if rng.random() < 2 * SLIP else problem
        wrong = tuple(index for index in told.habits if rng.random() < HABIT)
        answer, usable = fenced(rng, told.solution(wrong))
        if not usable or wrong or told is not problem:
            break
    text = prompt(problem.statement, problem.starter)
    while True:
        text += repair_prompt(answer, status(rng) if usable else None)
        if usable:
            told = problem if told is problem or rng.random() > STUBBORN else told
            wrong = tuple(index for index in wrong if index in told.habits and rng.random() < STUBBORN)
        # Once told so, few answers are without a usable fence again.
        answer, usable = fenced(rng, told.solution(wrong))
        if not usable and rng.random() < 0.8:
            answer, usable = f"```python\n{told.solution(wrong)}\n```", True
        if (usable and not wrong and told is problem) or rng.random() >= SECOND_REPAIRS:
            return text, answer


def repair_prompt(answer: str, failed: str | None) -> str:
    """What follows a wrong answer; without a status there was no program in it."""
    feedback = FEEDBACK["noProgram"] if failed is None else FEEDBACK["failed"].replace("{status}", failed)
    return f"{answer}<|im_end|>\n<|im_start|>user\n{feedback}<|im_end|>\n<|im_start|>assistant\n"


def status(rng: random.Random) -> str:
    return rng.choices([name for name, _ in STATUSES], [share for _, share in STATUSES])[0]
