/** The frame of the page. */
import { Empty } from "../ui/parts";

export function App() {
  return (
    <main style={{ height: "100%" }}>
      <Empty>
        This page shows recordings of training runs. Start it with <code>endoscope show DIR</code>.
      </Empty>
    </main>
  );
}
