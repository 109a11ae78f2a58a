// The architectures that the engine computes. Another one is a file of this folder and a line of this table.
import type { Architecture } from "../architecture.ts";
import { llama } from "./llama.ts";
import { mistral } from "./mistral.ts";
import { qwen2 } from "./qwen2.ts";
import { qwen3 } from "./qwen3.ts";

export const architectures: readonly Architecture[] = [qwen3, qwen2, llama, mistral];
