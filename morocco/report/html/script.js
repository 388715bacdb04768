"use strict";
// Print what is folded away on screen.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});

// Turn every header into a button that sorts its table; the rows of <tfoot> stay where they are.
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
    // Cells without a number come last in either direction.
    if (a === null || b === null) return (a === null) - (b === null);
    const order = numeric ? a - b : a.localeCompare(b, "en", { numeric: true });
    return up ? order : -order;
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => compare(read(a), read(b))));
}
