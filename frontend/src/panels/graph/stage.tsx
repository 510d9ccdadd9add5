/** The middle of the page: the graph, its legend, its map, and everything that can be done to it by hand. */
import {
  useCallback, useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject,
} from "react";
import { wholeArea, type Camera } from "../../draw/camera";
import {
  graphState, NOTHING_SELECTED, type GraphInput, type GraphSelection, type GraphState,
} from "../../draw/graph_state";
import { GraphView } from "../../draw/graph_view";
import type { Hit } from "../../draw/hit";
import { cameraFromMinimap, Minimap } from "../../draw/minimap";
import { onThemeChange, pageTheme } from "../../draw/theme";
import { walk, type Direction } from "../../draw/walking";
import { groupsAround, toggle, type OpenGroups } from "../../model/folding";
import type { Marks } from "../../model/findings";
import type { GraphModel } from "../../model/graph";
import type { Heat, HeatScale } from "../../model/heat";
import type { History } from "../../model/history";
import { pinAt, type Picture, type Scene } from "../../model/scene";
import type { Layout } from "../../api/types";
import { Button, Empty } from "../../ui/parts";
import { Tooltip } from "../../ui/tooltip";
import { BoxNote } from "./box_note";
import "./graph.css";
import { Legend } from "./legend";
import { takeFocusWish } from "./reveal";
import { GraphTwin } from "./twin";

export interface GraphStageProps {
  readonly model: GraphModel;
  /** The last one that was laid out; null while there is none. */
  readonly picture: Picture | null;
  /** Why there is none. */
  readonly problem?: string | null;
  /** False while its successor is being laid out. */
  readonly current: boolean;
  readonly open: OpenGroups;
  readonly onOpen: (open: Set<string>) => void;
  readonly selection?: GraphSelection;
  /** `record` is the tensor that was pointed at, -1 if only the node was. */
  readonly onSelect: (node: number, record: number) => void;
  readonly heat?: Heat | null;
  readonly scale?: HeatScale | null;
  readonly allEdges?: boolean;
  readonly present?: Uint8Array | null;
  readonly marks?: Marks | null;
  readonly whole?: GraphInput["whole"];
  readonly history?: History | null;
  readonly apart?: Uint8Array | null;
  readonly shapeAt?: GraphInput["shapeAt"];
  readonly pins?: Layout["pins"];
  /** Where the camera begins: x, y, scale; null: everything is fitted into view. */
  readonly camera?: readonly number[] | null;
  readonly onCamera?: (camera: readonly number[] | null) => void;
  /** A node that somebody wants to see; the stage moves when this changes, but not for clicks of its own. */
  readonly wanted?: WantedNode;
  /** The first picture shows that node, too, unless the camera has a place. */
  readonly beginsThere?: boolean;
  /** Boxes are being moved by hand: every drag of a box puts it somewhere else. */
  readonly arranging?: boolean;
  /** A box was put somewhere. `key` is that of its scene item. Without this, boxes cannot be moved. */
  readonly onPlace?: (key: string, place: readonly [number, number]) => void;
  /** What the colours show: beside the scale. */
  readonly heatWords?: string;
  /** Shows everything: handed out so that a key of the page can do it. */
  readonly fitRef?: RefObject<(() => void) | null>;
  /** Controls over the upper edge. */
  readonly children?: ReactNode;
  /** Milliseconds of every frame and layout, for whoever measures. */
  readonly onPaint?: (milliseconds: number) => void;
}

export interface WantedNode {
  readonly name: string;
  /** Another one is another wish, also for the same node. */
  readonly count: number;
}

const ARROWS: Record<string, Direction> = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down",
};

export function GraphStage(props: GraphStageProps) {
  const { model, picture, problem = null, current, children } = props;
  const { heat = null, scale = null, allEdges = false, present = null, marks = null } = props;
  const { history = null, apart = null, shapeAt = null, whole = null } = props;
  const selection = props.selection ?? NOTHING_SELECTED;
  const [theme, setTheme] = useState(pageTheme);
  useEffect(() => onThemeChange(() => setTheme(pageTheme())), []);

  const shown = useGraphState(model, {
    picture, theme, heat, scale, selection, allEdges, present, marks, history, apart, shapeAt, whole,
  });

  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<HTMLCanvasElement>(null);
  const view = useRef<GraphView>(null);
  const latest = useRef(props);
  latest.current = props;
  const [pointed, setPointed] = useState<{ hit: Hit; x: number; y: number } | null>(null);

  const fold = useCallback((item: number) => {
    const { model: graph, open: before, selection: chosen } = latest.current;
    const scene = view.current?.current?.picture.scene;
    if (scene) latest.current.onOpen(toggle(graph, before, addressToFold(scene, item, chosen?.node ?? -1)));
  }, []);
  useEffect(() => {
    const minimap = new Minimap(map.current as HTMLCanvasElement);
    const created = new GraphView(canvas.current as HTMLCanvasElement, {
      select: (node, record) => choose.current(node, record),
      fold,
      place: (item, x, y) => {
        const shown = created.current?.picture;
        const { pins = {}, onPlace } = latest.current;
        if (shown) onPlace?.(shown.scene.items[item].key, pinAt(shown, pins, item, x, y));
      },
      moved: (camera) => keepCamera(camera, latest.current.onCamera),
      hover: (hit, x, y) => setPointed(hit && hit.part !== "inside" ? { hit, x, y } : null),
      painted: (milliseconds) => {
        latest.current.onPaint?.(milliseconds);
        if (created.current) minimap.paint(created.current, created.currentCamera, created.size);
      },
    });
    view.current = created;
    const [x, y, scale] = latest.current.camera ?? [];
    if (scale !== undefined) created.look({ x, y, scale });
    if (latest.current.fitRef) latest.current.fitRef.current = () => created.fit(true);
    return () => created.close();
  }, [fold]);
  useEffect(() => {
    view.current?.arrange(props.arranging ?? false);
  }, [props.arranging]);

  // What was chosen here is in sight already; what was chosen elsewhere is brought into view once it is laid out.
  const seen = useRef(props.beginsThere && !props.camera ? undefined : props.wanted);
  const choose = useRef(props.onSelect);
  choose.current = (node, record) => {
    const { wanted } = latest.current;
    if (wanted) seen.current = { name: latest.current.model.nodes[node].name, count: wanted.count };
    latest.current.onSelect(node, record);
  };

  useEffect(() => {
    // A picture of another model lingers until its successor is laid out; selections do not fit it.
    if (!shown || !picture || !view.current || picture.scene.model !== model) return;
    view.current.show(shown);
    if (takeFocusWish()) canvas.current?.focus({ preventScroll: true });
    const { wanted } = props;
    const isSeen = !wanted || (seen.current?.name === wanted.name && seen.current.count === wanted.count);
    if (isSeen || !current) return;
    seen.current = wanted;
    const node = model.byName.get(wanted.name);
    if (node !== undefined) view.current.reveal(picture.scene.itemOfNode[node]);
  }, [shown, picture, model, current, props.wanted]);

  // What is fitted or revealed must not end up below the controls, whose height depends on how they wrap.
  const bar = useRef<HTMLDivElement>(null);
  const foot = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const measure = (): void => {
      const [top, bottom] = [bar.current?.offsetHeight ?? 0, foot.current?.offsetHeight ?? 0];
      view.current?.setInsets({ top: top + 24, right: 24, bottom: bottom + 24, left: 24 });
    };
    const observer = new ResizeObserver(measure);
    for (const element of [bar.current, foot.current]) if (element) observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  const selectItem = useCallback((item: number): void => {
    const scene = view.current?.current?.picture.scene;
    if (!scene || item < 0) return;
    if (scene.items[item].open) fold(item);
    else choose.current(scene.items[item].node, -1);
    view.current?.reveal(item);
  }, [fold]);
  const foldItem = useCallback((item: number): void => {
    const scene = view.current?.current?.picture.scene;
    const entry = scene?.items[item];
    if (!entry?.address) return;
    view.current?.anchorAt(entry.key);
    fold(item);
  }, [fold]);
  const keys = (event: KeyboardEvent): void => {
    const state = view.current?.current;
    if (!state || event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = ARROWS[event.key];
    if (direction) selectItem(walk(state.picture, state.selectedItem, direction));
    else if (event.key === "Enter" || event.key === " ") foldItem(state.selectedItem);
    else if (event.key === "f") view.current?.fit(true);
    else if (event.key === "+" || event.key === "=") view.current?.zoom(1.25);
    else if (event.key === "-") view.current?.zoom(0.8);
    else return;
    event.preventDefault();
  };
  const kinds = useMemo(() => new Set(model.nodes.map((node) => node.kind)), [model]);

  return (
    <section className="stage" aria-label="Dependency graph">
      <canvas
        ref={canvas}
        className="stage-canvas"
        tabIndex={0}
        role="application"
        aria-label="Dependency graph. Arrow keys walk along edges, Enter opens or closes, F fits it into view."
        onKeyDown={keys}
      />
      <div className="stage-bar" ref={bar}>{children}</div>
      <div className="stage-foot" ref={foot}>
        <Legend kinds={kinds} heat={heat} scale={scale} scheme={theme.scheme} words={props.heatWords} />
        <div className="card stage-map">
          <canvas
            ref={map}
            aria-hidden="true"
            onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
            onPointerMove={(event) => event.buttons && followMap(view.current, event)}
            onClick={(event) => followMap(view.current, event)}
          />
          <span className="stage-zoom">
            <Button plain label="Zoom out" onClick={() => view.current?.zoom(0.8)}>−</Button>
            <Button plain label="Fit all (F)" onClick={() => view.current?.fit(true)}>fit</Button>
            <Button plain label="Zoom in" onClick={() => view.current?.zoom(1.25)}>+</Button>
          </span>
        </div>
      </div>
      {model.nodes.length === 0 && (
        <div className="stage-message">
          <Empty>This step has no graph: no tensor of it was recorded.</Empty>
        </div>
      )}
      {problem && (
        <div className="stage-message">
          <Empty>The graph could not be laid out: {problem}</Empty>
        </div>
      )}
      <GraphTwin state={shown} onSelect={selectItem} onFold={foldItem} />
      <Tooltip at={pointed && pagePlace(canvas.current, pointed)}>
        {pointed && shown && <BoxNote state={shown} hit={pointed.hit} />}
      </Tooltip>
    </section>
  );
}

const CAMERA_REST_MS = 250;
let cameraTimer: ReturnType<typeof setTimeout> | undefined;

/** Told when the hand rests: browsers refuse to have their address changed at every pixel. */
function keepCamera(camera: Camera | null, tell: GraphStageProps["onCamera"]): void {
  clearTimeout(cameraTimer);
  const told = camera && [Math.round(camera.x), Math.round(camera.y), Number(camera.scale.toFixed(3))];
  cameraTimer = setTimeout(() => tell?.(told), CAMERA_REST_MS);
}

/** Of a stack of equal modules the one is opened in which something is selected, else the first. */
function addressToFold({ model, items, itemOfNode }: Scene, item: number, selected: number): string {
  const { address, members } = items[item];
  if (members < 2 || selected < 0 || itemOfNode[selected] !== item) return address;
  const container = address.slice(0, address.lastIndexOf(".") + 1);
  const inside = (other: string): boolean =>
    other.startsWith(container) && !other.slice(container.length).includes(".");
  return groupsAround(model, selected).find(inside) ?? address;
}

type Input = Omit<GraphInput, "picture"> & { readonly picture: Picture | null };

/** Derived while rendering, so that words and picture change together. The old one stays while there is no picture. */
function useGraphState(model: GraphModel, input: Input): GraphState | null {
  const last = useRef<GraphState | null>(null);
  const { picture, theme, heat, scale, selection, allEdges, present, marks, history, apart, shapeAt, whole } = input;
  return useMemo(() => {
    if (!picture || picture.scene.model !== model) return last.current;
    last.current = graphState({ ...input, picture }, last.current);
    return last.current;
  }, [model, picture, theme, heat, scale, selection, allEdges, present, marks, history, apart, shapeAt, whole]);
}

function followMap(view: GraphView | null, event: { nativeEvent: MouseEvent; currentTarget: HTMLElement }): void {
  if (!view?.current) return;
  const { offsetX, offsetY } = event.nativeEvent;
  const { clientWidth: width, clientHeight: height } = event.currentTarget;
  const whole = wholeArea(view.current.picture.layout);
  view.look(cameraFromMinimap(whole, { width, height }, offsetX, offsetY, view.currentCamera, view.size), true);
}

function pagePlace(canvas: HTMLCanvasElement | null, { x, y }: { x: number; y: number }) {
  const place = canvas?.getBoundingClientRect();
  return { x: x + (place?.left ?? 0), y: y + (place?.top ?? 0) };
}
