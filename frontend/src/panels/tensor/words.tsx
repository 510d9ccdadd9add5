/** Sentences in which code stands between backticks. */
import { Empty } from "../../ui/parts";
import type { ReactNode } from "react";

export function Words({ text }: { readonly text: string }) {
  return <>{text.split("`").map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>;
}

/** One sentence that says why nothing is shown, and perhaps what can be done about it. */
export function Why({ text, action }: { readonly text: string; readonly action?: ReactNode }) {
  return (
    <Empty action={action}>
      <Words text={text} />
    </Empty>
  );
}
