/** What nobody wants to hear of: still there, and it can be heard again. */
import { useEffect, useRef, useState } from "react";
import type { SilencedCheck } from "../../api/types";
import { findings } from "../../state/findings";
import { Button } from "../../ui/parts";
import { Sentence } from "./text";

const NOTHING = "finds nothing at the moment";

interface Props {
  readonly trial: string;
  readonly silenced: readonly SilencedCheck[];
}

export function SilencedList({ trial, silenced }: Props) {
  const [problem, setProblem] = useState<string | null>(null);
  const [isOpen, setOpen] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const before = useRef(silenced.length);
  useEffect(() => {
    // Just silenced: the way back is at hand, and the focus is where it was done away with.
    if (silenced.length > before.current) setOpen(true);
    before.current = silenced.length;
  }, [silenced.length]);
  useEffect(() => {
    if (isOpen && document.activeElement === document.body) {
      list.current?.querySelector<HTMLElement>("li:last-child button")?.focus();
    }
  }, [isOpen, silenced.length]);
  if (silenced.length === 0) return null;
  return (
    <details className="silenced" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{silenced.length} silenced</summary>
      <ul ref={list}>
        {silenced.map(({ check, node, findings: hidden }) => (
          <li key={`${check}@${node}`}>
            <span>
              <code>{check}</code> {node === null ? "everywhere" : <>at <code>{node}</code></>}
              <small>
                {hidden.length ? <Sentence>{hidden.map(({ title }) => title).join(", ")}</Sentence> : NOTHING}
              </small>
            </span>
            <Button
              label={`Undo: hear of ${check} ${node === null ? "everywhere" : `at ${node}`} again`}
              onClick={() => void findings.silence(trial, check, node, false).then(setProblem)}
            >
              undo
            </Button>
          </li>
        ))}
      </ul>
      {problem && <p role="alert" className="finding-problem">{problem}</p>}
    </details>
  );
}
