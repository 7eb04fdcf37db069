// Where a value stands along an axis, at which values ticks stand, and how numbers are written.

const formats = new Map();
const grouped = (value, options) => {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat("en", options));
  return formats.get(key).format(value);
};

// A number with so many digits that count, whatever its size: 12,500; 2.5M; 0.001; 1e-9.
const brief = (value, digits = 6) => {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-5 || size >= 1e12)) {
    return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  }
  const [unit, sign] = size >= 1e6 ? [1e6, "M"] : [1, ""];
  return grouped(value / unit, { maximumSignificantDigits: digits }) + sign;
};

// ".3g": so many digits that count; ".2f": so many decimals. Thousands are always grouped.
const written = (value, form) => {
  if (typeof value !== "number") return String(value ?? "").replace("\u0000", ", ");
  const [, digits, kind] = /^,?\.(\d+)([fg])$/.exec(form || "") || [];
  if (kind === "f") return grouped(value, { minimumFractionDigits: +digits, maximumFractionDigits: +digits });
  return brief(value, kind ? +digits : 6);
};

const filled = (template, point) =>
  template.replace(/%\{(x|y|text)(?::([^}]*))?\}/g, (_, key, form) => written(point[key], form));

// Every step-th power of ten that lies within.
const decades = (low, high, step = 1) => {
  const found = [];
  const last = Math.floor(Math.log10(high) + 1e-9);
  for (let ten = Math.ceil(Math.log10(low) - 1e-9); ten <= last; ten += step) found.push(Number(`1e${ten}`));
  return found;
};

// Round values, about so many, and so far apart at least.
const rounds = (low, high, about, least) => {
  const rough = Math.max(least, (high - low) / Math.max(1, about));
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * ([1, 2, 5, 10].find((times) => times * ten >= rough * 0.999) || 10);
  const found = [];
  if (!Number.isFinite(step) || step <= 0) return [low];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count += 1) {
    if (found.length > 50) break;
    found.push(Number((count * step).toPrecision(12)));
  }
  return found;
};

// What a numeric axis spans: what there is to show, and a little more.
const spanned = (spec, values) => {
  const known = values.filter((value) => typeof value === "number" && (spec.type !== "log" || value > 0));
  let low = Infinity;
  let high = -Infinity;
  for (const value of known) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return spec.type === "log" ? [0.1, 10] : [0, 1];
  if (spec.type === "log") {
    // Of a scale with fewer than two ticks nobody can tell that it is one.
    if (!spec.tickvals && decades(low, high).length < 2) {
      low = 10 ** Math.floor(Math.log10(low) + 1e-9);
      high = Math.max(10 ** Math.ceil(Math.log10(high) - 1e-9), low * 10);
    }
    const more = (high / low) ** 0.03;
    return [low / Math.max(more, 1.02), high * Math.max(more, 1.02)];
  }
  const zero = spec.rangemode === "tozero";
  if (zero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [zero && low === 0 ? 0 : low - room, zero && high === 0 ? 0 : high + room];
};

// An axis: `at` says where a value stands, 0 being its begin and 1 its end.
const axisOf = (spec, values, zoomed) => {
  if (spec.type === "category" || values.some((value) => typeof value === "string")) {
    const names = [...new Set(values.filter((value) => value !== null))];
    const places = new Map(names.map((name, place) => [name, place]));
    return { spec, names, at: (name) => (places.get(name) + 0.5) / names.length, band: 1 / names.length };
  }
  const [low, high] = zoomed || spec.range || spanned(spec, values);
  const turned = spec.type === "log" ? Math.log10 : (value) => value;
  const begin = turned(low);
  const length = turned(high) - begin || 1;
  const back = (share) => (spec.type === "log" ? 10 ** (begin + share * length) : begin + share * length);
  return { spec, low, high, zoomed: Boolean(zoomed), back, at: (value) => (turned(value) - begin) / length };
};

const spread = (values, room, size) => {
  for (let step = 1; step < values.length; step += 1) {
    const kept = values.filter((_, place) => place % step === 0);
    const wide = kept.every((value, place) => place === 0 || room(kept[place - 1], value) >= size(value));
    if (wide) return kept;
  }
  return values.slice(0, 1);
};

// The values that get a tick on an axis so many pixels long; `size` says what a label needs of them, and round
// values stand `apart` as far as that.
const ticksOf = (axis, pixels, size, apart = 45) => {
  if (axis.names) return axis.names;
  const { spec, low, high } = axis;
  const room = (one, other) => Math.abs(axis.at(other) - axis.at(one)) * pixels;
  let values = (spec.tickvals || []).filter((value) => value >= low && value <= high);
  if (values.length < 2 && spec.type === "log") values = decades(low, high);
  if (values.length < 2) {
    const fitting = (about) => rounds(low, high, about, spec.whole ? 1 : 0);
    let about = Math.max(2, Math.floor(pixels / apart));
    const wide = (found) => found.every((one, place) => !place || room(found[place - 1], one) >= size(one));
    while (about > 2 && !wide(fitting(about))) about -= 1;
    values = fitting(about);
  }
  return spread(values, room, size);
};

// Traces as marks of an SVG: lines, points, bars. Colours stay names of the page's style, so that
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

// The names below a chart, each beside a sample of what it names.

const legendOf = (traces, layout) => {
  const named = traces.filter((trace) => trace.name && trace.showlegend !== false);
  const keys = [...new Map(named.map((trace) => [trace.group, trace])).values()];
  return layout.showlegend === false || layout.multiples || keys.length < 2 ? [] : keys;
};

// What is drawn of a trace, small: lines of one colour are told apart by their dashes.
const sample = (key, trace, x, y, colour) => {
  const dashes = DASHES[trace.line?.dash];
  if (!dashes) {
    const height = trace.type === "bar" ? 9 : 4;
    return node(key, "rect", { x, y, width: 14, height, rx: 2 }, { fill: colour });
  }
  return node(key, "path", { d: `M${x} ${y + 2}h16` }, { stroke: colour, strokeWidth: 3, strokeDasharray: dashes });
};

// Draws names below the chart, and returns how high they are. A click hides what has the name, or shows it.
const drawLegend = (svg, keys, width, top, state, again) => {
  let [x, y] = [2, top];
  for (const trace of keys) {
    const words = cut(trace.name, width - 30);
    const long = 22 + widthOf(words);
    if (x > 2 && x + long > width) [x, y] = [2, y + 22];
    const hidden = state.hidden.has(trace.group);
    const key = node(svg, "g", { class: "key", tabindex: 0, role: "button", "aria-pressed": !hidden });
    key.style.opacity = hidden ? 0.4 : 1;
    node(key, "rect", { x, y: y - 12, width: long, height: 20 }, { fill: "transparent" });
    const colour = paint(trace.marker?.color || trace.line?.color);
    sample(key, trace, x, y - 6, colour);
    label(key, words, x + 19, y + 2, "start");
    const toggle = () => {
      if (!state.hidden.delete(trace.group)) state.hidden.add(trace.group);
      again();
    };
    key.addEventListener("click", toggle);
    key.addEventListener("keydown", (event) => { if (["Enter", " "].includes(event.key)) toggle(); });
    x += long + 18;
  }
  return keys.length ? y - top + 20 : 0;
};

// A chart: its axes, and its frames: one, or a small one for each of many lines.

const HEIGHT = 300;
const MULTIPLE = { height: 120, least: 120, most: 4, gap: 14, title: 20 };
const LINE = 15;

const traceOf = (trace) => {
  const { x = [], y = [] } = trace;
  const names = Array.isArray(y[0]) ? y[0].map((group, place) => `${group}\u0000${y[1][place]}`) : y;
  const points = x.map((at, place) => ({ x: at, y: names[place], text: trace.text?.[place] }));
  const group = trace.legendgroup || trace.name || "";
  return { ...trace, group, points };
};

const stackedSums = (traces) => {
  const sums = new Map();
  for (const trace of traces) {
    for (const { x, y } of trace.points) {
      const [name, value] = trace.orientation === "h" ? [y, x] : [x, y];
      sums.set(name, (sums.get(name) || 0) + (value || 0));
    }
  }
  return [...sums.values()];
};

const valuesOn = (name, traces, layout) => {
  const found = traces.flatMap((trace) => {
    const { array = [], arrayminus = [] } = (name === "y" && trace.error_y) || {};
    const own = trace.points.map((point) => point[name]);
    const above = array.map((more, place) => trace.points[place].y + more);
    const below = arrayminus.map((less, place) => trace.points[place].y - less);
    const last = (trace.orientation === "h" ? "x" : "y") === name;
    return [...own, ...above, ...below, ...(trace.type === "bar" && last ? [0] : [])];
  });
  if (layout.barmode === "stack" && traces.some((trace) => (trace.orientation === "h") === (name === "x"))) {
    found.push(...stackedSums(traces));
  }
  if (name === "y") found.push(...(layout.shapes || []).map((shape) => shape.y0));
  return found;
};

const tickLabel = (axis, value) => (axis.names ? value.split("\u0000").at(-1) : brief(value));

// How wide the names are that stand beside the y axis: those of groups, and those of ticks.
const namesWidth = (axis, width) => {
  const parts = axis.names.map((name) => name.split("\u0000"));
  const widest = (place) => Math.max(0, ...parts.map((part) => (part.at(place) ? widthOf(part.at(place)) : 0)));
  const groups = parts[0]?.length > 1 ? Math.min(widest(0) + 14, width * 0.25) : 0;
  return [groups, Math.min(widest(-1), width * (groups ? 0.3 : 0.45))];
};

const drawY = (svg, axis, box, frame, first) => {
  for (const value of ticksOf(axis, box.height, () => LINE + 4)) {
    const y = frame.y(value);
    const line = { x1: box.x, x2: box.x + box.width, y1: y, y2: y };
    if (!axis.names) node(svg, "line", line, { stroke: "var(--rule)" });
    if (!first) continue;
    const words = cut(tickLabel(axis, value), box.names);
    label(svg, words, box.x - 7, y + 4, "end").setAttribute("data-y", value);
  }
  if (!axis.names || !first || !box.groups) return;
  let before = null;
  for (const name of axis.names) {
    const [group] = name.split("\u0000");
    if (group === before) continue;
    const y = frame.y(name);
    const top = y - frame.band / 2;
    if (before !== null) {
      node(svg, "line", { x1: 0, x2: box.x + box.width, y1: top, y2: top }, { stroke: "var(--rule)" });
    }
    label(svg, cut(group, box.groups - 8), 2, y + 4, "start", { fontWeight: 600 });
    before = group;
  }
};

// Whether each name has room for itself, in lines that hold whole words.
const fitting = (names, room) => names.every((name) => wrapped(name, room).every((line) => !line.endsWith("…")));

const drawX = (svg, axis, box, frame) => {
  const size = (value) => widthOf(tickLabel(axis, value)) + 10;
  const bottom = box.y + box.height;
  const room = (axis.band || 0) * box.width - 4;
  const values = axis.names && !fitting(axis.names, room)
    ? spread(axis.names, (one, other) => frame.x(other) - frame.x(one), size)
    : ticksOf(axis, box.width, size, 80);
  for (const value of values) {
    const x = frame.x(value);
    const line = { x1: x, x2: x, y1: box.y, y2: bottom };
    if (!axis.names) node(svg, "line", line, { stroke: "var(--rule)" });
    const lines = axis.names && values.length === axis.names.length ? wrapped(value, room) : [tickLabel(axis, value)];
    lines.forEach((words, place) => {
      const made = label(svg, words, x, bottom + LINE * (place + 1));
      if (!place) made.setAttribute("data-x", value);
    });
  }
};

const frameOf = (box, xAxis, yAxis, layout) => {
  const turned = yAxis.names && layout.yaxis?.autorange === "reversed";
  const x = (value) => box.x + xAxis.at(value) * box.width;
  const y = (value) => box.y + (turned ? yAxis.at(value) : 1 - yAxis.at(value)) * box.height;
  const lying = Boolean(yAxis.names);
  const place = (point) => {
    if (point.x === null || point.y === null) return null;
    const at = [x(point.x), y(point.y)];
    return at.every(Number.isFinite) ? at : null;
  };
  return {
    x, y, place, box, xAxis, yAxis,
    floor: box.y + box.height,
    band: yAxis.names ? yAxis.band * box.height : (xAxis.band || 0) * box.width,
    bandX: (xAxis.band || 0) * box.width,
    begin: lying ? box.x : box.y + box.height,
    logarithmic: (lying ? xAxis : yAxis).spec.type === "log",
  };
};

// A window through which marks are seen: what a part enlarged leaves outside is not.
const windowOn = (svg, { x, y, width, height }) => {
  const edge = 6;
  const [left, top, wide, high] = [x - edge, y - edge, width + 2 * edge, height + 2 * edge];
  return node(svg, "svg", { x: left, y: top, width: wide, height: high, viewBox: `${left} ${top} ${wide} ${high}` });
};

const drawMarks = (parent, traces, frame, layout, hits) => {
  const barred = traces.filter((trace) => trace.type === "bar");
  if (barred.length) bars(parent, barred, frame, layout.barmode === "stack", hits);
  for (const { y0, line } of layout.shapes || []) {
    const d = `M${frame.box.x} ${frame.y(y0)}h${frame.box.width}`;
    node(parent, "path", { d }, { stroke: paint(line.color), strokeDasharray: DASHES[line.dash] || "none" });
  }
  for (const trace of traces.filter((one) => one.type === "scatter")) scatter(parent, trace, frame, hits);
};

// The others of a small multiple: there to be compared with, in the colour of rules.
const faint = (trace) => ({
  ...trace, line: { ...trace.line, color: "--faint", width: 1 }, mode: trace.mode.replace("+markers", ""),
  hoverinfo: "skip", error_y: undefined,
});

const framesOf = (layout, traces) => {
  if (!layout.multiples) return [{ title: "", traces, behind: [] }];
  return [...new Set(traces.map((trace) => trace.group))].map((group) => ({
    title: group,
    traces: traces.filter((trace) => trace.group === group),
    behind: traces.filter((one) => one.group !== group && one.mode.includes("lines")).map(faint),
  }));
};

// The boxes of the frames, and how high all of them are.
const boxesOf = (frames, layout, room, height) => {
  if (!layout.multiples) return [[{ ...room, height }], height];
  const { most, least, gap, title } = MULTIPLE;
  const fitting = Math.max(1, Math.min(most, Math.floor((room.width + gap) / (least + gap))));
  const columns = Math.ceil(frames.length / Math.ceil(frames.length / fitting));
  const width = (room.width - gap * (columns - 1)) / columns;
  const row = MULTIPLE.height + title + LINE + 10;
  const boxes = frames.map((_, place) => ({
    ...room, width, height: MULTIPLE.height, first: place % columns === 0,
    x: room.x + (place % columns) * (width + gap), y: room.y + Math.floor(place / columns) * row + title,
  }));
  return [boxes, Math.ceil(frames.length / columns) * row - LINE - 10];
};

const titleOf = (spec) => spec?.title?.text || "";

// Draws a view into its canvas; returns what the pointer needs to find its way.
const drawChart = (canvas, view, state, width, again) => {
  const { layout } = view;
  const all = view.data.map(traceOf);
  const traces = all.filter((trace) => !state.hidden.has(trace.group));
  const [xAxis, yAxis] = ["x", "y"].map((name) =>
    axisOf(layout[`${name}axis`] || {}, valuesOn(name, traces, layout), state.zoom?.[name]));
  const [titleX, titleY] = [titleOf(layout.xaxis), titleOf(layout.yaxis)];
  const own = layout.height || HEIGHT;
  const tall = layout.multiples ? MULTIPLE.height : own - 70;
  const [groups, names] = yAxis.names
    ? namesWidth(yAxis, width)
    : [0, Math.max(0, ...ticksOf(yAxis, tall, () => LINE + 4).map((value) => widthOf(brief(value)))) + 2];
  const left = names + groups + 10 + (titleY ? 18 : 0);
  const room = { x: left, y: 10, width: Math.max(60, width - left - 14), names, groups, first: true };
  const most = xAxis.names
    ? Math.max(1, ...xAxis.names.map((one) => wrapped(one, xAxis.band * room.width - 4).length)) : 1;
  const below = LINE * most + 8 + (titleX ? 20 : 0);
  const frames = framesOf(layout, traces);
  const [boxes, high] = boxesOf(frames, layout, room, own - 10 - below);
  canvas.replaceChildren();
  const svg = node(canvas, "svg", { class: "chart", width, role: "group" }, {
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  });
  const hits = [];
  const drawn = frames.map((one, place) => {
    const box = boxes[place];
    const frame = frameOf(box, xAxis, yAxis, layout);
    drawY(svg, yAxis, box, frame, box.first);
    drawX(svg, xAxis, box, frame);
    if (one.title) label(svg, cut(one.title, box.width), box.x, box.y - 7, "start", { fontWeight: 600 });
    const seen = windowOn(svg, box);
    for (const trace of one.behind) scatter(seen, trace, frame, []);
    drawMarks(seen, one.traces, frame, layout, hits);
    return frame;
  });
  const muted = { fill: "var(--muted)" };
  const bottom = room.y + high + below;
  if (titleX) label(svg, titleX, left + room.width / 2, bottom - 6, "middle", muted);
  if (titleY) {
    const middle = room.y + high / 2;
    label(svg, titleY, 12, middle, "middle", muted).setAttribute("transform", `rotate(-90 12 ${middle})`);
  }
  const height = bottom + drawLegend(svg, legendOf(all, layout), width, bottom + 18, state, again) + 4;
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { svg, hits, frames: drawn, width, height };
};
