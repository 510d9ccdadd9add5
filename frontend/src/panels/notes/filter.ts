/** Notes of several trials, together in the order of their steps. */
import type { Note } from "../../api/types";

export interface TrialNotes {
  readonly trial: string;
  readonly color: string;
  readonly notes: readonly Note[];
}

export interface NoteRow extends Note {
  readonly trial: string;
  readonly color: string;
}

/** Before the first step a note has none. */
export const hasStep = (note: Note): boolean => note.step >= 0;

/** All words must occur; `120`, `>100` and `100-200` are steps as well. */
export function filterNotes(trials: readonly TrialNotes[], query: string): NoteRow[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = trials.flatMap(({ trial, color, notes }) => notes.map((note) => ({ ...note, trial, color })));
  return rows
    .filter((row) => words.every((word) => row.text.toLowerCase().includes(word) || meansStep(word, row.step)))
    .sort((a, b) => a.step - b.step || a.time - b.time);
}

function meansStep(word: string, step: number): boolean {
  const span = /^(\d+)(?:-|–|\.\.)(\d+)$/.exec(word);
  if (span) return step >= Number(span[1]) && step <= Number(span[2]);
  const bound = /^([<>])=?(\d+)$/.exec(word);
  if (bound) return bound[1] === ">" ? step >= Number(bound[2]) : step <= Number(bound[2]);
  return word === String(step);
}

/** Text in pieces: every second one is what a word of the filter found. */
export function pieces(text: string, query: string): string[] {
  const words = query.split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return [text];
  return text.split(new RegExp(`(${words.join("|")})`, "i"));
}
