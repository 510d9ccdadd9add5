/** The frame of the page. */
import { Empty } from "../ui/parts";

export function App() {
  return (
    <main style={{ height: "100%" }}>
      <Empty>
        The panels of this page are not finished. Read the recording with <code>endoscope.open(path)</code>.
      </Empty>
    </main>
  );
}
