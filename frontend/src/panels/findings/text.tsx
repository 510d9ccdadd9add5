/** Sentences of checks, as the page shows them. */
import { numbersIn } from "../../model/findings";

/** What stands between backticks is code; numbers have digits of the same width, as everywhere on the page. */
export const Sentence = ({ children }: { readonly children: string }) => (
  <>
    {children.split(/`([^`]+)`/).map((piece, i) =>
      i % 2 ? <code key={i}>{piece}</code> : <Numbers key={i} text={piece} />)}
  </>
);

const Numbers = ({ text }: { readonly text: string }) => (
  <>
    {numbersIn(text).map((piece, i) => (i % 2 ? <span key={i} className="number">{piece}</span> : piece))}
  </>
);
