/** Where the page begins. */
import { createRoot } from "react-dom/client";
import { App } from "./panels/app";
import { fetchTabs } from "./panels/tabs";
import { listenToKeys } from "./state/keys";
import { goLive } from "./state/live";
import { announceSettled, settled } from "./state/settled";
import { watchShown } from "./state/shown";
import "./ui/base.css";

createRoot(document.getElementById("page") as HTMLElement).render(<App />);
announceSettled(watchShown);
listenToKeys();
goLive();
void settled().then(() => setTimeout(fetchTabs, 300));
