/** News from the server while a training runs. */
import type { CatalogNews, FindingsNews, OverviewNews, TrialNews, ViewsNews } from "./types";

export interface Listener {
  trial(news: TrialNews): void;
  catalog(news: CatalogNews): void;
  findings(news: FindingsNews): void;
  overview(news: OverviewNews): void;
  views(news: ViewsNews): void;
  /** The connection was made, or lost; the browser tries again by itself. */
  reachable(is: boolean): void;
}

export function listen(listener: Listener): () => void {
  const source = new EventSource("./api/events");
  const on = <T>(name: string, call: (news: T) => void): void => {
    source.addEventListener(name, (event) => call(JSON.parse((event as MessageEvent<string>).data) as T));
  };
  on<TrialNews>("trial", (news) => listener.trial(news));
  on<CatalogNews>("catalog", (news) => listener.catalog(news));
  on<FindingsNews>("findings", (news) => listener.findings(news));
  on<OverviewNews>("overview", (news) => listener.overview(news));
  on<ViewsNews>("views", (news) => listener.views(news));
  source.onopen = () => listener.reachable(true);
  source.onerror = () => listener.reachable(false);
  return () => source.close();
}
