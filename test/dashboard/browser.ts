// A real Chromium for tests, and the pages of a dashboard in it. Every request that a page makes is written down.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { findOnPath } from "../../src/core/languages/machine.ts";

export const chromiumPath = ["chromium", "chromium-browser", "google-chrome"].map(findOnPath).find(Boolean);
if (!chromiumPath) console.warn("skipping the dashboard's pages: no chromium on PATH (Debian: apt install chromium)");

export const launch = (): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath!,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });

export interface Watched {
  page: Page;
  /** Addresses of every request. */
  requests: string[];
  /** What the page complained of: errors, refusals of its own policy. */
  complaints: string[];
}

/** A page in a context of its own. */
export async function watchedPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    colorScheme: "light",
    reducedMotion: "reduce", // without a graphics card every frame of an animation is work
    ...options,
  });
  const page = await context.newPage();
  const watched: Watched = { page, requests: [], complaints: [] };
  context.on("request", (request) => watched.requests.push(request.url()));
  page.on("pageerror", (error) => watched.complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    watched.complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A server that has ended is part of what is tested.
    if (
      message.type() === "error" &&
      !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|Failed to load resource/.test(message.text())
    )
      watched.complaints.push(`console: ${message.text()}`);
  });
  return watched;
}

/** Goes to a place of the page by its address and waits until the view is there. */
export async function visit(page: Page, url: string, hash: string): Promise<void> {
  await page.goto(`${url}${hash}`);
  await page.locator("main .view").waitFor({ timeout: 60_000 });
}

/** Another place of the dashboard's page that is open, as its links lead there: the view is a new one, the page stays. */
export async function follow(page: Page, hash: string): Promise<void> {
  await page.evaluate(
    `document.querySelector("main .view").dataset.left = "yes"; location.hash = ${JSON.stringify(hash)}`,
  );
  await page.locator("main .view:not([data-left])").waitFor({ timeout: 60_000 });
}

/** How far the page is wider than its window. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate<number>("document.documentElement.scrollWidth - document.documentElement.clientWidth");
