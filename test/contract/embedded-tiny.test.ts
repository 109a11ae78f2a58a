// The contract, on `./whet serve model=DIR` with the embedded engine and a tiny random model: by our client, and by the official SDK.
import { join } from "node:path";
import { foldersInMemory } from "../support/folders.ts";
import { writeTinyModel } from "../support/tiny-model.ts";
import { newestSdk } from "../support/venv.ts";
import { describeOfficialSdk } from "./official-sdk.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";
import { describeTinkerApi } from "./tinker-api.ts";

const newFolder = foldersInMemory();

function start(): Promise<ServeProcess> {
  const model = join(newFolder(), "tiny");
  writeTinyModel(model);
  return startServe([`model=${model}`, `state_dir=${newFolder()}`]);
}

describeTinkerApi("./whet serve model=DIR", start);

describeOfficialSdk(start, { versions: [newestSdk] });
