/** Where the page begins. */
import { createRoot } from "react-dom/client";
import { beginStart, endStart } from "./api/start";
import { App } from "./panels/app";
import { fetchTabs } from "./panels/tabs";
import { beginFindings } from "./state/findings";
import { listenToKeys } from "./state/keys";
import { goLive } from "./state/live";
import { announceSettled, settled } from "./state/settled";
import { watchShown } from "./state/shown";
import "./ui/base.css";

beginStart();
createRoot(document.getElementById("page") as HTMLElement).render(<App />);
announceSettled(watchShown);
listenToKeys();
goLive();
void settled().then(() => {
  endStart();
  setTimeout(fetchTabs, 300);
  setTimeout(beginFindings, 500);
});
