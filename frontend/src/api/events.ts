/** News from the server while a training runs: server-sent events, read by hand because they need a header. */
import { tokenHeaders } from "./token";
import type { CatalogNews, FindingsNews, OverviewNews, TrialNews, ViewsNews } from "./types";

export interface Listener {
  trial(news: TrialNews): void;
  catalog(news: CatalogNews): void;
  findings(news: FindingsNews): void;
  overview(news: OverviewNews): void;
  views(news: ViewsNews): void;
  /** The connection was made, or lost; it is tried again by itself. */
  reachable(is: boolean): void;
}

const AGAIN_MS = 2000;

export function listen(listener: Listener): () => void {
  const stop = new AbortController();
  void follow(listener, stop.signal);
  return () => stop.abort();
}

async function follow(listener: Listener, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const answer = await fetch("./api/events", { headers: tokenHeaders(), signal });
      if (answer.ok && answer.body) {
        listener.reachable(true);
        await read(answer.body, listener);
      }
    } catch {
      // it has ended, or there is none
    }
    if (signal.aborted) return;
    listener.reachable(false);
    await new Promise((go) => setTimeout(go, AGAIN_MS));
  }
}

async function read(body: ReadableStream<Uint8Array>, listener: Listener): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (text + value.replaceAll("\r\n", "\n")).split("\n\n");
    text = whole.pop() ?? "";
    for (const event of whole) tell(event, listener);
  }
}

/** One event: `event:` says what it is about, `data:` what is new. Comments keep the connection open. */
export function tell(event: string, listener: Listener): void {
  const of = (name: string): string =>
    event.split("\n").filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim())
      .join("\n");
  const [name, data] = [of("event"), of("data")];
  if (!data) return;
  const news = JSON.parse(data) as never;
  if (name === "trial") listener.trial(news);
  else if (name === "catalog") listener.catalog(news);
  else if (name === "findings") listener.findings(news);
  else if (name === "overview") listener.overview(news);
  else if (name === "views") listener.views(news);
}
