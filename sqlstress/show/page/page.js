// What the pointer does on a chart: it is told the figure below it, and a part that it drags is enlarged.

const NEAR = 36;

const distance = (hit, x, y, sideways) => {
  if (hit.half) {
    const inside = Math.abs(hit.x - x) <= hit.half[0] && Math.abs(hit.y - y) <= Math.max(hit.half[1], 6);
    return inside ? 0 : Infinity;
  }
  return sideways ? Math.abs(hit.x - x) : Math.hypot(hit.x - x, hit.y - y);
};

// The nearest mark; along an axis of steps the nearest of each trace.
const nearest = (hits, x, y, sideways) => {
  const best = new Map();
  for (const hit of hits) {
    const far = distance(hit, x, y, sideways);
    const key = sideways ? hit.trace : "";
    if (far <= NEAR && far < (best.get(key)?.far ?? Infinity)) best.set(key, { hit, far });
  }
  return [...best.values()].map((one) => one.hit);
};

const tipOf = (canvas) => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  canvas.append(tip);
  return tip;
};

const tell = (tip, found, view, width) => {
  tip.hidden = !found.length;
  if (tip.hidden) return;
  const named = view.layout.hovermode === "x" && view.data.length > 1;
  tip.replaceChildren(...found.map(({ trace, point }) => {
    const line = document.createElement("div");
    line.textContent = (named ? `${trace.name}: ` : "") + filled(trace.hovertemplate || "", point);
    return line;
  }));
  const { x, y } = found[0];
  tip.style.left = `${Math.max(0, Math.min(x - tip.offsetWidth / 2, width - tip.offsetWidth))}px`;
  tip.style.top = `${y - tip.offsetHeight - 12 < 0 ? y + 14 : y - tip.offsetHeight - 12}px`;
};

// The part of the axes that a drag has crossed; along names, and where it hardly moved, the axis stays whole.
const crossed = (frame, from, to) => {
  const { box, xAxis, yAxis } = frame;
  const share = (value, begin, length) => Math.min(1, Math.max(0, (value - begin) / length));
  const parts = {};
  if (!xAxis.names && Math.abs(to.x - from.x) > 8) {
    parts.x = [from, to].map((at) => share(at.x, box.x, box.width)).sort((a, b) => a - b).map(xAxis.back);
  }
  if (!yAxis.names && Math.abs(to.y - from.y) > 8) {
    const shares = [from, to].map((at) => 1 - share(at.y, box.y, box.height));
    parts.y = shares.sort((a, b) => a - b).map(yAxis.back);
  }
  return Object.keys(parts).length ? parts : null;
};

const follow = (canvas, view, drawn, state, again) => {
  const { svg, hits, frames, width } = drawn;
  const tip = tipOf(canvas);
  let begun = null;
  let marked = null;
  const at = (event) => {
    const shape = svg.getBoundingClientRect();
    return { x: (event.clientX - shape.left) * width / shape.width, y: event.clientY - shape.top };
  };
  const within = ({ x, y }) => frames.find(({ box }) =>
    x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
  const looked = (event) => {
    const here = at(event);
    tell(tip, nearest(hits, here.x, here.y, view.layout.hovermode === "x"), view, width);
    if (!begun) return;
    const size = { x: Math.min(begun.x, here.x), y: Math.min(begun.y, here.y) };
    const box = { ...size, width: Math.abs(here.x - begun.x), height: Math.abs(here.y - begun.y) };
    if (marked) marked.remove();
    marked = node(svg, "rect", box, { fill: "var(--shade)", stroke: "var(--muted)", pointerEvents: "none" });
  };
  svg.addEventListener("pointermove", looked);
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("pointerdown", (event) => {
    looked(event);
    // A finger scrolls the page.
    const frame = within(at(event));
    if (event.pointerType !== "mouse" || event.button !== 0 || !frame) return;
    begun = { ...at(event), frame };
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointerup", (event) => {
    if (!begun) return;
    const parts = crossed(begun.frame, begun, at(event));
    begun = null;
    if (marked) marked.remove();
    if (!parts) return;
    state.zoom = { ...state.zoom, ...parts };
    again();
  });
  svg.addEventListener("dblclick", () => {
    if (!state.zoom) return;
    state.zoom = null;
    again();
  });
};

// Draws the charts, and again where there is more or less room for them; what can be clicked.

const PRINTED = 660;
const root = document.documentElement;
const plots = JSON.parse(document.getElementById("plots").textContent);
const states = new Map();

// A picture of a chart that stands alone: with the page's colours of this moment in it.
const pictureOf = (svg, title) => {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.style.background = "var(--paper)";
  const own = node(copy, "title");
  own.textContent = title;
  const style = getComputedStyle(root);
  return new XMLSerializer().serializeToString(copy)
    .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
};

const save = (svg, title) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([pictureOf(svg, title)], { type: "image/svg+xml" }));
  link.download = `${title}.svg`;
  link.click();
  URL.revokeObjectURL(link.href);
};

const draw = (figure, width) => {
  const select = figure.querySelector("select");
  const chosen = select ? Number(select.value) : 0;
  const view = plots[Number(figure.dataset.plot)][chosen];
  const state = states.get(figure);
  const canvas = figure.querySelector(".canvas");
  const again = () => draw(figure, width);
  const drawn = drawChart(canvas, view, state, width || canvas.clientWidth, again);
  const title = figure.querySelector("h3").textContent;
  drawn.svg.setAttribute("aria-label", title);
  follow(canvas, view, drawn, state, again);
  const [whole, picture] = figure.querySelectorAll("figcaption button");
  whole.hidden = !state.zoom;
  picture.hidden = false;
  whole.onclick = () => { state.zoom = null; again(); };
  picture.onclick = () => save(drawn.svg, title);
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

// The names of the rows stay in sight while the table is moved, if they leave room for the figures.
const keepNames = () => {
  for (const table of document.querySelectorAll("[data-names]")) {
    const cells = [...table.querySelectorAll("thead th")].slice(0, Number(table.dataset.names));
    const widths = cells.map((cell) => cell.getBoundingClientRect().width);
    const all = widths.reduce((sum, width) => sum + width, 0) < 0.6 * table.clientWidth;
    table.classList.toggle("kept", all && widths.length > 1);
    table.style.setProperty("--second", `${widths[0] || 0}px`);
  }
};

let room = root.clientWidth;
addEventListener("resize", () => {
  if (room === root.clientWidth) return;
  room = root.clientWidth;
  drawAll();
  keepNames();
});

// On paper everything is open, and what was closed is closed again afterwards.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const each of closed) each.open = true;
  drawAll(PRINTED);
});
addEventListener("afterprint", () => {
  for (const each of closed) each.open = false;
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
