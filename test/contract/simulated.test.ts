// The contract, on `./whet serve engine=simulated` started as users start it: by our client, and by the official SDK.
import { temporaryFolders } from "../support/folders.ts";
import { describeOfficialSdk } from "./official-sdk.ts";
import { startServe } from "./serve-process.ts";
import { describeTinkerApi } from "./tinker-api.ts";

const newFolder = temporaryFolders();
const start = () => startServe(["engine=simulated", `state_dir=${newFolder()}`]);

describeTinkerApi("./whet serve engine=simulated", start);

// What fails must not cost the SDK its 30 s of waiting for a server that may come back.
describeOfficialSdk(start, { mostSeconds: 30 });
