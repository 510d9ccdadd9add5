/** The tab of findings: the same list as beside the graph, with room to read. */
import { TabPanel } from "../tab_panel";
import { FindingsList } from "./list";

export function Panel() {
  return (
    <TabPanel label="Findings">
      <div className="findings-tab"><FindingsList leads={false} /></div>
    </TabPanel>
  );
}
