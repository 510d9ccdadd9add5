/** All keys, and what the marks of the page mean. */
import { useEffect, useRef, type ReactNode } from "react";
import { MEANINGS } from "../../model/glossary";
import { KEYS, reach, type KeyEntry } from "../../state/keys";
import { Button, Key } from "../../ui/parts";
import "./help.css";

interface Props {
  readonly keys?: readonly KeyEntry[];
  /** What else is worth knowing; that of recordings if nothing is said. */
  readonly children?: ReactNode;
}

export function Help({ keys = KEYS, children = <OfRecordings /> }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    reach.help = () => dialog.current?.showModal();
    return () => void delete reach.help;
  }, []);
  const close = (): void => dialog.current?.close();
  return (
    <dialog
      ref={dialog}
      className="help"
      aria-label="Keys and help"
      onClick={(event) => event.target === dialog.current && close()}
    >
      <header>
        <h2>Keys</h2>
        <span>
          {reach.guide && <Button onClick={() => { close(); reach.guide?.(); }}>guide</Button>}{" "}
          <Button label="Close" onClick={close}>close</Button>
        </span>
      </header>
      <dl>
        {keys.map(({ keys: own, words }) => (
          <div key={words}>
            <dt>{own.length > 4 ? <KeyRange keys={own} /> : own.map((key) => <Key key={key}>{key}</Key>)}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      {children}
    </dialog>
  );
}

const OfRecordings = () => (
  <>
    <h2>Reading the page</h2>
    <ul>
      <li>Ticks below the curves are recorded steps; longer ones kept raw values. Of older steps fewer are kept.</li>
      <li>
        A choice with a dotted frame does not fit a newer choice, so something else is shown. It
        comes back as soon as it fits.
      </li>
      <li>
        Numbers are shown with three digits. Rest the pointer on a number to see all digits; a
        copy has all of them, too.
      </li>
      <li>The address of the page holds everything that you see. Send it to somebody who has the same recording.</li>
    </ul>
    <h2>Words</h2>
    <dl>
      {Object.entries(MEANINGS).map(([word, sentence]) => (
        <div key={word}>
          <dt>{word}</dt>
          <dd>{sentence}</dd>
        </div>
      ))}
    </dl>
  </>
);

const KeyRange = ({ keys }: { readonly keys: readonly string[] }) => (
  <>
    <Key>{keys[0]}</Key>…<Key>{keys[keys.length - 1]}</Key>
  </>
);
