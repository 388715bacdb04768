"""The script of the page: it lets tables be sorted; without it nothing is missing but that."""

from __future__ import annotations

SCRIPT = """
"use strict";
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
for (const table of document.querySelectorAll("table")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sort(table, headers, column));
  });
}
function sort(table, headers, column) {
  const header = headers[column];
  const up = header.getAttribute("aria-sort") !== "ascending";
  headers.forEach(other => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const numeric = !header.classList.contains("words");
  const read = row => {
    const cell = row.cells[column];
    const value = cell.dataset.value;
    return numeric ? (value === undefined ? null : Number(value)) : cell.textContent;
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    const order = numeric ? a - b : a.localeCompare(b, "en", { numeric: true });
    return up ? order : -order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => compare(read(a), read(b))));
}
"""


STYLE = """
:root {
  color-scheme: light dark;
  --ink: #222; --soft: #5c5c5c; --rule: #d4d4d4; --page: #fff; --stripe: #f6f7f9; --link: #00558a;
  --bad: #a33a00; --init: #222; --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #cc79a7;
  --c4: #e69f00; --c5: #56b4e9;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e8e8e8; --soft: #a8a8a8; --rule: #444; --page: #17181a; --stripe: #202225;
    --link: #7cc0f0; --bad: #ff9d66; --init: #e8e8e8; --c0: #4aa8e0; --c1: #f08040;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 75rem; padding: 1.5rem 1.25rem 4rem;
  background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, "Segoe UI", "Liberation Sans", "DejaVu Sans", sans-serif;
}
h1 { margin: 0 0 .5rem; font-size: 1.75rem; line-height: 1.2; }
h2 { margin: 2.75rem 0 .75rem; padding-bottom: .25rem; border-bottom: 1px solid var(--rule);
  font-size: 1.3rem; }
h3 { margin: 2rem 0 .75rem; font-size: 1.05rem; overflow-wrap: anywhere; }
p, ul { margin: .5rem 0; max-width: 48rem; }
ul { padding-left: 1.25rem; }
li { margin: .2rem 0; overflow-wrap: anywhere; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 3px solid var(--c4); outline-offset: 2px; }
:target { outline: 2px solid var(--c4); outline-offset: 6px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { position: static; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; padding: 0;
  max-width: none; }
summary { cursor: pointer; }
details ul { margin: .25rem 0 .75rem; font-size: .875rem; }
.lead { color: var(--soft); }
#warnings { border-left: 4px solid var(--bad); margin-top: 2.5rem; padding: .1rem 0 .1rem 1rem; }
#warnings h2 { margin-top: .5rem; border: 0; }
.chart { margin: 0; }
.chart img { display: block; width: 100%; max-width: 60rem; height: auto; border-radius: 6px;
  background: #fff; }
.scroll { overflow-x: auto; margin: 1rem 0 1.5rem; max-width: 100%; }
#tasks { display: flex; flex-wrap: wrap; align-items: flex-start; column-gap: 3rem; }
#tasks h2 { flex-basis: 100%; }
table { border-collapse: collapse; font-size: .875rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; }
caption { padding: 0 0 .4rem; text-align: left; font-weight: 600; }
caption span { display: block; position: sticky; left: 0; width: fit-content;
  max-width: calc(100vw - 2.5rem); }
th, td { padding: .4rem .65rem; text-align: right; vertical-align: top; white-space: nowrap; }
th { font-weight: 600; }
thead th { border-bottom: 2px solid var(--rule); vertical-align: bottom; white-space: normal;
  min-width: 4.5rem; }
tbody tr:nth-child(even) :is(th, td) { background: var(--stripe); }
th[scope=row], thead th.words, thead th:first-child { text-align: left; }
th[scope=row], thead th:first-child { position: sticky; left: 0; background: var(--page);
  min-width: 9rem; max-width: 16rem; white-space: normal; overflow-wrap: anywhere; }
td a { color: inherit; text-decoration-color: var(--rule); }
td a:hover { color: var(--link); text-decoration-color: currentcolor; }
td small { display: block; color: var(--soft); font-size: .75rem; }
.bad { color: var(--bad); }
td small.bad { color: var(--bad); white-space: normal; min-width: 8rem; }
tfoot tr:first-child :is(th, td) { border-top: 2px solid var(--rule); }
.soft { color: var(--soft); }
thead button { all: unset; cursor: pointer; font: inherit; }
thead button:focus-visible { outline: 3px solid var(--c4); outline-offset: 2px; }
thead button::after { content: "\\2195" / ""; padding-left: .25em; color: var(--soft);
  opacity: .6; }
[aria-sort=ascending] button::after { content: "\\25B2" / ""; opacity: 1; }
[aria-sort=descending] button::after { content: "\\25BC" / ""; opacity: 1; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr));
  gap: 1.75rem 1.5rem; }
.plots figure { margin: 0; min-width: 0; }
.plots figcaption { font-size: .8rem; line-height: 1.4; }
.plots figcaption b { display: block; font-size: .95rem; overflow-wrap: anywhere; }
.plots figcaption span { display: block; }
.plots figure > svg { display: block; width: 100%; height: auto; margin-top: .35rem; }
.key { display: inline-block; width: 1em; height: .86em; vertical-align: -.08em; }
svg text { font-size: 11px; fill: var(--soft); }
svg path { fill: none; stroke-width: 1.1; stroke-linejoin: round; stroke-linecap: round;
  vector-effect: non-scaling-stroke; }
svg .axis { stroke: var(--rule); stroke-width: 1; }
.init { stroke: var(--init); } .g0 { stroke: var(--c0); } .g1 { stroke: var(--c1); }
.g2 { stroke: var(--c2); } .g3 { stroke: var(--c3); } .g4 { stroke: var(--c4); }
.g5 { stroke: var(--c5); }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) {
  body { padding: 1rem .75rem 3rem; }
  h1 { font-size: 1.4rem; }
  th[scope=row], thead th:first-child { min-width: 7rem; max-width: 8.5rem; }
  th, td { padding: .35rem .5rem; }
}
@media print {
  @page { size: A4 landscape; margin: 12mm; }
  :root { color-scheme: light; --ink: #000; --soft: #444; --rule: #bbb; --page: #fff;
    --stripe: #fff; --link: #000; --bad: #000; --init: #000; --c0: #0072b2; --c1: #d55e00; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .skip, .back { display: none; }
  a, td a { color: inherit; text-decoration: none; }
  h2, h3, caption { break-after: avoid; }
  h2 { margin-top: 1.5rem; }
  .scroll { overflow: visible; }
  #tasks { display: block; }
  table { font-size: 8pt; max-width: 100%; }
  td small { font-size: 7pt; }
  th, td { padding: .2rem .35rem; }
  th[scope=row], thead th:first-child, caption span { position: static; max-width: none; }
  thead { display: table-header-group; }
  tr, figure, #warnings li { break-inside: avoid; }
  .chart img { max-width: 14cm; }
  .plots { grid-template-columns: repeat(4, 1fr); gap: .75rem; }
  .plots figcaption { font-size: 7pt; line-height: 1.25; }
  thead button::after { content: none; }
  [aria-sort=ascending] button::after { content: " \\25B2"; }
  [aria-sort=descending] button::after { content: " \\25BC"; }
  :target { outline: none; }
  table { break-inside: avoid; }
  tfoot { display: table-row-group; }
  details ul { columns: 3; font-size: 7pt; line-height: 1.3; }
  details li { margin: 0; }
}
"""
