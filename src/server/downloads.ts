// Links to a checkpoint's files. They carry their own permission, for a while: whoever has one needs no key.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  apiPrefix,
  archiveResponse,
  checkpointIdOf,
  type ExternalWeightsUrls,
  encode,
  pathOf,
} from "../protocol/index.ts";
import { route } from "../protocol/route.ts";
import type { App } from "./app.ts";
import { filesBelow, tarOf } from "./archive.ts";
import type { CheckpointRecord } from "./checkpoints.ts";
import { ServerError } from "./errors.ts";
import { Answer, jsonAnswer } from "./http.ts";
import { type Call, serve } from "./route.ts";

const lifetimeMs = 15 * 60_000;
const linkKey = randomBytes(32);

/** Not part of the protocol: where the links point. */
const downloadRoutes = {
  download: route("GET", "/training_runs/{run}/checkpoints/{checkpoint}/download"),
  downloadFile: route("GET", "/training_runs/{run}/checkpoints/{checkpoint}/files/{file}"),
};

export const servedDownloadRoutes = serve(
  downloadRoutes,
  {
    download(app, _message, call) {
      const record = permitted(app, call, "");
      return new Answer({
        status: 200,
        contentType: "application/x-tar",
        headers: { "content-disposition": `attachment; filename="${record.name}.tar"` },
        body: tarOf(app.checkpoints.filesDir(record)),
      });
    },
    async downloadFile(app, _message, call) {
      const file = call.parameter("file");
      const record = permitted(app, call, file);
      const path = join(app.checkpoints.filesDir(record), file);
      const { size } = await stat(path);
      return new Answer({
        status: 200,
        contentType: "application/octet-stream",
        headers: { "content-length": String(size) },
        body: createReadStream(path),
      });
    },
  },
  { open: ["download", "downloadFile"] },
);

/** Points at a tar of the checkpoint's files. */
export function archiveAnswer(record: CheckpointRecord, call: Call): Answer {
  const expires = new Date(Date.now() + lifetimeMs);
  const url = linkTo(record, call, expires, "");
  return jsonAnswer(encode(archiveResponse, { url, expires }), 302, { location: url, expires: expires.toUTCString() });
}

/** A link to each of the checkpoint's files. */
export async function fileUrls(app: App, record: CheckpointRecord, call: Call): Promise<ExternalWeightsUrls> {
  const expires = new Date(Date.now() + lifetimeMs);
  const names = await filesBelow(app.checkpoints.filesDir(record));
  return { urls: Object.fromEntries(names.sort().map((name) => [name, linkTo(record, call, expires, name)])), expires };
}

function linkTo(record: CheckpointRecord, call: Call, expires: Date, file: string): string {
  const route = file === "" ? downloadRoutes.download : downloadRoutes.downloadFile;
  const path = pathOf(route, { run: record.runId, checkpoint: checkpointIdOf(record.kind, record.name), file });
  const until = expires.getTime();
  return `${call.origin}${apiPrefix}${path}?expires=${until}&signature=${signatureOf(record.uid, until, file)}`;
}

/** The checkpoint that a link is for. A link names one file, and no other. */
function permitted(app: App, call: Call, file: string): CheckpointRecord {
  const expires = call.integer("expires", 0, Number.MAX_SAFE_INTEGER);
  const given = Buffer.from(call.query.get("signature") ?? "", "hex");
  let record: CheckpointRecord | undefined;
  try {
    record = app.checkpoints.named(call.parameter("run"), call.parameter("checkpoint"));
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
  }
  const expected = Buffer.from(signatureOf(record?.uid ?? "", expires, file), "hex");
  if (record && expires >= Date.now() && given.length === expected.length && timingSafeEqual(given, expected))
    return record;
  throw new ServerError(
    403,
    "server/download-link",
    "This download link is wrong or has expired. Ask for the archive again.",
  );
}

function signatureOf(uid: string, expires: number, file: string): string {
  return createHmac("sha256", linkKey).update(`${uid}\0${expires}\0${file}`).digest("hex");
}
