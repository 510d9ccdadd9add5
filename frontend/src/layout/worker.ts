/** The layout thread. It remembers levels for as long as the page is open. */
import { composeLayout } from "./compose";
import { LevelMemo } from "./level";
import type { LayoutRequest, LayoutResult } from "./types";

export interface LayoutCall {
  readonly id: number;
  readonly request: LayoutRequest;
}

export interface LayoutAnswer {
  readonly id: number;
  readonly result?: LayoutResult;
  readonly milliseconds?: number;
  readonly error?: string;
}

const memo = new LevelMemo();

self.onmessage = ({ data }: MessageEvent<LayoutCall>) => {
  const post = self.postMessage.bind(self) as (answer: LayoutAnswer, transfer?: Transferable[]) => void;
  try {
    const begin = performance.now();
    const result = composeLayout(data.request, memo);
    const { x, y, width, height, curves, curveStart, back } = result;
    const buffers = [x, y, width, height, curves, curveStart, back].map((array) => array.buffer as ArrayBuffer);
    post({ id: data.id, result, milliseconds: performance.now() - begin }, buffers);
  } catch (problem) {
    post({ id: data.id, error: String(problem) });
  }
};
