// The client alone, for bundlers.
import { ServiceClient } from "whetstone/tinker";

async function main() {
  const service = new ServiceClient();
  const { supportedModels } = await service.getServerCapabilities();
  const training = await service.createLoraTrainingClient({ baseModel: supportedModels[0].modelName, rank: 4 });
  const datum = { modelInput: [1, 2, 3], lossFnInputs: { target_tokens: [2, 3, 4], weights: [1, 1, 1] } };
  const { lossFnOutputs } = await training.forwardBackward([datum], "cross_entropy");
  console.log(lossFnOutputs[0].logprobs.data.length);
  await new Promise((resolve) => setTimeout(resolve, 200)); // the heartbeat's thread starts
  await service.close();
}

void main();
