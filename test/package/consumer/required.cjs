// CommonJS: Node 20.19 and newer require ES modules.
const { ServiceClient } = require("whetstone/tinker");

console.log(typeof ServiceClient);
