// The same suite through HTTP: a Sandbox Fusion client, our server, the jail behind it.
import { openFusion } from "../../src/sandbox/fusion/fusion.ts";
import { startFusionServer } from "../../src/sandbox/fusion/server.ts";
import { openJail } from "../../src/sandbox/jail.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { describeSandbox } from "./suite.ts";

async function open(): Promise<Sandbox> {
  const jail = await openJail({ slots: 2 });
  const server = await startFusionServer({ jail, port: 0, concurrency: 2 });
  const fusion = await openFusion({ url: server.url });
  const close = async () => {
    await fusion.close();
    await server.close();
    await jail.close();
  };
  return {
    description: fusion.description,
    run: fusion.run.bind(fusion),
    supports: fusion.supports.bind(fusion),
    close,
  };
}

describeSandbox("Sandbox Fusion over the embedded jail", open, {
  processes: true,
  outputBeforeLimits: false,
  memoryTogether: false,
});
