/** One cause as one entry of the list; opened, it tells everything, and what probably follows from it. */
import { useEffect, useRef } from "react";
import type { Finding } from "../../api/types";
import { sentenceOf, sourceName, timeWords, type Entry } from "../../model/findings";
import { wholeNumber } from "../../model/numbers";
import { findings } from "../../state/findings";
import { Details } from "./details";
import { Mark } from "./mark";
import { Sentence } from "./text";
import type { Show } from "./use_entries";

export interface EntryProps {
  readonly trial: string;
  readonly entry: Entry;
  /** Chosen one of this trial. */
  readonly chosen: string | null;
  readonly last: number | null;
  readonly show: Show;
  /** A click also leads to what shows it: the graph is beside the list. */
  readonly leads: boolean;
}

export function EntryItem({ trial, entry, chosen, last, show, leads }: EntryProps) {
  const { finding, followers } = entry;
  const isChosen = chosen === finding.id;
  const isOpen = isChosen || followers.some(({ id }) => id === chosen);
  const item = useRevealed(isOpen);
  return (
    <li ref={item} className={`finding ${finding.severity}${isOpen ? " open" : ""}`}>
      <Head {...{ trial, finding, isChosen, isOpen, show, leads }} />
      <p className="finding-detail"><Sentence>{finding.detail}</Sentence></p>
      {!isOpen && <Meta finding={finding} last={last} followers={followers.length} />}
      {isOpen && <Details {...{ trial, finding, last }} onShow={() => show(trial, finding)} />}
      {isOpen && followers.length > 0 && (
        <>
          <h4 className="finding-followers">What probably follows from it</h4>
          <ol>
            {followers.map((follower) => (
              <Follower key={follower.id} {...{ trial, chosen, last, show, leads }} finding={follower} />
            ))}
          </ol>
        </>
      )}
    </li>
  );
}

/** Scrolls as little as needed when it becomes the chosen one elsewhere, as by a key. */
function useRevealed(isOpen: boolean) {
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isOpen && item.current?.checkVisibility()) item.current.scrollIntoView({ block: "nearest" });
  }, [isOpen]);
  return item;
}

interface HeadProps extends Pick<EntryProps, "trial" | "show" | "leads"> {
  readonly finding: Finding;
  readonly isChosen: boolean;
  readonly isOpen: boolean;
}

function Head({ trial, finding, isChosen, isOpen, show, leads }: HeadProps) {
  const press = (): void => {
    if (isChosen) findings.open(trial, null);
    else if (leads && finding.link) show(trial, finding);
    else findings.open(trial, finding.id);
  };
  return (
    <h3>
      <button type="button" aria-expanded={isOpen} aria-current={isChosen || undefined} onClick={press}>
        <Mark severity={finding.severity} />
        <span className="finding-title"><Sentence>{sentenceOf(finding.title)}</Sentence></span>
      </button>
    </h3>
  );
}

interface MetaProps {
  readonly finding: Finding;
  readonly last: number | null;
  readonly followers: number;
}

function Meta({ finding, last, followers }: MetaProps) {
  const also = finding.also.length;
  const words = [
    timeWords(finding, last),
    finding.source && sourceName(finding.source),
    also > 0 && `also at ${wholeNumber(also)} ${also === 1 ? "node" : "nodes"}`,
    followers > 0 && `${wholeNumber(followers)} ${followers === 1 ? "follows" : "follow"} from it`,
  ];
  return <p className="finding-meta">{words.filter(Boolean).join(" · ")}</p>;
}

function Follower({ trial, finding, chosen, last, show, leads }: Omit<EntryProps, "entry"> & { finding: Finding }) {
  const isChosen = chosen === finding.id;
  const item = useRevealed(isChosen);
  return (
    <li ref={item} className={`finding follower ${finding.severity}${isChosen ? " open" : ""}`}>
      <Head {...{ trial, finding, isChosen, isOpen: isChosen, show, leads }} />
      {isChosen && (
        <>
          <p className="finding-detail"><Sentence>{finding.detail}</Sentence></p>
          <Details {...{ trial, finding, last }} onShow={() => show(trial, finding)} />
        </>
      )}
    </li>
  );
}
