// Traces as marks of an SVG: lines, points, bars, fields. Colours stay names of the page's style, so that
// they follow it. A mark that is drawn is kept in `hits`, for the pointer.

const node = (parent, name, attributes = {}, style = {}) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? Number(value.toFixed(2)) : value);
  }
  for (const [key, value] of Object.entries(style)) made.style[key] = value;
  parent.append(made);
  return made;
};

const paint = (name) => (name && name.startsWith("--") ? `var(${name})` : name || "currentColor");
const DASHES = { dash: "7 5", dot: "2 4", dashdot: "7 4 2 4" };

const pen = document.createElement("canvas").getContext("2d");
const widthOf = (words, bold = false) => {
  pen.font = `${bold ? "600 " : ""}12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(words).width;
};

// As much of a text as there is room for.
const cut = (words, room) => {
  if (widthOf(words) <= room) return words;
  let kept = words.length;
  while (kept > 1 && widthOf(`${words.slice(0, kept)}…`) > room) kept -= 1;
  return `${words.slice(0, kept)}…`;
};

// A text in lines that fit, broken after spaces and hyphens.
const wrapped = (words, room) => {
  const lines = [""];
  for (const part of words.match(/[^ -]*[ -]?/g).filter(Boolean)) {
    if (lines.at(-1) && widthOf(lines.at(-1) + part.trimEnd()) > room) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => cut(line.trim(), room));
};

const label = (parent, words, x, y, anchor = "middle", style = {}) => {
  const made = node(parent, "text", { x, y, "text-anchor": anchor }, { fill: "var(--ink)", ...style });
  made.textContent = words;
  return made;
};

const isNumber = (value) => typeof value === "number";

// The path of a line. Where a value is missing, it is broken off.
const pathOf = (points, shape, floor) => {
  let path = "";
  let before = null;
  const close = () => {
    if (before && floor !== null) path += `V${floor}`;
    before = null;
  };
  for (const point of points) {
    if (!point) {
      close();
      continue;
    }
    const [x, y] = point.map((value) => Number(value.toFixed(2)));
    if (!before) path += floor === null ? `M${x} ${y}` : `M${x} ${floor}V${y}`;
    else if (shape === "hv") path += `H${x}V${y}`;
    else if (shape === "hvh") path += `H${(before[0] + x) / 2}V${y}H${x}`;
    else path += `L${x} ${y}`;
    before = [x, y];
  }
  close();
  return path;
};

const marker = (parent, trace, x, y) => {
  const { color, size = 7, symbol, opacity = 1 } = trace.marker || {};
  const style = { fill: paint(color), fillOpacity: opacity };
  if (symbol !== "diamond") return node(parent, "circle", { cx: x, cy: y, r: size / 2, class: "mark" }, style);
  const far = size * 0.7;
  const points = `${x},${y - far} ${x + far},${y} ${x},${y + far} ${x - far},${y}`;
  return node(parent, "polygon", { points, class: "mark" }, style);
};

const errorBars = (parent, trace, frame) => {
  const { array, arrayminus, color } = trace.error_y;
  trace.points.forEach((point, place) => {
    const at = frame.place(point);
    const [above, below] = [point.y + array[place], point.y - arrayminus[place]];
    if (!at || !(above > below)) return;
    const x = at[0];
    const [top, end] = [above, below].map((value) => frame.y(value));
    const bottom = Number.isFinite(end) ? end : frame.floor;
    const d = `M${x - 4} ${top}H${x + 4}M${x} ${top}V${bottom}M${x - 4} ${bottom}H${x + 4}`;
    node(parent, "path", { d }, { stroke: paint(color), strokeWidth: 1.2, fill: "none" });
  });
};

const scatter = (parent, trace, frame, hits) => {
  const { line = {}, mode = "lines" } = trace;
  const points = trace.points.map((point) => frame.place(point));
  if (mode.includes("lines")) {
    const style = {
      fill: "none", stroke: paint(line.color), strokeWidth: line.width || 2, opacity: trace.opacity ?? 1,
      strokeDasharray: DASHES[line.dash] || "none", strokeLinejoin: "round",
    };
    if (trace.fill) {
      node(parent, "path", { d: pathOf(points, line.shape, frame.floor) }, { fill: paint(trace.fillcolor) });
    }
    node(parent, "path", { d: pathOf(points, line.shape, null), class: "line" }, style);
  }
  if (trace.error_y) errorBars(parent, trace, frame);
  points.forEach((at, place) => {
    if (!at) return;
    if (mode.includes("markers")) marker(parent, trace, ...at);
    if (trace.hoverinfo !== "skip") hits.push({ x: at[0], y: at[1], trace, point: trace.points[place] });
  });
};

const WIDEST_BAR = 72;

// Bars beside each other or upon each other; they begin at zero, by the logarithm at the axis's begin.
const bars = (parent, traces, frame, stacked, hits) => {
  const reached = new Map();
  traces.forEach((trace, number) => {
    const lying = trace.orientation === "h";
    for (const point of trace.points) {
      const [name, value] = lying ? [point.y, point.x] : [point.x, point.y];
      const [along, across] = lying ? [frame.x, frame.y] : [frame.y, frame.x];
      if (!isNumber(value)) continue;
      const band = Math.min(frame.band * 0.8, (stacked ? 1 : traces.length) * WIDEST_BAR);
      const width = stacked ? band : band / traces.length;
      const begin = stacked ? reached.get(name) || 0 : 0;
      reached.set(name, begin + value);
      const from = frame.logarithmic ? frame.begin : along(begin);
      const to = along(begin + value);
      if (!Number.isFinite(to)) continue;
      const side = across(name) - band / 2 + (stacked ? 0 : number * width);
      const [low, length] = [Math.min(from, to), Math.abs(to - from)];
      const [x, y, w, h] = lying ? [low, side, length, width] : [side, low, width, length];
      const style = { fill: paint(trace.marker.color) };
      node(parent, "rect", { x, y, width: w, height: Math.max(h, 0.5), class: "bar" }, style);
      hits.push({ x: x + w / 2, y: y + h / 2, half: [w / 2, h / 2], trace, point });
    }
  });
};

// A field of cells, the more of the hot colour the higher its figure. What has no room is told by the pointer.
const fields = (parent, trace, frame, hits) => {
  const known = trace.z.flat().filter(isNumber);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const [width, height] = [frame.bandX - 2, frame.band - 2];
  trace.y.forEach((row, line) => trace.x.forEach((column, place) => {
    const [figure, text] = [trace.z[line][place], trace.text[line][place]];
    const [x, y] = [frame.x(column), frame.y(row)];
    if (isNumber(figure)) {
      const box = { x: x - width / 2, y: y - height / 2, width, height, class: "field" };
      const heat = high > low ? (figure - low) / (high - low) : 0.5;
      node(parent, "rect", box, { fill: "var(--cold-color)" });
      node(parent, "rect", box, { fill: "var(--hot-color)", fillOpacity: heat.toFixed(3) });
    }
    if (!text) return;
    if (widthOf(text) <= width) label(parent, text, x, y + 4);
    hits.push({ x, y, half: [width / 2, height / 2], trace, point: { x: column, y: row, text } });
  }));
};
