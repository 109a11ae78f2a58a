"""Copies of a pickled sampling client in several processes, sampling at once: no sample may be lost, doubled or mixed up.

Reads TINKER_BASE_URL and TINKER_API_KEY. Arguments: processes, samples in all. Every sample asks about a prompt of its own, with a seed
of its own; the log-probabilities of the prompt say whose answer came back, and the original client says what it should have been.
"""

import json
import multiprocessing
import pickle
import sys

import tinker
from tinker import types


def request(number):
    prompt = [1 + number % 200, 1 + number // 200 % 200, 1 + 7 * number % 199, 5]
    return types.ModelInput.from_ints(prompt), types.SamplingParams(max_tokens=6, seed=number, temperature=1.0)


def submit(client, number):
    prompt, params = request(number)
    return client.sample(prompt, num_samples=1, sampling_params=params, include_prompt_logprobs=True)


def read(future):
    output = future.result()
    sequence = output.sequences[0]
    scores = [round(value, 5) for value in list(output.prompt_logprobs)[1:]]
    return list(sequence.tokens), scores, getattr(sequence, "sequence_id", None)


def work(blob, numbers, queue):
    client = pickle.loads(blob)
    try:
        # All of them are under way before any is awaited.
        futures = [(number, submit(client, number)) for number in numbers]
        queue.put([(number, *read(future)) for number, future in futures])
    except BaseException as error:  # noqa: BLE001 - the parent reports it
        queue.put(f"{type(error).__name__}: {error}")


def main():
    processes, samples = int(sys.argv[1]), int(sys.argv[2])
    service = tinker.ServiceClient()
    model = service.get_server_capabilities().supported_models[0].model_name
    client = service.create_sampling_client(base_model=model)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    blob = pickle.dumps(client)
    workers = [
        context.Process(target=work, args=(blob, range(first, samples, processes), queue)) for first in range(processes)
    ]
    for worker in workers:
        worker.start()
    results, errors = [], []
    for _ in workers:
        part = queue.get(timeout=240)
        if isinstance(part, str):
            errors.append(part)
        else:
            results.extend(part)
    for worker in workers:
        worker.join(30)
    wrong = []
    expected = [(number, submit(client, number)) for number, *_ in results]
    for (number, tokens, scores, _), (_, future) in zip(results, expected):
        if read(future)[:2] != (tokens, scores):
            wrong.append(number)
    ids = [sequence_id for *_, sequence_id in results if sequence_id is not None]
    print(
        json.dumps(
            {
                "version": tinker.__version__,
                "processes": processes,
                "asked": samples,
                "answered": len({number for number, *_ in results}),
                "wrong": len(wrong),
                "repeated_ids": len(ids) - len(set(ids)),
                "errors": errors[:3],
            }
        ),
        flush=True,
    )
    done = not errors and not wrong and len(results) == samples and len(ids) == len(set(ids))
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
