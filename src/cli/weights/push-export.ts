// `./whet export push=`: an exported folder into a repository of the hub.
import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { ConfigError } from "../../core/errors.ts";
import { version } from "../../core/program.ts";
import { adapterFiles } from "../../export/adapter.ts";
import { isHubId } from "../../hub/hub.ts";
import { pushFolder, requireToken } from "../../hub/push.ts";
import { withProgress } from "../terminal/progress.ts";

interface Pushed {
  out: string;
  push: string;
  private: boolean;
}

/** Refuses what cannot be pushed before anything is written. */
export function checkPush({ push }: Pushed): void {
  if (push === "") return;
  if (!isHubId(push))
    throw new ConfigError("config/bad-value", `push=${push} is no name of a repository. Write push=OWNER/NAME.`);
  requireToken(push);
}

/** A folder that an earlier export has written: only pushing it is left. */
export const isExport = (out: string) =>
  existsSync(join(out, "README.md")) &&
  [adapterFiles.config, "config.json"].some((name) => existsSync(join(out, name)));

export async function push({ out, push: id, private: isPrivate }: Pushed, signal: AbortSignal): Promise<number> {
  const { url, commit } = await withProgress({ label: "pushing" }, (progress) =>
    pushFolder(out, id, {
      isPrivate,
      summary: `Upload ${basename(resolve(out))} with Whetstone ${version}`,
      signal,
      onFile: (path, done, files) => progress.update(done, { note: `of ${files} large files, ${path}` }),
    }),
  );
  console.log(`${url}: commit ${commit.slice(0, 8)}`);
  return 0;
}
