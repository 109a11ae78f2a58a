"""The official SDK's side of `./whet bench client`: the same work as client-load.ts. Prints one line of JSON."""

import asyncio
import json
import sys
import time

import numpy as np
import tinker
from tinker import types
from tinker.proto.request_conv import forward_backward_request_to_proto

base_url, base_model, settings_text = sys.argv[1:4]
settings = json.loads(settings_text)
BYTES_PER_REQUEST = 5_000_000


def raw_data():
    count = settings["tokens"]

    def token(datum, index):
        return (index * 7919 + datum * 104_729) % 500

    return [
        {
            "tokens": [token(datum, index) for index in range(count)],
            "target_tokens": [token(datum, index + 1) for index in range(count)],
            "logprobs": [-((index % 97) + 0.5) / 10 for index in range(count)],
            "advantages": [0.25 if index % 2 == 0 else -0.75 for index in range(count)],
        }
        for datum in range(settings["data"])
    ]


def build(raw):
    return [
        types.Datum(
            model_input=types.ModelInput.from_ints(datum["tokens"]),
            loss_fn_inputs={name: datum[name] for name in ("target_tokens", "logprobs", "advantages")},
        )
        for datum in raw
    ]


def chunks(data):
    # 4 bytes per token, 8 per target, 4 per logprob and advantage: the SDK's own estimate for these data.
    per_request = max(1, BYTES_PER_REQUEST // (20 * settings["tokens"]))
    return [data[start : start + per_request] for start in range(0, len(data), per_request)]


def build_and_encode(raw):
    times = []
    size = 0
    for round_index in range(settings["rounds"] + 1):
        start = time.process_time()
        size = 0
        for index, chunk in enumerate(chunks(build(raw))):
            request = types.ForwardBackwardRequest(
                forward_backward_input=types.ForwardBackwardInput(data=chunk, loss_fn=settings["lossFn"]),
                model_id="m",
                seq_id=index + 1,
            )
            size += len(forward_backward_request_to_proto(request).SerializeToString())
        if round_index > 0:
            times.append(time.process_time() - start)
    return min(times), size


async def sample_many(client, calls):
    prompt = types.ModelInput.from_ints([(index * 31) % 500 for index in range(settings["promptTokens"])])
    params = types.SamplingParams(max_tokens=settings["maxTokens"], temperature=1.0, seed=1)
    remaining = iter(range(calls))
    tokens = 0

    async def worker():
        nonlocal tokens
        for _ in remaining:
            response = await client.sample_async(prompt=prompt, num_samples=1, sampling_params=params)
            tokens += len(response.sequences[0].tokens)

    await asyncio.gather(*(worker() for _ in range(settings["inFlight"])))
    return tokens


async def main():
    raw = raw_data()
    lists, size = build_and_encode(raw)
    arrays = [
        {
            "tokens": datum["tokens"],
            "target_tokens": np.array(datum["target_tokens"], dtype=np.int64),
            "logprobs": np.array(datum["logprobs"], dtype=np.float32),
            "advantages": np.array(datum["advantages"], dtype=np.float32),
        }
        for datum in raw
    ]
    from_arrays, _ = build_and_encode(arrays)

    service = tinker.ServiceClient(base_url=base_url, api_key="tml-local")
    training = await service.create_lora_training_client_async(base_model=base_model, rank=8)
    sampling = await training.save_weights_and_get_sampling_client_async()
    await sample_many(sampling, 1)
    start = time.process_time()
    tokens = await sample_many(sampling, settings["calls"])
    sample = time.process_time() - start
    print(json.dumps({"lists": lists, "arrays": from_arrays, "bytes": size, "sample": sample, "tokens": tokens}))


asyncio.run(main())
