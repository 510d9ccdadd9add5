/** Sentences with numbers in them. */
import { numbersIn } from "../../model/findings";

/** Numbers as everywhere on the page: with digits of the same width. */
export const Sentence = ({ children }: { readonly children: string }) => (
  <>
    {numbersIn(children).map((piece, i) => (i % 2 ? <span key={i} className="number">{piece}</span> : piece))}
  </>
);

/** Text with names of metrics and commands between backticks, as checks write them. */
export const Coded = ({ children }: { readonly children: string }) => (
  <>{children.split(/`([^`]+)`/).map((piece, i) => (i % 2 ? <code key={i}>{piece}</code> : piece))}</>
);
