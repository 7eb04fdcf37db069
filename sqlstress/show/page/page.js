// The pointer on a chart: figures of the mark below it are shown, and a dragged part is enlarged.

const MAX_DISTANCE = 36;

const distance = (hit, x, y, sideways) => {
  if (hit.half) {
    const inside = Math.abs(hit.x - x) <= hit.half[0] && Math.abs(hit.y - y) <= Math.max(hit.half[1], 6);
    return inside ? 0 : Infinity;
  }
  return sideways ? Math.abs(hit.x - x) : Math.hypot(hit.x - x, hit.y - y);
};

// Return the nearest hit within MAX_DISTANCE pixels, as a list. If `sideways`, return one per trace, by x only.
const nearest = (hits, x, y, sideways) => {
  const best = new Map();
  for (const hit of hits) {
    const far = distance(hit, x, y, sideways);
    const key = sideways ? hit.trace : "";
    if (far <= MAX_DISTANCE && far < (best.get(key)?.far ?? Infinity)) best.set(key, { hit, far });
  }
  return [...best.values()].map(({ hit }) => hit);
};

const addTip = (canvas) => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  canvas.append(tip);
  return tip;
};

const showTip = (tip, hits, view, width) => {
  tip.hidden = !hits.length;
  if (tip.hidden) return;
  const hasNames = view.layout.hovermode === "x" && view.data.length > 1;
  tip.replaceChildren(...hits.map(({ trace, point }) => {
    const line = document.createElement("div");
    line.textContent = (hasNames ? `${trace.name}: ` : "") + fillTemplate(trace.hovertemplate || "", point);
    return line;
  }));
  const { x, y } = hits[0];
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, width - tip.offsetWidth))}px`;
  tip.style.top = `${y - tip.offsetHeight - 12 < 0 ? y + 14 : y - tip.offsetHeight - 12}px`;
};

// Return the ranges of the axes between two positions, in data units; null if there are none. An axis of names, and
// an axis along which the pointer moved at most 8 pixels, are left out.
const dragRanges = (frame, start, end) => {
  const { box, xAxis, yAxis } = frame;
  const share = (value, begin, length) => Math.min(1, Math.max(0, (value - begin) / length));
  const ranges = {};
  if (!xAxis.names && Math.abs(end.x - start.x) > 8) {
    const shares = [start, end].map(({ x }) => share(x, box.x, box.width));
    ranges.x = shares.sort((a, b) => a - b).map(xAxis.valueAt);
  }
  if (!yAxis.names && Math.abs(end.y - start.y) > 8) {
    const shares = [start, end].map(({ y }) => 1 - share(y, box.y, box.height));
    ranges.y = shares.sort((a, b) => a - b).map(yAxis.valueAt);
  }
  return Object.keys(ranges).length ? ranges : null;
};

const addPointer = (canvas, view, chart, state, redraw) => {
  const { svg, hits, frames, width } = chart;
  const tip = addTip(canvas);
  let dragStart = null;
  let dragBox = null;
  const positionOf = (event) => {
    const shape = svg.getBoundingClientRect();
    return { x: (event.clientX - shape.left) * width / shape.width, y: event.clientY - shape.top };
  };
  const frameAt = ({ x, y }) => frames.find(({ box }) =>
    x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
  const onMove = (event) => {
    const { x, y } = positionOf(event);
    showTip(tip, nearest(hits, x, y, view.layout.hovermode === "x"), view, width);
    if (!dragStart) return;
    const corner = { x: Math.min(dragStart.x, x), y: Math.min(dragStart.y, y) };
    const box = { ...corner, width: Math.abs(x - dragStart.x), height: Math.abs(y - dragStart.y) };
    if (dragBox) dragBox.remove();
    dragBox = node(svg, "rect", box, { fill: "var(--shade)", stroke: "var(--muted)", pointerEvents: "none" });
  };
  svg.addEventListener("pointermove", onMove);
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("pointerdown", (event) => {
    onMove(event);
    const frame = frameAt(positionOf(event));
    // Only a mouse selects: a finger scrolls the page.
    if (event.pointerType !== "mouse" || event.button !== 0 || !frame) return;
    dragStart = { ...positionOf(event), frame };
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointerup", (event) => {
    if (!dragStart) return;
    const ranges = dragRanges(dragStart.frame, dragStart, positionOf(event));
    dragStart = null;
    if (dragBox) dragBox.remove();
    if (!ranges) return;
    state.zoom = { ...state.zoom, ...ranges };
    redraw();
  });
  svg.addEventListener("dblclick", () => {
    if (!state.zoom) return;
    state.zoom = null;
    redraw();
  });
};

// The page: it draws the charts, draws them again after a change of its width, and connects buttons and lists.

const PRINT_WIDTH = 660;
const root = document.documentElement;
const plots = JSON.parse(document.getElementById("plots").textContent);
const states = new Map();

// Return a chart as the text of an SVG file, with the page's current colours in place of their names.
const svgText = (svg, title) => {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.background = "var(--paper)";
  node(copy, "title").textContent = title;
  const style = getComputedStyle(root);
  return new XMLSerializer().serializeToString(copy)
    .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
};

const save = (svg, title) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([svgText(svg, title)], { type: "image/svg+xml" }));
  link.download = `${title}.svg`;
  link.click();
  URL.revokeObjectURL(link.href);
};

const draw = (figure, width) => {
  const select = figure.querySelector("select");
  const view = plots[Number(figure.dataset.plot)][select ? Number(select.value) : 0];
  const state = states.get(figure);
  const canvas = figure.querySelector(".canvas");
  const redraw = () => draw(figure, width);
  const chart = drawChart(canvas, view, state, width || canvas.clientWidth, redraw);
  const title = figure.querySelector("h3").textContent;
  chart.svg.setAttribute("aria-label", title);
  addPointer(canvas, view, chart, state, redraw);
  const [resetButton, saveButton] = figure.querySelectorAll("figcaption button");
  resetButton.hidden = !state.zoom;
  saveButton.hidden = false;
  resetButton.onclick = () => { state.zoom = null; redraw(); };
  saveButton.onclick = () => save(chart.svg, title);
};

const figures = [...document.querySelectorAll("[data-plot]")];
const drawAll = (width) => figures.forEach((figure) => draw(figure, width));

for (const figure of figures) {
  states.set(figure, { hidden: new Set(), zoom: null });
  figure.querySelector("select")?.addEventListener("change", () => {
    states.set(figure, { hidden: new Set(), zoom: null });
    draw(figure);
  });
}

// Keep the names of rows visible while a table scrolls sideways, if they take less than 60% of its width.
const keepNames = () => {
  for (const table of document.querySelectorAll("[data-names]")) {
    const cells = [...table.querySelectorAll("thead th")].slice(0, Number(table.dataset.names));
    const widths = cells.map((cell) => cell.getBoundingClientRect().width);
    const fits = widths.reduce((sum, width) => sum + width, 0) < 0.6 * table.clientWidth;
    table.classList.toggle("kept", fits && widths.length > 1);
    table.style.setProperty("--second", `${widths[0] || 0}px`);
  }
};

let pageWidth = root.clientWidth;
addEventListener("resize", () => {
  if (pageWidth === root.clientWidth) return;
  pageWidth = root.clientWidth;
  drawAll();
  keepNames();
});

// Open all details for printing, and close them again afterwards.
let closedDetails = [];
addEventListener("beforeprint", () => {
  closedDetails = [...document.querySelectorAll("details:not([open])")];
  for (const details of closedDetails) details.open = true;
  drawAll(PRINT_WIDTH);
});
addEventListener("afterprint", () => {
  for (const details of closedDetails) details.open = false;
  drawAll();
});

for (const button of document.querySelectorAll(".copy")) {
  const code = button.parentElement.querySelector("code");
  button.hidden = false;
  button.addEventListener("click", async () => {
    const range = document.createRange();
    range.selectNodeContents(code);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";
    }
  });
}
drawAll();
keepNames();
root.dataset.drawn = String(figures.length);
