// Teaches a model one line of Python through the Tinker API, then samples it. Any server will do:
//
//   npx whetstone serve port=8000 api_key=tml-local &
//   TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local node teach-a-line.ts      (Node 22.18 or newer runs TypeScript)
import { ServiceClient } from "whetstone/tinker";
import { loadTokenizer } from "whetstone/tokenizer";

const service = new ServiceClient();
const { supportedModels } = await service.getServerCapabilities();
const model = supportedModels[0]!.modelName!;
const tokenizer = await loadTokenizer(model);
const prompt = tokenizer.encode("def answer():\n");
const lesson = tokenizer.encode("    return 42\n");

const tokens = [...prompt, ...lesson];
const datum = {
  modelInput: tokens.slice(0, -1),
  lossFnInputs: {
    target_tokens: tokens.slice(1),
    weights: tokens.slice(1).map((_, index) => (index + 1 < prompt.length ? 0 : 1)), // only the lesson is learned
  },
};

const training = await service.createLoraTrainingClient({ baseModel: model, rank: 8, seed: 1 });
for (let step = 1; step <= 30; step++) {
  // Both are queued before either is awaited.
  const update = training.forwardBackward([datum], "cross_entropy");
  const optimizer = training.optimStep({ learningRate: 0.003 });
  const [{ metrics }] = await Promise.all([update, optimizer]);
  if (step === 1 || step % 10 === 0) console.log(`step ${step}: loss ${metrics["loss:sum"]!.toFixed(3)}`);
}

const sampler = await training.saveWeightsAndGetSamplingClient();
const samplingParams = { maxTokens: lesson.length, temperature: 0 };
const { sequences } = await sampler.sample({ prompt, numSamples: 1, samplingParams });
console.log(JSON.stringify(tokenizer.decode(sequences[0]!.tokens)));
await service.close();
