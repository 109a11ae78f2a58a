// ONNX Runtime reports its use to its makers unless it is told not to. This is imported before it, on the main thread of every process
// that loads it: an environment variable set in a worker thread does not reach native code.
process.env["ORT_DISABLE_TELEMETRY"] ??= "1";
