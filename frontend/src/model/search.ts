/** Finding nodes and groups by a few letters of their names. */
import type { GraphModel } from "./graph";

export interface Found {
  readonly node: number; // -1 for a group
  readonly group: number; // -1 for a node
  readonly name: string;
  readonly score: number;
}

/** Best first. Every word must occur, letters in order; whole pieces at the end of a name count most. */
export function searchGraph(model: GraphModel, query: string, most = 50): Found[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const found: Found[] = [];
  const consider = (name: string, node: number, group: number): void => {
    const score = scoreAll(words, name.toLowerCase());
    if (score > 0) found.push({ node, group, name, score });
  };
  model.nodes.forEach((node) => consider(node.name, node.id, -1));
  model.groups.forEach((group) => {
    // A module with an output of its own name is found as that node already.
    if (group.id > 0 && !model.byName.has(group.address)) consider(group.address, -1, group.id);
  });
  return found.sort((a, b) => b.score - a.score || a.name.length - b.name.length).slice(0, most);
}

function scoreAll(words: readonly string[], name: string): number {
  let total = 0;
  for (const word of words) {
    const score = scoreOf(word, name);
    if (score === 0) return 0;
    total += score;
  }
  return total;
}

export function scoreOf(word: string, name: string): number {
  if (name === word) return 100;
  const at = name.lastIndexOf(word);
  if (at >= 0) {
    const startsPiece = at === 0 || /[._\s/]/.test(name[at - 1]);
    const endsPiece = at + word.length === name.length;
    return 40 + (startsPiece ? 20 : 0) + (endsPiece ? 15 : 0) + (10 * word.length) / name.length;
  }
  return lettersInOrder(word, name) ? 10 + (10 * word.length) / name.length : 0;
}

function lettersInOrder(word: string, name: string): boolean {
  let at = 0;
  for (const letter of name) if (letter === word[at]) at++;
  return at >= word.length;
}
