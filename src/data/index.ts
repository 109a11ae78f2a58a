// `whetstone/data`: problems from JSONL, Parquet, the bundled set or the Hugging Face hub, and the questions made of them.
export { Dataset, type DatasetOptions, type DatasetSummary, describeSummary } from "./dataset.ts";
export { DataError } from "./errors.ts";
export type { TestsCheck } from "./file-index.ts";
export { type LoadOptions, type LoadProgress, loadDataset } from "./load.ts";
export { epochOrder } from "./order.ts";
export type { Problem } from "./problem.ts";
export {
  buildMessages,
  buildQuestion,
  defaultQuestionTemplate,
  type Question,
  type QuestionMessage,
  type QuestionOptions,
  type QuestionTemplate,
  questionTemplateHash,
  readQuestionTemplate,
} from "./question.ts";
export { type DownloadProgress, deepcoderConfigs, deepcoderId, type Split } from "./sources.ts";
