// One training run in this process, with its event loop watched: the arguments are those of `./whet train`. Prints its exit code, the
// lag and the most memory it held as JSON.
import { command } from "../src/cli/commands/train.ts";
import { LoopLag } from "./lag.ts";

const lag = new LoopLag();
lag.start();
const code = await command.run(process.argv.slice(2));
console.log(JSON.stringify({ code, ...lag.stop(), peakBytes: 1024 * process.resourceUsage().maxRSS }));
