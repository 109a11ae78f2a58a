// The public names of `whetstone/tinker`: a change here is a change for users.
import { expect, test } from "vitest";
import * as tinker from "./index.ts";

test("the public entry exports exactly these values", () => {
  expect(Object.keys(tinker).sort()).toEqual([
    "APIConnectionError",
    "APIFuture",
    "APIResponseError",
    "APIStatusError",
    "APITimeoutError",
    "ClientClosedError",
    "CredentialError",
    "EarlierCallFailedError",
    "InvalidInputError",
    "ModelLostError",
    "ProtocolError",
    "RequestFailedError",
    "RequestLostError",
    "RestClient",
    "SamplingClient",
    "ServiceClient",
    "StuckError",
    "TinkerError",
    "TrainingClient",
    "WaitTimeoutError",
    "defaultTimings",
    "parseTinkerPath",
    "tensor",
    "textInput",
    "tokenizerIdOf",
  ]);
});
