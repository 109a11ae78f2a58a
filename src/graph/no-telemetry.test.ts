import { expect, test } from "vitest";
import "./session.ts";

test("ONNX Runtime is told not to report its use", () => {
  expect(process.env["ORT_DISABLE_TELEMETRY"]).toBe("1");
});
