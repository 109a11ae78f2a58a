// What the page asks of its own server, and the live stream of a run. Addresses are relative: the secret part of the link stays in them.
// @ts-check
import { inAddress } from "./text.js";

/** @import { Info, Pulse, Series } from "../info.ts" */

/** An answer that says why there is none. */
export class AskError extends Error {
  /** @param {string} message @param {string} code */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** @param {string} path @param {RequestInit} [options] @returns {Promise<any>} */
export async function ask(path, options = {}) {
  let answer;
  let body;
  try {
    answer = await fetch(`api/${path}`, { ...options, headers: { "content-type": "application/json" } });
    // A refusal need not be JSON; an answer that breaks off is none.
    body = answer.ok ? await answer.json() : await answer.json().catch(() => ({}));
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new AskError("The dashboard's server does not answer: its process has ended, or this machine slept.", "gone");
  }
  if (!answer.ok) throw new AskError(body.message ?? `The server answered ${answer.status}.`, body.code ?? "");
  return body;
}

/** @param {string} run */
export const runPath = (run) => `run/${inAddress(run)}`;

/** Everything known of one run, kept up to date by its stream; whoever draws it listens. */
export class RunStore extends EventTarget {
  /** @param {string} id */
  constructor(id) {
    super();
    this.id = id;
    /** @type {number[]} */ this.steps = [];
    /** @type {Record<string, (number | null)[]>} */ this.columns = {};
    /** @type {Info | null} */ this.info = null;
    /** @type {Pulse | null} */ this.pulse = null;
    /** "connecting", "open", "lost" or "ended". */
    this.connection = "connecting";
    this.stream = new EventSource(`api/${runPath(id)}/live`);
    this.stream.onopen = () => this.#connected("open");
    this.stream.onerror = () => this.#connected(this.connection === "ended" ? "ended" : "lost");
    this.#on("reset", () => {
      this.steps = [];
      this.columns = {};
    });
    this.#on("rows", (data) => this.#rows(data));
    this.#on("info", (data) => {
      this.info = data;
    });
    this.#on("pulse", (data) => {
      this.pulse = data;
    });
    this.#on("bye", () => {
      this.connection = "ended";
      this.stream.close();
    });
    /** @type {number} */ this.scheduled = 0;
  }

  close() {
    this.stream.close();
    cancelAnimationFrame(this.scheduled);
  }

  /** @param {string} name @param {(data: any) => void} take */
  #on(name, take) {
    this.stream.addEventListener(name, (event) => {
      take(JSON.parse(event.data));
      this.#changed();
    });
  }

  /** @param {string} state */
  #connected(state) {
    if (this.connection === state) return;
    this.connection = state;
    this.#changed();
  }

  /** Many events at once are one change. */
  #changed() {
    if (this.scheduled) return;
    const tell = () => {
      this.scheduled = 0;
      this.dispatchEvent(new Event("change"));
    };
    // A page in the background draws nothing until it is looked at.
    this.scheduled = document.hidden ? window.setTimeout(tell, 300) : requestAnimationFrame(tell);
  }

  /** @param {Series} slice */
  #rows({ from, steps, columns }) {
    this.steps.length = from;
    for (const step of steps) this.steps.push(step);
    for (const [name, values] of Object.entries(columns)) {
      let column = this.columns[name];
      if (!column) {
        column = [];
        this.columns[name] = column;
      }
      while (column.length < from) column.push(null);
      column.length = from;
      for (const value of values) column.push(value);
    }
    for (const column of Object.values(this.columns)) while (column.length < this.steps.length) column.push(null);
  }

  /** The last known value of a figure. @param {string} name */
  last(name) {
    const column = this.columns[name] ?? [];
    for (let row = column.length - 1; row >= 0; row--) if (column[row] !== null) return column[row];
    return null;
  }
}
