// Runs with every test file. What makes folders may be a module that several files share, which is loaded once.
import { afterAll } from "vitest";
import { removeFolders } from "./support/folders.ts";

afterAll(removeFolders);
