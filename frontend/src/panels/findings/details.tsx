/** Everything about one finding: what was measured, where else, what it may come from, what to try. */
import { useState, type ReactNode } from "react";
import type { Finding } from "../../api/types";
import { sourceName, strengthWords, timeWords } from "../../model/findings";
import { wholeNumber } from "../../model/numbers";
import { findings } from "../../state/findings";
import { act } from "../../state/page";
import { NumberText } from "../../ui/number";
import { Button } from "../../ui/parts";
import { wishToSee } from "../graph/reveal";
import { Sentence } from "./text";

interface Props {
  readonly trial: string;
  readonly finding: Finding;
  /** Number of the last recorded step. */
  readonly last: number | null;
  readonly onShow: () => void;
}

export function Details({ trial, finding, last, onShow }: Props) {
  const { value, threshold, samples, causes, remedies, also, source } = finding;
  const strength = strengthWords(finding);
  const isMeasured = value !== null || threshold !== null;
  return (
    <div className="finding-details">
      <dl className="finding-facts">
        {isMeasured && (
          <Fact name="measured">
            <NumberText value={value} missing="not finite" />
            {threshold !== null && <> · threshold <NumberText value={threshold} /></>}
          </Fact>
        )}
        {strength && <Fact name={finding.usual ? "usual" : "strength"}><Sentence>{strength}</Sentence></Fact>}
        <Fact name="seen">{timeWords(finding, last)}</Fact>
        {samples.length > 0 && <Fact name="samples">{some(samples.map(wholeNumber), 8)}</Fact>}
        {source && <Fact name="source"><code title={source}>{sourceName(source)}</code></Fact>}
        {also.length > 0 && <Fact name="also at"><Nodes trial={trial} nodes={also} /></Fact>}
      </dl>
      <Reasons title="It may come from" list={causes} />
      <Reasons title="What to try" list={remedies} />
      <Actions trial={trial} finding={finding} onShow={onShow} />
    </div>
  );
}

const Fact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

function some(words: readonly string[], most: number): string {
  const more = words.length - most;
  return words.slice(0, most).join(", ") + (more > 0 ? ` and ${wholeNumber(more)} more` : "");
}

const FEW_NODES = 5;

/** Other nodes with the same symptom, each a way there. */
function Nodes({ trial, nodes }: { readonly trial: string; readonly nodes: readonly string[] }) {
  const [all, setAll] = useState(false);
  const go = (node: string): void => {
    act.page({ tab: "graph" }, { transient: true });
    act.choose({ trial, node });
    wishToSee(node);
  };
  return (
    <>
      {nodes.slice(0, all ? nodes.length : FEW_NODES).map((node, i) => (
        <span key={node}>
          {i > 0 && ", "}
          <button type="button" className="finding-link" onClick={() => go(node)}>{node}</button>
        </span>
      ))}
      {!all && nodes.length > FEW_NODES && (
        <>
          {" "}
          <button type="button" className="finding-link" onClick={() => setAll(true)}>
            and {wholeNumber(nodes.length - FEW_NODES)} more
          </button>
        </>
      )}
    </>
  );
}

function Reasons({ title, list }: { readonly title: string; readonly list: readonly string[] }) {
  if (list.length === 0) return null;
  return (
    <>
      <h4>{title}</h4>
      <ul>{list.map((reason) => <li key={reason}><Sentence>{reason}</Sentence></li>)}</ul>
    </>
  );
}

function Actions({ trial, finding, onShow }: Omit<Props, "last">) {
  const { check, node } = finding;
  const [problem, setProblem] = useState<string | null>(null);
  const silence = (where: string | null): void => {
    void findings.silence(trial, check, where, true).then(setProblem);
  };
  return (
    <div className="finding-actions">
      {finding.link && <Button onClick={onShow} title="Set everything so that this can be seen">show</Button>}
      {node && (
        <Button onClick={() => silence(node)} title={`Never report ${check} at ${node} again in this trial`}>
          silence here
        </Button>
      )}
      <Button onClick={() => silence(null)} title={`Never report ${check} again in this trial`}>
        {node ? "silence everywhere" : "silence"}
      </Button>
      {problem && <p role="alert" className="finding-problem">{problem}</p>}
    </div>
  );
}
