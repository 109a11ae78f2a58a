// What a strict type check of a stranger's project sees. It never runs.
import { type Dataset, loadDataset } from "whetstone/data";
import { createGrader, type GradeResult, openSandbox } from "whetstone/grading";
import { getRenderer, type Renderer } from "whetstone/renderers";
import { type RewardFunction, type RunEvent, runTraining, type TrainingProblem } from "whetstone/rl";
import { type DatumInput, type SampleResponse, ServiceClient, TinkerError } from "whetstone/tinker";
import { loadTokenizer, type Tokenizer } from "whetstone/tokenizer";

export const dataset: Promise<Dataset> = loadDataset("starter", { split: "train" });
export async function grade(response: string): Promise<GradeResult> {
  return createGrader({ sandbox: await openSandbox() }).grade({ problem: { id: "1", tests: [] }, response });
}
export const rendererOf = (tokenizer: Tokenizer): Renderer => getRenderer("qwen3", tokenizer);
export async function sample(prompt: number[]): Promise<SampleResponse> {
  const training = await new ServiceClient().createLoraTrainingClient({ baseModel: "m", rank: 8 });
  const data: DatumInput[] = [{ modelInput: prompt, lossFnInputs: { target_tokens: prompt } }];
  await training.forwardBackward(data, "cross_entropy").catch((error: unknown) => {
    if (error instanceof TinkerError) console.log(error.code satisfies string);
  });
  const sampler = await training.saveWeightsAndGetSamplingClient();
  return sampler.sample({ prompt, numSamples: 1, samplingParams: { maxTokens: 8 } });
}

interface Word extends TrainingProblem {
  word: string;
}
export const reward: RewardFunction<Word> = ({ problem, text }) => (text === problem.word ? 1 : null);
export const step = (event: RunEvent): number | undefined => (event.type === "step-done" ? event.step : undefined);
export const training = runTraining({
  service: new ServiceClient(),
  problems: [] as Word[],
  reward,
  config: { max_steps: 1 },
});

// Types are there, and not `any`.
// @ts-expect-error A reward is a number.
void runTraining({ service: new ServiceClient(), problems: [], reward: () => "1" });
// @ts-expect-error There is no such setting.
void runTraining({ service: new ServiceClient(), problems: [], reward, config: { max_stepz: 1 } });
// @ts-expect-error A tokenizer is not a string.
export const text: Promise<string> = loadTokenizer("nano-coder");
// @ts-expect-error There is no such option.
new ServiceClient({ basUrl: "http://127.0.0.1" });
// @ts-expect-error A prompt is tokens.
void sample("text");
