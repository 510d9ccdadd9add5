/** What the table of trials needs to know of one; the api has the same, and more. */

export interface OverviewTrial {
  readonly name: string;
  readonly known: "unread" | "read" | "broken";
  readonly created: number;
  readonly steps: number;
  readonly trainedTo: number | null;
  readonly cost: number;
  readonly bytes: number;
  readonly config: Readonly<Record<string, unknown>>;
  readonly metrics: readonly {
    readonly name: string; readonly last: number; readonly lowest: number; readonly highest: number;
  }[];
}
