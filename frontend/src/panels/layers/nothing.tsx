/** What is said where there is nothing to show, with the line that records it. */
import { Empty } from "../../ui/parts";

export function NothingHere({ kind }: { readonly kind: string }) {
  if (kind === "watch") {
    return (
      <Empty>
        No tensors were recorded in this trial, only metrics. Record them with <code>run.watch(model, optimizer)</code>.
      </Empty>
    );
  }
  if (kind.startsWith("gradient")) {
    return (
      <Empty>
        No gradient was recorded here. <code>run.watch(model)</code> records gradients of steps whose loss calls
        <code>backward()</code>.
      </Empty>
    );
  }
  if (kind === "update") {
    return (
      <Empty>
        No update was recorded. <code>run.watch(model, optimizer)</code> with the optimizer records them.
      </Empty>
    );
  }
  return <Empty>Nothing of this kind was recorded: choose other rows, another kind of value, or another trial.</Empty>;
}
