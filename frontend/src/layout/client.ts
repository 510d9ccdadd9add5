/** Asks the layout thread for pictures of scenes. */
import type { Scene } from "../model/scene";
import { composeLayout } from "./compose";
import { LevelMemo } from "./level";
import { layoutRequest, type Pins } from "./sizes";
import type { LayoutResult } from "./types";
import type { LayoutAnswer, LayoutCall } from "./worker";

/** A scene with a place for everything in it. */
export interface Picture {
  readonly scene: Scene;
  readonly layout: LayoutResult;
  /** Time that the layout took in its thread. */
  readonly milliseconds: number;
}

export interface LayoutService {
  /** Resolves to null if a later call has overtaken this one: only the newest picture is worth drawing. */
  picture(scene: Scene, pins?: Pins): Promise<Picture | null>;
  close(): void;
}

type Waiting = { readonly resolve: (answer: LayoutAnswer | null) => void; readonly reject: (problem: Error) => void };

export function startLayout(): LayoutService {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "layout" });
  const waiting = new Map<number, Waiting>();
  let newest = 0;
  worker.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error !== undefined) call?.reject(new Error(data.error));
    else call?.resolve(data.id === newest ? data : null);
  };
  worker.onerror = (event) => {
    for (const call of waiting.values()) call.reject(new Error(event.message || "the layout thread has failed"));
    waiting.clear();
  };
  return {
    async picture(scene, pins) {
      const id = ++newest;
      const answer = await new Promise<LayoutAnswer | null>((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, request: layoutRequest(scene, pins) } satisfies LayoutCall);
      });
      if (!answer?.result) return null;
      return { scene, layout: answer.result, milliseconds: answer.milliseconds ?? 0 };
    },
    close: () => worker.terminate(),
  };
}

/** The same on the calling thread: for tests and for small pictures where a round trip is not worth it. */
export function pictureNow(scene: Scene, pins?: Pins, memo: LevelMemo = new LevelMemo()): Picture {
  const begin = performance.now();
  const layout = composeLayout(layoutRequest(scene, pins), memo);
  return { scene, layout, milliseconds: performance.now() - begin };
}
