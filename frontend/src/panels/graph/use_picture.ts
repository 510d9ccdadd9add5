/** The laid-out picture of a model. The old one stays until the new one is there: nothing flickers. */
import { useEffect, useMemo, useState } from "react";
import { pictureNow, startLayout, type LayoutService, type Picture } from "../../layout/client";
import type { Pins } from "../../layout/sizes";
import type { OpenGroups } from "../../model/folding";
import type { GraphModel } from "../../model/graph";
import { buildScene } from "../../model/scene";
import { beginWork } from "../../state/settled";

/** Pictures of this many boxes are made at once; asking another thread would take a frame longer. */
const SMALL = 60;

let service: LayoutService | null = null;

export interface PictureState {
  readonly picture: Picture | null;
  readonly problem: string | null;
}

export interface CurrentPicture extends PictureState {
  /** False while an older one is shown because its successor is being laid out. */
  readonly current: boolean;
}

export function usePicture(model: GraphModel, open: OpenGroups, pins?: Pins): CurrentPicture {
  const scene = useMemo(() => buildScene(model, open), [model, open]);
  const atOnce = useMemo(() => (scene.items.length <= SMALL ? pictureNow(scene, pins) : null), [scene, pins]);
  const [later, setLater] = useState<PictureState>({ picture: null, problem: null });
  useEffect(() => {
    if (atOnce) return;
    let wanted = true;
    const finish = beginWork();
    service ??= startLayout();
    service
      .picture(scene, pins)
      .then((picture) => {
        if (wanted && picture) setLater({ picture, problem: null });
      })
      .catch((problem: unknown) => {
        if (wanted) setLater({ picture: null, problem: String(problem) });
      })
      .finally(finish);
    return () => {
      wanted = false;
      finish();
    };
  }, [scene, pins, atOnce]);
  const [last, setLast] = useState<Picture | null>(atOnce);
  const picture = atOnce ?? (later.picture?.scene === scene ? later.picture : null);
  if (picture && picture !== last) setLast(picture);
  return { picture: picture ?? last, problem: atOnce ? null : later.problem, current: picture !== null };
}
