// The shared suite against the embedded jail at both levels.
import { openJail } from "../../src/sandbox/jail.ts";
import { describeSandbox } from "./suite.ts";

describeSandbox("embedded jail", () => openJail({ levels: ["jail"], slots: 2 }), {
  processes: true,
  outputBeforeLimits: true,
  memoryTogether: true,
});
describeSandbox("embedded jail, second level", () => openJail({ levels: ["landlock"], slots: 2 }), {
  processes: false,
  outputBeforeLimits: true,
  memoryTogether: false,
});
