// Every language that has a file here. Made by `npm run docs`.
import { cpp } from "./cpp.ts";
import { go } from "./go.ts";
import { java } from "./java.ts";
import { javascript } from "./javascript.ts";
import { lua } from "./lua.ts";
import { python } from "./python.ts";
import { rust } from "./rust.ts";
import { typescript } from "./typescript.ts";

export const languages = { python, cpp, go, java, javascript, lua, rust, typescript };
