// Shows outages while a run goes on: one line when one is noticed, then the live line of a terminal, or further lines ever more rarely,
// and one line when it is over.
import { describeOutage, type OutageNews } from "../core/outage.ts";
import type { Display } from "./display.ts";
import type { Logger } from "./log.ts";

/** Reports outages; `then` says what happens when one is waited for no longer. */
export function outageReporter(logger: Logger, display: Display, then: string): (news: OutageNews) => void {
  const away = new Set<string>();
  return (news) => {
    const text = describeOutage(news, then);
    if (news.state === "back") {
      away.delete(news.what);
      display.notice("");
      logger.info(text);
      return;
    }
    display.notice(text);
    if (!news.due) return;
    if (display.live && away.has(news.what)) logger.detail(text);
    else logger.warn(text);
    away.add(news.what);
  };
}

/** The longest outage in milliseconds, of outage_patience. */
export const patienceOf = (seconds: number): number => (seconds > 0 ? seconds * 1000 : Number.POSITIVE_INFINITY);
