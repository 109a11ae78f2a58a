// Our side of `./whet bench client`: the same work as client_load.py, in a process of its own. Prints one line of JSON.
import { BytesPool } from "../src/client/bytes-pool.ts";
import { type DatumInput, encodeBatches } from "../src/client/data.ts";
import { ServiceClient } from "../src/client/index.ts";
import { LoopLag } from "./lag.ts";

const [baseUrl, baseModel, settingsText] = process.argv.slice(2) as [string, string, string];
const settings = JSON.parse(settingsText) as {
  data: number;
  tokens: number;
  rounds: number;
  calls: number;
  inFlight: number;
  promptTokens: number;
  maxTokens: number;
  lossFn: string;
};

const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

interface RawDatum {
  tokens: number[];
  targets: number[];
  logprobs: number[];
  advantages: number[];
}

/** Plain lists, as they come out of a rollout. */
function rawData(): RawDatum[] {
  return Array.from({ length: settings.data }, (_, datum) => {
    const list = (value: (index: number) => number) =>
      Array.from({ length: settings.tokens }, (_, index) => value(index));
    const token = (index: number) => (index * 7919 + datum * 104_729) % 500;
    return {
      tokens: list(token),
      targets: list((index) => token(index + 1)),
      logprobs: list((index) => -((index % 97) + 0.5) / 10),
      advantages: list((index) => (index % 2 === 0 ? 0.25 : -0.75)),
    };
  });
}

const fromLists = ({ tokens, targets, logprobs, advantages }: RawDatum): DatumInput => ({
  modelInput: tokens,
  lossFnInputs: { target_tokens: targets, logprobs, advantages },
});

type TypedDatum = { tokens: Int32Array; targets: Int32Array; logprobs: Float32Array; advantages: Float32Array };

const fromArrays = ({ tokens, targets, logprobs, advantages }: TypedDatum): DatumInput => ({
  modelInput: tokens,
  lossFnInputs: { target_tokens: targets, logprobs, advantages },
});

const pool = new BytesPool();
const limits = { maxData: 1024, maxBytes: 5_000_000 };
const request = { modelId: "m", lossFn: settings.lossFn, lossFnConfig: {}, forwardOnly: false };

/** The least CPU time of building and encoding the batch, and the bytes that came out. */
async function buildAndEncode(build: () => DatumInput[]): Promise<{ cpuSeconds: number; bytes: number }> {
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round <= settings.rounds; round++) {
    const start = cpuSeconds();
    const batches = await encodeBatches(build(), limits, request, pool);
    bytes = 0;
    for (const [index, batch] of batches.entries()) {
      bytes += (await batch.finish(index + 1)).length;
      // As the client does when a request was taken.
      batch.release();
    }
    if (round > 0) times.push(cpuSeconds() - start);
  }
  return { cpuSeconds: Math.min(...times), bytes };
}

const raw = rawData();
const typed = raw.map(
  (datum): TypedDatum => ({
    tokens: new Int32Array(datum.tokens),
    targets: new Int32Array(datum.targets),
    logprobs: new Float32Array(datum.logprobs),
    advantages: new Float32Array(datum.advantages),
  }),
);
const lists = await buildAndEncode(() => raw.map(fromLists));
const arrays = await buildAndEncode(() => typed.map(fromArrays));

const service = new ServiceClient({ baseUrl, apiKey: "tml-local" });
const training = await service.createLoraTrainingClient({ baseModel, rank: 8 });
const submitting = new LoopLag();
submitting.start();
for (let round = 0; round < 2; round++) await training.forward(raw.map(fromLists), settings.lossFn);
const trainLag = submitting.stop();

const sampling = await training.saveWeightsAndGetSamplingClient();
const prompt = Array.from({ length: settings.promptTokens }, (_, index) => (index * 31) % 500);
const samplingParams = { maxTokens: settings.maxTokens, temperature: 1, seed: 1 };
await sampling.sample({ prompt, samplingParams });

let tokens = 0;
async function sampleMany(calls: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next++ < calls) {
      const { sequences } = await sampling.sample({ prompt, samplingParams });
      tokens += sequences[0]!.tokens.length;
    }
  };
  await Promise.all(Array.from({ length: settings.inFlight }, worker));
}
const asking = new LoopLag();
asking.start();
const start = cpuSeconds();
await sampleMany(settings.calls);
const sample = cpuSeconds() - start;
const sampleLag = asking.stop();
await service.close();
const { cpuSeconds: fromListsSeconds, bytes } = lists;
console.log(
  JSON.stringify({ lists: fromListsSeconds, arrays: arrays.cpuSeconds, bytes, sample, tokens, trainLag, sampleLag }),
);
