/** The line that asked for an operation, with the code around it. */
import { askTraceCode } from "../../api/trace";
import { useLoaded } from "../../state/resource";
import { Section } from "../../ui/parts";
import { Copy } from "../tensor/copy";
import { shortSource } from "../tensor/header";
import { Why, Words } from "../tensor/words";

export function Code({ label }: { readonly label: string }) {
  const { value: code, problem } = useLoaded(askTraceCode(label));
  if (!code) return problem ? <Why text={problem} /> : null;
  const { file, line, first, lines } = code;
  const where = `${file}:${line}`;
  const indent = Math.min(...lines.filter((text) => text.trim()).map((text) => text.search(/\S/)), 40);
  return (
    <Section
      title="source"
      aside={file && <Copy text={where} label={`Copy ${where}`}>{shortSource(where)}</Copy>}
    >
      {lines.length > 0 && (
        <pre className="trace-code" aria-label={`Code around line ${line}`} tabIndex={0}>
          {lines.map((text, i) => (
            <Line key={i} number={first + i} isHere={first + i === line} text={text.slice(indent)} />
          ))}
        </pre>
      )}
      {code.problem && <p className="label"><Words text={code.problem} /></p>}
    </Section>
  );
}

interface LineProps {
  readonly number: number;
  /** It asked for the operation. */
  readonly isHere: boolean;
  readonly text: string;
}

const Line = ({ number, isHere, text }: LineProps) => (
  <span className={isHere ? "line here" : "line"} aria-current={isHere || undefined}>
    <span className="line-number" aria-hidden="true">{number}</span>
    {text || " "}
    {"\n"}
  </span>
);
