/** A box around others: a module, or nodes that the user grouped by a prefix. */
export interface Branch {
  /** Unique; the module's address, for a user's group followed by `/prefix…`. */
  readonly address: string;
  /** Which module it belongs to: names inside are relative to it. */
  readonly module: string;
  readonly branches: Map<string, Branch>;
  readonly nodes: number[];
}

export interface Placed {
  readonly node: number;
  readonly name: string;
  /** Addresses of the modules around the node, outermost first. */
  readonly path: readonly string[];
}

const empty = (address: string, module: string): Branch => ({ address, module, branches: new Map(), nodes: [] });

function child(parent: Branch, address: string, module: string): Branch {
  let found = parent.branches.get(address);
  if (!found) parent.branches.set(address, (found = empty(address, module)));
  return found;
}

/** Nests nodes by the addresses of their modules, then removes boxes that would hold a single thing. */
export function growTree(placed: readonly Placed[], groups: readonly string[]): Branch {
  const root = empty("", "");
  const longestFirst = [...groups].sort((a, b) => b.length - a.length);
  for (const { node, name, path } of placed) {
    const home = path.at(-1) ?? "";
    let branch = path.reduce((outer, address) => child(outer, address, address), root);
    const prefix = longestFirst.find((text) => text && name.startsWith(text));
    if (prefix !== undefined) branch = child(branch, `${home}/${prefix}…`, home);
    branch.nodes.push(node);
  }
  return simplify(root, true);
}

/**
 * A box around one box or one node only costs room. A lone inner box takes the place of the outer one, so its label
 * (relative to the next box outside) shows both parts; a lone node moves up.
 */
function simplify(branch: Branch, isRoot: boolean): Branch {
  const branches = new Map<string, Branch>();
  const nodes = [...branch.nodes];
  for (const inner of branch.branches.values()) {
    const simple = simplify(inner, false);
    if (simple.branches.size === 0 && simple.nodes.length === 1) nodes.push(simple.nodes[0]);
    else branches.set(simple.address, simple);
  }
  if (!isRoot && branches.size === 1 && nodes.length === 0) return [...branches.values()][0];
  return { ...branch, branches, nodes };
}
