/** Where the page begins. */
import { createRoot } from "react-dom/client";
import { givenAnswers } from "./api/given";
import { beginStart, endStart } from "./api/start";
import { App } from "./panels/app";
import { lookUpColors } from "./panels/curves/colors";
import { showTheme } from "./panels/shell/theme_switch";
import { fetchTabs } from "./panels/tabs";
import { beginFindings } from "./state/findings";
import { listenToKeys } from "./state/keys";
import { goLive } from "./state/live";
import { cache } from "./state/resource";
import { whenResting } from "./state/resting";
import { announceSettled, settled } from "./state/settled";
import { watchShown } from "./state/shown";
import "./ui/base.css";

showTheme();
lookUpColors();
beginStart((addresses) => cache.fill(givenAnswers(addresses)));
createRoot(document.getElementById("page") as HTMLElement).render(<App />);
announceSettled(watchShown);
listenToKeys();
goLive();
void settled().then(() => {
  endStart();
  setTimeout(fetchTabs, 300);
  whenResting(beginFindings);
});
