// The libraries that the server hands to the page, for the type check.
declare module "*/uPlot.esm.js" {
  export { default } from "uplot";
}
declare module "*/diff/line.js" {
  export { diffLines } from "diff";
}
declare module "*/diff/base.js" {
  export { Diff as default } from "diff";
}
