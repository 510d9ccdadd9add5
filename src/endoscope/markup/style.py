"""Colours, type and print rules of the page."""

_LIGHT = """
  --background: #f5f6f8; --panel: #ffffff; --raised: #fbfcfd; --line: #e1e5ea; --line-strong: #c8d0d9;
  --ink: #1a2029; --ink-soft: #4d5967; --ink-faint: #667281; --accent: #2459d6; --accent-soft: #e8efff;
  --error: #c0302a; --warning: #9c5606; --info: #46689a; --good: #257a50;
  --error-soft: #fdeceb; --warning-soft: #fdf2e3; --info-soft: #ebf1f9; --good-soft: #e6f4ec;
  --parameter: #9a650f;
  --input: #257a50; --computed: #6056d6; --module: #4d5967; --target: #0f748c; --loss: #b83280; --output: #c0302a;
  --c0: #2459d6; --c1: #c4541f; --c2: #257a50; --c3: #8a3fb5; --c4: #0f748c; --c5: #9a650f;
"""
_DARK = """
  --background: #0f1216; --panel: #161a20; --raised: #1c2129; --line: #2a313b; --line-strong: #3d4754;
  --ink: #e7ebf0; --ink-soft: #a3afbd; --ink-faint: #8b97a6; --accent: #7aa5ff; --accent-soft: #1d2a44;
  --error: #ff8379; --warning: #f3a64a; --info: #8fb2e5; --good: #52c48c;
  --error-soft: #341c1c; --warning-soft: #33261a; --info-soft: #1d2733; --good-soft: #17281f;
  --parameter: #e0ab4c;
  --input: #52c48c; --computed: #9d95ff; --module: #a3afbd; --target: #4fc0d9; --loss: #f07cc0; --output: #ff8379;
  --c0: #6f9cff; --c1: #f08a55; --c2: #52c48c; --c3: #c78bef; --c4: #4fc0d9; --c5: #e0ab4c;
"""

_RULES = """
*, *::before, *::after { box-sizing: border-box; }
html { color-scheme: light dark; scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--background); color: var(--ink);
  font: 14px/1.5 Inter, "Liberation Sans", system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 28px 24px 64px; }
.shared { position: absolute; }
h1 { font-size: 28px; line-height: 1.2; letter-spacing: -0.02em; margin: 6px 0; overflow-wrap: anywhere; }
h2 { font-size: 21px; letter-spacing: -0.01em; margin: 48px 0 12px; padding-top: 16px;
  border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
h3 { font-size: 16px; margin: 32px 0 10px; }
h4 { font-size: 14px; margin: 16px 0 6px; overflow-wrap: anywhere; }
h5 { font-size: 12px; margin: 12px 0 2px; color: var(--ink-faint); font-weight: 600; }
p { margin: 4px 0; overflow-wrap: anywhere; }
ul { margin: 2px 0; padding-left: 18px; }
a { color: var(--accent); }
code, dd, .number, .tick { font-family: "JetBrains Mono", "DejaVu Sans Mono", ui-monospace, Menlo, Consolas, monospace;
  font-variant-numeric: tabular-nums; }
code { font-size: 0.9em; overflow-wrap: anywhere; }
.soft { color: var(--ink-soft); font-size: 13px; font-weight: 400; }
.logo { display: flex; align-items: center; gap: 8px; font-weight: 650; color: var(--ink-soft); }
.ring { width: 14px; height: 14px; border: 3px solid var(--accent); border-radius: 50%; }
header .soft { display: flex; gap: 12px; flex-wrap: wrap; align-items: center; }
.badges { display: inline-flex; gap: 6px; flex-wrap: wrap; }
span.badge { border-radius: 99px; padding: 1px 10px; font-size: 12px; font-weight: 600; white-space: nowrap;
  color: var(--severity); background: var(--severity-soft); }
.badge.good, p.good { --severity: var(--good); --severity-soft: var(--good-soft); }
.severity-error { --severity: var(--error); --severity-soft: var(--error-soft); }
.severity-warning { --severity: var(--warning); --severity-soft: var(--warning-soft); }
.severity-info { --severity: var(--info); --severity-soft: var(--info-soft); }
p.good { border: 1px solid var(--line); border-left: 4px solid var(--good); background: var(--panel);
  border-radius: 8px;
  padding: 12px 16px; }
.empty { color: var(--ink-faint); padding: 24px; text-align: center; }

dl.tiles { display: flex; flex-wrap: wrap; gap: 8px; margin: 10px 0; }
.tiles > div { border: 1px solid var(--line); border-radius: 6px; padding: 6px 10px; background: var(--raised);
  min-width: 88px; }
.tiles.wide > div { background: var(--panel); flex: 1 1 140px; }
dt { color: var(--ink-faint); font-size: 11.5px; }
dd { margin: 0; font-size: 13.5px; overflow-wrap: anywhere; }
.tiles.wide dd { font-size: 15px; }
small { color: var(--ink-faint); font-size: 11.5px; overflow-wrap: anywhere; }

.finding { background: var(--panel); border: 1px solid var(--line); border-left: 4px solid var(--severity);
  border-radius: 8px;
  padding: 14px 18px 16px; margin: 12px 0; scroll-margin-top: 12px; break-inside: avoid-page; }
.finding:target { box-shadow: 0 0 0 2px var(--severity); }
.finding > .columns { display: grid; grid-template-columns: minmax(280px, 5fr) minmax(300px, 6fr); gap: 8px 28px; }
.finding > .columns > .evidence:empty { display: none; }
.finding > .columns:has(> .evidence:empty) { grid-template-columns: 1fr; }
.words > h4 { font-size: 15px; margin: 0 0 2px; }
.words .node { margin-left: 8px; font-weight: 500; color: var(--ink-soft); }
.count { display: inline-block; min-width: 20px; height: 20px; line-height: 20px; margin-right: 8px;
  border-radius: 10px; padding: 0 6px;
  text-align: center; font-size: 11px; font-weight: 700; color: var(--panel); background: var(--severity); }
.severity { color: var(--severity); }
.finding .tiles > div:first-child dd { color: var(--severity); font-weight: 600; }
.link code { color: var(--ink-faint); font-size: 11px; user-select: all; }
.follows { margin: 12px 0 0; }
.follows .finding { background: var(--raised); margin: 4px 0 0; }

figure { margin: 0 0 10px; min-width: 0; }
figcaption { display: flex; flex-wrap: wrap; gap: 2px 14px; justify-content: space-between; font-size: 12px;
  color: var(--ink-soft);
  overflow-wrap: anywhere; }
figcaption b { font-weight: 600; color: var(--ink); }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(440px, 100%), 1fr)); gap: 12px; }
.grid figure { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px 6px;
  margin: 0;
  break-inside: avoid; }
.legend { display: inline-flex; flex-wrap: wrap; gap: 2px 12px; font-size: 12px; color: var(--ink-soft); }
.key { display: inline-flex; align-items: center; gap: 5px; }
.swatch { width: 10px; height: 10px; border-radius: 3px; background: var(--colour); }
.c0 { --colour: var(--c0); } .c1 { --colour: var(--c1); } .c2 { --colour: var(--c2); }
.c3 { --colour: var(--c3); } .c4 { --colour: var(--c4); } .c5 { --colour: var(--c5); }
.chart { display: block; width: 100%; height: auto; }
.chart .grid, line.grid { stroke: var(--line); stroke-width: 1; }
.tick { font-size: 10.5px; fill: var(--ink-faint); }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.line { fill: none; stroke: var(--colour); stroke-width: 1.6; stroke-linejoin: round; }
.line.again { stroke-dasharray: 5 3; }
.dot { fill: var(--colour); }
.marks { stroke: var(--line-strong); stroke-width: 1; }
.broken { stroke: var(--error); stroke-width: 2; }
.event { stroke: var(--severity); stroke-width: 1; stroke-dasharray: 3 3; opacity: 0.7; }
g[class^="severity-"] > circle { fill: var(--severity); }
.pixels { image-rendering: pixelated; }
.frame { fill: none; stroke: var(--line-strong); }

.stage { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; overflow: auto;
  max-height: 760px; }
.graph { display: block; margin: 0 auto; }
.edge { fill: none; stroke: var(--line-strong); stroke-width: 1.3; }
.edge.back { stroke-dasharray: 4 3; }
.tip { fill: var(--line-strong); }
.kind-input { --kind: var(--input); } .kind-computed { --kind: var(--computed);
  } .kind-module { --kind: var(--module); }
.kind-parameter, .kind-buffer { --kind: var(--parameter); }
.kind-target { --kind: var(--target); } .kind-loss { --kind: var(--loss); } .kind-output { --kind: var(--output); }
.swatch[class*="kind-"] { background: var(--kind); }
.body { fill: var(--raised); stroke: var(--kind, var(--module)); stroke-width: 1.2; }
.bar { fill: var(--kind, var(--module)); }
.kind-module .body { stroke-dasharray: 3 2; }
.box[class*="severity-"] .body { fill: var(--severity-soft); stroke: var(--severity); stroke-width: 2.4;
  stroke-dasharray: none; }
.name { font-size: 12px; font-weight: 600; fill: var(--ink); }
.note { font-size: 10.5px; fill: var(--ink-soft); } .end { text-anchor: end; }
g.badge circle { fill: var(--severity); }
g.badge text { font-size: 10px; font-weight: 700; fill: var(--panel); }

table { border-collapse: collapse; width: 100%; font-size: 12.5px; background: var(--panel);
  border: 1px solid var(--line);
  border-radius: 8px; }
th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
tr:last-child > * { border-bottom: 0; }
th { color: var(--ink-soft); font-weight: 500; min-width: 6em; }
.facts th { width: 42%; }
td.number, th.number { text-align: right; }
summary { margin: 16px 0 8px; font-weight: 600; cursor: pointer; }
.overview { margin-bottom: 16px; }
.overview, .modules { display: block; overflow-x: auto; }
.modules tr > * { width: 30%; }
.listing { display: block; overflow: auto; max-height: 900px; width: fit-content; max-width: 100%; }
.listing tr > * { white-space: nowrap; min-width: 0; max-width: 42em; overflow: hidden; text-overflow: ellipsis; }
.overview tr > * { width: 1%; white-space: nowrap; }
.overview tr > :last-child { width: 100%; min-width: 14em; white-space: normal; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)); gap: 0 16px;
  align-items: start; }

@media (max-width: 860px) { .finding > .columns { grid-template-columns: 1fr; } main { padding: 16px 12px 40px; } }
@media print {
  body { font-size: 11px; background: #ffffff; } main { max-width: none; padding: 0; }
  .stage { max-height: none; overflow: visible; } .graph { max-width: 100%; height: auto; max-height: 240mm; }
  .link { display: none; } .trial { break-before: page; } h2, h3, h4 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

STYLE = (
    f":root {{{_LIGHT}}}\n@media (prefers-color-scheme: dark) {{ :root {{{_DARK}}} }}\n"
    f"@media print {{ :root {{{_LIGHT}}} html {{ color-scheme: light; }} }}\n{_RULES}"
)
