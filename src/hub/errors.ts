import { WhetstoneError } from "../core/errors.ts";

/** The hub cannot be reached, refuses, or sends something else than it announced. */
export class HubError extends WhetstoneError {}
