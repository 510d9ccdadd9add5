/** All keys, and what the marks of the page mean. */
import { useEffect, useRef } from "react";
import { KEYS, reach } from "../../state/keys";
import { Button, Key } from "../../ui/parts";

export function Help() {
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
        <Button label="Close" onClick={close}>close</Button>
      </header>
      <dl>
        {KEYS.map(({ keys, words }) => (
          <div key={words}>
            <dt>{keys.length > 4 ? <KeyRange keys={keys} /> : keys.map((key) => <Key key={key}>{key}</Key>)}</dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <h2>Reading the page</h2>
      <ul>
        <li>Ticks below the curves are recorded steps; longer ones kept raw values. Older ones are thinned out.</li>
        <li>A choice with a dotted frame had to give way to a newer one. It comes back as soon as it is possible.</li>
        <li>Numbers have three digits; hover for all of them, and copy to get all of them.</li>
        <li>The address holds everything on screen: send it to somebody who has the same recording.</li>
      </ul>
    </dialog>
  );
}

const KeyRange = ({ keys }: { readonly keys: readonly string[] }) => (
  <>
    <Key>{keys[0]}</Key>…<Key>{keys[keys.length - 1]}</Key>
  </>
);
