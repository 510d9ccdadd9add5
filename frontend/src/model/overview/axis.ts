/** One column as an axis: numbers on a straight or logarithmic scale, words one below the other. */
import { shortNumber } from "../numbers";
import { compareCells, type Cell } from "./columns";

export interface ChartAxis {
  readonly label: string;
  /** One for each trial: 0 … 1 from below; NaN where it has none. */
  readonly places: readonly number[];
  readonly ticks: readonly { readonly place: number; readonly text: string }[];
  /** How many different values there are. */
  readonly different: number;
}

const MOST_WORDS = 8;
const LOG_ABOVE = 30; // largest ÷ smallest

export function axisOf(label: string, cells: readonly Cell[]): ChartAxis {
  const there = cells.filter((cell) => cell !== null);
  const different = new Set(there.map(String)).size;
  const isNumeric = there.length > 0 && there.every((cell) => typeof cell === "number");
  return isNumeric ? numeric(label, cells as readonly (number | null)[], different) : words(label, cells, different);
}

function numeric(label: string, cells: readonly (number | null)[], different: number): ChartAxis {
  const finite = cells.filter((cell): cell is number => cell !== null && Number.isFinite(cell));
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const isLog = least > 0 && most / least > LOG_ABOVE;
  const form = isLog ? Math.log : (value: number): number => value;
  const span = form(most) - form(least);
  const place = (cell: number | null): number =>
    cell === null || !Number.isFinite(cell) ? NaN : span > 0 ? (form(cell) - form(least)) / span : 0.5;
  const shares = span > 0 ? [0, 0.5, 1] : [0.5];
  const ticks = finite.length === 0 ? [] : shares.map((share) => {
    const value = form(least) + share * span;
    return { place: share, text: shortNumber(isLog ? Math.exp(value) : value, 2) };
  });
  return { label, places: cells.map(place), ticks, different };
}

function words(label: string, cells: readonly Cell[], different: number): ChartAxis {
  const known = [...new Set(cells.filter((cell) => cell !== null))].sort(compareCells);
  const at = new Map(known.map((word, i) => [word, known.length > 1 ? i / (known.length - 1) : 0.5]));
  const every = Math.ceil(known.length / MOST_WORDS);
  const ticks = known
    .filter((_, i) => i % every === 0)
    .map((word) => ({ place: at.get(word) as number, text: String(word) }));
  return { label, places: cells.map((cell) => (cell === null ? NaN : (at.get(cell) as number))), ticks, different };
}
