// Numbers as text, and axes: the positions of values, and the values that get a tick.

const formatters = new Map();
const format = (value, options) => {
  const key = JSON.stringify(options);
  if (!formatters.has(key)) formatters.set(key, new Intl.NumberFormat("en", options));
  return formatters.get(key).format(value);
};

// Return a number with at most `digits` significant digits: 12,500; 2.5M; 0.001; 1e-9.
const formatNumber = (value, digits = 6) => {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-5 || size >= 1e12)) {
    return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  }
  const [unit, sign] = size >= 1e6 ? [1e6, "M"] : [1, ""];
  return format(value / unit, { maximumSignificantDigits: digits }) + sign;
};

// Return a value in the form ".3g" (significant digits) or ".2f" (decimals), always with grouped thousands.
const formatValue = (value, form) => {
  if (typeof value !== "number") return String(value ?? "").replace("\u0000", ", ");
  const [, digits, kind] = /^,?\.(\d+)([fg])$/.exec(form || "") || [];
  if (kind === "f") return format(value, { minimumFractionDigits: +digits, maximumFractionDigits: +digits });
  return formatNumber(value, kind ? +digits : 6);
};

const fillTemplate = (template, point) =>
  template.replace(/%\{(x|y|text)(?::([^}]*))?\}/g, (_, key, form) => formatValue(point[key], form));

const powersOfTen = (low, high) => {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => Number(`1e${first + index}`));
};

// Return about `count` round values from `low` to `high`. Their distance is at least `minStep`.
const roundValues = (low, high, count, minStep) => {
  const rough = Math.max(minStep, (high - low) / Math.max(1, count));
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * ([1, 2, 5, 10].find((times) => times * ten >= rough * 0.999) || 10);
  const values = [];
  if (!Number.isFinite(step) || step <= 0) return [low];
  for (let factor = Math.ceil(low / step - 1e-9); factor * step <= high + step * 1e-9; factor += 1) {
    if (values.length > 50) break;
    values.push(Number((factor * step).toPrecision(12)));
  }
  return values;
};

// Return the range of a numeric axis, in data units: all values, and a margin.
const rangeOf = (spec, values) => {
  const numbers = values.filter((value) => typeof value === "number" && (spec.type !== "log" || value > 0));
  let low = Infinity;
  let high = -Infinity;
  for (const value of numbers) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return spec.type === "log" ? [0.1, 10] : [0, 1];
  if (spec.type === "log") {
    // Only two or more ticks show that a scale is logarithmic.
    if (!spec.tickvals && powersOfTen(low, high).length < 2) {
      low = 10 ** Math.floor(Math.log10(low) + 1e-9);
      high = Math.max(10 ** Math.ceil(Math.log10(high) - 1e-9), low * 10);
    }
    const margin = Math.max((high / low) ** 0.03, 1.02);
    return [low / margin, high * margin];
  }
  const zero = spec.rangemode === "tozero";
  if (zero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  const margin = (high - low || Math.abs(high) || 1) * 0.05;
  return [zero && low === 0 ? 0 : low - margin, zero && high === 0 ? 0 : high + margin];
};

// Return an axis: share(value) is a position from 0 (start) to 1 (end), valueAt the inverse, `band` a name's share.
const axisOf = (spec, values, zoomRange) => {
  if (spec.type === "category" || values.some((value) => typeof value === "string")) {
    const names = [...new Set(values.filter((value) => value !== null))];
    const indexes = new Map(names.map((name, index) => [name, index]));
    return { spec, names, share: (name) => (indexes.get(name) + 0.5) / names.length, band: 1 / names.length };
  }
  const [low, high] = zoomRange || spec.range || rangeOf(spec, values);
  const scale = spec.type === "log" ? Math.log10 : (value) => value;
  const begin = scale(low);
  const length = scale(high) - begin || 1;
  const valueAt = (share) => (spec.type === "log" ? 10 ** (begin + share * length) : begin + share * length);
  return { spec, low, high, valueAt, share: (value) => (scale(value) - begin) / length };
};

// Return whether labels fit: whether distance(a, b) of neighbours is at least size(b), the label's size, in pixels.
const labelsFit = (values, distance, size) =>
  values.every((value, index) => index === 0 || distance(values[index - 1], value) >= size(value));

// Return every n-th of the values, with the smallest n for which the labels fit.
const thinOut = (values, distance, size) => {
  for (let step = 1; step < values.length; step += 1) {
    const selection = values.filter((_, index) => index % step === 0);
    if (labelsFit(selection, distance, size)) return selection;
  }
  return values.slice(0, 1);
};

// Return the values that get a tick. `pixels` is the length of the axis, size(value) the space that a label needs,
// and `spacing` the usual distance of round values, all in pixels.
const ticksOf = (axis, pixels, size, spacing = 45) => {
  if (axis.names) return axis.names;
  const { spec, low, high } = axis;
  const distance = (a, b) => Math.abs(axis.share(b) - axis.share(a)) * pixels;
  let values = (spec.tickvals || []).filter((value) => value >= low && value <= high);
  if (values.length < 2 && spec.type === "log") values = powersOfTen(low, high);
  if (values.length < 2) {
    let count = Math.max(2, Math.floor(pixels / spacing));
    const nextValues = () => roundValues(low, high, count, spec.whole ? 1 : 0);
    while (count > 2 && !labelsFit(nextValues(), distance, size)) count -= 1;
    values = nextValues();
  }
  return thinOut(values, distance, size);
};

// Marks of the traces in an SVG: lines, points and bars. Colours stay names of the page's style, so that they change
// with it. `hits` collects the positions of marks, in pixels, for the pointer.

const node = (parent, name, attributes = {}, style = {}) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, typeof value === "number" ? Number(value.toFixed(2)) : value);
  }
  for (const [key, value] of Object.entries(style)) element.style[key] = value;
  parent.append(element);
  return element;
};

const paint = (name) => (name && name.startsWith("--") ? `var(${name})` : name || "currentColor");
const DASHES = { dash: "7 5", dot: "2 4", dashdot: "7 4 2 4" };

const pen = document.createElement("canvas").getContext("2d");
const widthOf = (text) => {
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
};

// Return the text, shortened with "…" if it is wider than `room` pixels.
const shorten = (text, room) => {
  if (widthOf(text) <= room) return text;
  let length = text.length;
  while (length > 1 && widthOf(`${text.slice(0, length)}…`) > room) length -= 1;
  return `${text.slice(0, length)}…`;
};

// Return the text in lines of at most `room` pixels, broken after spaces and hyphens. Longer words are shortened.
const wrapText = (text, room) => {
  const lines = [""];
  for (const part of text.match(/[^ -]*[ -]?/g).filter(Boolean)) {
    if (lines.at(-1) && widthOf(lines.at(-1) + part.trimEnd()) > room) lines.push("");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => shorten(line.trim(), room));
};

const label = (parent, text, x, y, anchor = "middle", style = {}) => {
  const element = node(parent, "text", { x, y, "text-anchor": anchor }, { fill: "var(--ink)", ...style });
  element.textContent = text;
  return element;
};

// Return the path of a line, with gaps at missing points, or of the area above y = `floor` if that is not null.
const pathOf = (points, shape, floor) => {
  let path = "";
  let previous = null;
  const close = () => {
    if (previous && floor !== null) path += `V${floor}`;
    previous = null;
  };
  for (const point of points) {
    if (!point) {
      close();
      continue;
    }
    const [x, y] = point.map((value) => Number(value.toFixed(2)));
    if (!previous) path += floor === null ? `M${x} ${y}` : `M${x} ${floor}V${y}`;
    else if (shape === "hv") path += `H${x}V${y}`;
    else if (shape === "hvh") path += `H${(previous[0] + x) / 2}V${y}H${x}`;
    else path += `L${x} ${y}`;
    previous = [x, y];
  }
  close();
  return path;
};

const marker = (parent, trace, x, y) => {
  const { color, size = 7, symbol, opacity = 1 } = trace.marker || {};
  const style = { fill: paint(color), fillOpacity: opacity };
  if (symbol !== "diamond") return node(parent, "circle", { cx: x, cy: y, r: size / 2, class: "mark" }, style);
  const reach = size * 0.7;
  const points = `${x},${y - reach} ${x + reach},${y} ${x},${y + reach} ${x - reach},${y}`;
  return node(parent, "polygon", { points, class: "mark" }, style);
};

const errorBars = (parent, trace, frame) => {
  const { array, arrayminus, color } = trace.error_y;
  trace.points.forEach((point, index) => {
    const position = frame.position(point);
    const [high, low] = [point.y + array[index], point.y - arrayminus[index]];
    if (!position || !(high > low)) return;
    const x = position[0];
    const [top, end] = [high, low].map((value) => frame.y(value));
    const bottom = Number.isFinite(end) ? end : frame.floor;
    const d = `M${x - 4} ${top}H${x + 4}M${x} ${top}V${bottom}M${x - 4} ${bottom}H${x + 4}`;
    node(parent, "path", { d }, { stroke: paint(color), strokeWidth: 1.2, fill: "none" });
  });
};

const scatter = (parent, trace, frame, hits) => {
  const { line = {}, mode = "lines" } = trace;
  const points = trace.points.map((point) => frame.position(point));
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
  points.forEach((position, index) => {
    if (!position) return;
    if (mode.includes("markers")) marker(parent, trace, ...position);
    if (trace.hoverinfo !== "skip") hits.push({ x: position[0], y: position[1], trace, point: trace.points[index] });
  });
};

const MAX_BAR_WIDTH = 72;

// Draw bars side by side, or stacked. They begin at zero, or at the start of a logarithmic axis, which has no zero.
const bars = (parent, traces, frame, stacked, hits) => {
  const sums = new Map();
  traces.forEach((trace, number) => {
    const isHorizontal = trace.orientation === "h";
    for (const point of trace.points) {
      const [name, value] = isHorizontal ? [point.y, point.x] : [point.x, point.y];
      const [along, across] = isHorizontal ? [frame.x, frame.y] : [frame.y, frame.x];
      if (typeof value !== "number") continue;
      const band = Math.min(frame.band * 0.8, (stacked ? 1 : traces.length) * MAX_BAR_WIDTH);
      const width = stacked ? band : band / traces.length;
      const begin = stacked ? sums.get(name) || 0 : 0;
      sums.set(name, begin + value);
      const from = frame.logarithmic ? frame.begin : along(begin);
      const to = along(begin + value);
      if (!Number.isFinite(to)) continue;
      const side = across(name) - band / 2 + (stacked ? 0 : number * width);
      const [low, length] = [Math.min(from, to), Math.abs(to - from)];
      const [x, y, w, h] = isHorizontal ? [low, side, length, width] : [side, low, width, length];
      const style = { fill: paint(trace.marker.color) };
      node(parent, "rect", { x, y, width: w, height: Math.max(h, 0.5), class: "bar" }, style);
      hits.push({ x: x + w / 2, y: y + h / 2, half: [w / 2, h / 2], trace, point });
    }
  });
};

// The legend: names below a chart, each with a sample of its line or bar.

const legendOf = (traces, layout) => {
  const namedTraces = traces.filter((trace) => trace.name && trace.showlegend !== false);
  const keys = [...new Map(namedTraces.map((trace) => [trace.group, trace])).values()];
  return layout.showlegend === false || layout.multiples || keys.length < 2 ? [] : keys;
};

// Draw a small sample of a trace. Its dashes distinguish lines of the same colour.
const sample = (key, trace, x, y, colour) => {
  const dashes = DASHES[trace.line?.dash];
  if (!dashes) {
    const height = trace.type === "bar" ? 9 : 4;
    return node(key, "rect", { x, y, width: 14, height, rx: 2 }, { fill: colour });
  }
  return node(key, "path", { d: `M${x} ${y + 2}h16` }, { stroke: colour, strokeWidth: 3, strokeDasharray: dashes });
};

// Draw the legend from height `top` on; return its height in pixels. A click on a name hides or shows its traces.
const drawLegend = (svg, keys, width, top, state, redraw) => {
  let [x, y] = [2, top];
  for (const trace of keys) {
    const text = shorten(trace.name, width - 30);
    const length = 22 + widthOf(text);
    if (x > 2 && x + length > width) [x, y] = [2, y + 22];
    const isHidden = state.hidden.has(trace.group);
    const key = node(svg, "g", { class: "key", tabindex: 0, role: "button", "aria-pressed": !isHidden });
    key.style.opacity = isHidden ? 0.4 : 1;
    node(key, "rect", { x, y: y - 12, width: length, height: 20 }, { fill: "transparent" });
    sample(key, trace, x, y - 6, paint(trace.marker?.color || trace.line?.color));
    label(key, text, x + 19, y + 2, "start");
    const toggle = () => {
      if (!state.hidden.delete(trace.group)) state.hidden.add(trace.group);
      redraw();
    };
    key.addEventListener("click", toggle);
    key.addEventListener("keydown", (event) => { if (["Enter", " "].includes(event.key)) toggle(); });
    x += length + 18;
  }
  return keys.length ? y - top + 20 : 0;
};

// A chart: its axes, and one frame for all traces, or a small frame for each of many lines.

const HEIGHT = 300;
const MULTIPLE = { height: 120, minWidth: 120, maxColumns: 4, gap: 14, title: 20 };
const LINE_HEIGHT = 15;
const tickHeight = () => LINE_HEIGHT + 4;

const traceOf = (trace) => {
  const { x = [], y = [] } = trace;
  const names = Array.isArray(y[0]) ? y[0].map((group, index) => `${group}\u0000${y[1][index]}`) : y;
  const points = x.map((value, index) => ({ x: value, y: names[index], text: trace.text?.[index] }));
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

// Return all values that the axis `name` ("x" or "y") must include: points, ends of error bars and bars, levels.
const valuesOn = (name, traces, layout) => {
  const values = traces.flatMap((trace) => {
    const { array = [], arrayminus = [] } = (name === "y" && trace.error_y) || {};
    const highs = array.map((plus, index) => trace.points[index].y + plus);
    const lows = arrayminus.map((minus, index) => trace.points[index].y - minus);
    const isLength = (trace.orientation === "h" ? "x" : "y") === name;
    const zero = trace.type === "bar" && isLength ? [0] : [];
    return [...trace.points.map((point) => point[name]), ...highs, ...lows, ...zero];
  });
  if (layout.barmode === "stack" && traces.some((trace) => (trace.orientation === "h") === (name === "x"))) {
    values.push(...stackedSums(traces));
  }
  if (name === "y") values.push(...(layout.shapes || []).map((shape) => shape.y0));
  return values;
};

const tickLabel = (axis, value) => (axis.names ? value.split("\u0000").at(-1) : formatNumber(value));

// Return the widths in pixels of the names at the y axis: those of groups, and those of ticks.
const namesWidth = (axis, width) => {
  const parts = axis.names.map((name) => name.split("\u0000"));
  const widest = (index) => Math.max(0, ...parts.map((part) => (part.at(index) ? widthOf(part.at(index)) : 0)));
  const groups = parts[0]?.length > 1 ? Math.min(widest(0) + 14, width * 0.25) : 0;
  return [groups, Math.min(widest(-1), width * (groups ? 0.3 : 0.45))];
};

const drawY = (svg, axis, box, frame, first) => {
  for (const value of ticksOf(axis, box.height, tickHeight)) {
    const y = frame.y(value);
    const line = { x1: box.x, x2: box.x + box.width, y1: y, y2: y };
    if (!axis.names) node(svg, "line", line, { stroke: "var(--rule)" });
    if (!first) continue;
    label(svg, shorten(tickLabel(axis, value), box.names), box.x - 7, y + 4, "end").setAttribute("data-y", value);
  }
  if (!axis.names || !first || !box.groups) return;
  let previous = null;
  for (const name of axis.names) {
    const [group] = name.split("\u0000");
    if (group === previous) continue;
    const y = frame.y(name);
    const top = y - frame.band / 2;
    if (previous !== null) {
      node(svg, "line", { x1: 0, x2: box.x + box.width, y1: top, y2: top }, { stroke: "var(--rule)" });
    }
    label(svg, shorten(group, box.groups - 8), 2, y + 4, "start", { fontWeight: 600 });
    previous = group;
  }
};

// Return whether no name must be shortened to fit into lines of `room` pixels.
const namesFit = (names, room) => names.every((name) => wrapText(name, room).every((line) => !line.endsWith("…")));

const drawX = (svg, axis, box, frame) => {
  const size = (value) => widthOf(tickLabel(axis, value)) + 10;
  const bottom = box.y + box.height;
  const room = (axis.band || 0) * box.width - 4;
  const values = axis.names && !namesFit(axis.names, room)
    ? thinOut(axis.names, (a, b) => frame.x(b) - frame.x(a), size)
    : ticksOf(axis, box.width, size, 80);
  for (const value of values) {
    const x = frame.x(value);
    const line = { x1: x, x2: x, y1: box.y, y2: bottom };
    if (!axis.names) node(svg, "line", line, { stroke: "var(--rule)" });
    const lines = values.length === axis.names?.length ? wrapText(value, room) : [tickLabel(axis, value)];
    lines.forEach((text, index) => {
      const element = label(svg, text, x, bottom + LINE_HEIGHT * (index + 1));
      if (!index) element.setAttribute("data-x", value);
    });
  }
};

// Return a frame. x and y convert values to pixels; `position` converts a point, or returns null if a value is missing.
const frameOf = (box, xAxis, yAxis, layout) => {
  const isReversed = yAxis.names && layout.yaxis?.autorange === "reversed";
  const x = (value) => box.x + xAxis.share(value) * box.width;
  const y = (value) => box.y + (isReversed ? yAxis.share(value) : 1 - yAxis.share(value)) * box.height;
  const isHorizontal = Boolean(yAxis.names);
  const position = (point) => {
    if (point.x === null || point.y === null) return null;
    const pixels = [x(point.x), y(point.y)];
    return pixels.every(Number.isFinite) ? pixels : null;
  };
  return {
    x, y, position, box, xAxis, yAxis,
    floor: box.y + box.height,
    band: yAxis.names ? yAxis.band * box.height : (xAxis.band || 0) * box.width,
    begin: isHorizontal ? box.x : box.y + box.height,
    logarithmic: (isHorizontal ? xAxis : yAxis).spec.type === "log",
  };
};

// Return an element that shows only marks within the box: after a zoom, other marks are outside.
const clipTo = (svg, { x, y, width, height }) => {
  const edge = 6;
  const [left, top, wide, high] = [x - edge, y - edge, width + 2 * edge, height + 2 * edge];
  return node(svg, "svg", { x: left, y: top, width: wide, height: high, viewBox: `${left} ${top} ${wide} ${high}` });
};

const drawMarks = (parent, traces, frame, layout, hits) => {
  const barTraces = traces.filter((trace) => trace.type === "bar");
  if (barTraces.length) bars(parent, barTraces, frame, layout.barmode === "stack", hits);
  for (const { y0, line } of layout.shapes || []) {
    const d = `M${frame.box.x} ${frame.y(y0)}h${frame.box.width}`;
    node(parent, "path", { d }, { stroke: paint(line.color), strokeDasharray: DASHES[line.dash] || "none" });
  }
  for (const trace of traces.filter(({ type }) => type === "scatter")) scatter(parent, trace, frame, hits);
};

// Return a trace as a faint line. A small frame shows the other frames' lines like this, for comparison.
const faintTrace = (trace) => ({
  ...trace, line: { ...trace.line, color: "--faint", width: 1 }, mode: trace.mode.replace("+markers", ""),
  hoverinfo: "skip", error_y: undefined,
});

const framesOf = (layout, traces) => {
  if (!layout.multiples) return [{ title: "", traces, faintTraces: [] }];
  return [...new Set(traces.map((trace) => trace.group))].map((group) => ({
    title: group,
    traces: traces.filter((trace) => trace.group === group),
    faintTraces: traces.filter(({ group: other, mode }) => other !== group && mode.includes("lines")).map(faintTrace),
  }));
};

// Return the boxes of the frames, and their total height, in pixels.
const boxesOf = (frames, layout, room, height) => {
  if (!layout.multiples) return [[{ ...room, height }], height];
  const { maxColumns, minWidth, gap, title } = MULTIPLE;
  const limit = Math.max(1, Math.min(maxColumns, Math.floor((room.width + gap) / (minWidth + gap))));
  const columns = Math.ceil(frames.length / Math.ceil(frames.length / limit));
  const width = (room.width - gap * (columns - 1)) / columns;
  const row = MULTIPLE.height + title + LINE_HEIGHT + 10;
  const boxes = frames.map((_, index) => ({
    ...room, width, height: MULTIPLE.height, first: index % columns === 0,
    x: room.x + (index % columns) * (width + gap), y: room.y + Math.floor(index / columns) * row + title,
  }));
  return [boxes, Math.ceil(frames.length / columns) * row - LINE_HEIGHT - 10];
};

const titleOf = (spec) => spec?.title?.text || "";

// Draw a view into its canvas, `width` pixels wide. Return the SVG element, and its frames and hits for the pointer.
// `state` has the hidden groups and the zoom, and redraw() draws the chart again after a change of it.
const drawChart = (canvas, view, state, width, redraw) => {
  const { layout } = view;
  const allTraces = view.data.map(traceOf);
  const traces = allTraces.filter((trace) => !state.hidden.has(trace.group));
  const [xAxis, yAxis] = ["x", "y"].map((name) =>
    axisOf(layout[`${name}axis`] || {}, valuesOn(name, traces, layout), state.zoom?.[name]));
  const [titleX, titleY] = [titleOf(layout.xaxis), titleOf(layout.yaxis)];
  const viewHeight = layout.height || HEIGHT;
  const axisHeight = layout.multiples ? MULTIPLE.height : viewHeight - 70;
  const [groups, names] = yAxis.names
    ? namesWidth(yAxis, width)
    : [0, Math.max(0, ...ticksOf(yAxis, axisHeight, tickHeight).map((value) => widthOf(formatNumber(value)))) + 2];
  const left = names + groups + 10 + (titleY ? 18 : 0);
  const room = { x: left, y: 10, width: Math.max(60, width - left - 14), names, groups, first: true };
  const maxLines = xAxis.names
    ? Math.max(1, ...xAxis.names.map((name) => wrapText(name, xAxis.band * room.width - 4).length)) : 1;
  const below = LINE_HEIGHT * maxLines + 8 + (titleX ? 20 : 0);
  const contents = framesOf(layout, traces);
  const [boxes, boxesHeight] = boxesOf(contents, layout, room, viewHeight - 10 - below);
  canvas.replaceChildren();
  const svg = node(canvas, "svg", { class: "chart", width, role: "group" }, {
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  });
  const hits = [];
  const frames = contents.map((content, index) => {
    const box = boxes[index];
    const frame = frameOf(box, xAxis, yAxis, layout);
    drawY(svg, yAxis, box, frame, box.first);
    drawX(svg, xAxis, box, frame);
    if (content.title) label(svg, shorten(content.title, box.width), box.x, box.y - 7, "start", { fontWeight: 600 });
    const clip = clipTo(svg, box);
    for (const trace of content.faintTraces) scatter(clip, trace, frame, []);
    drawMarks(clip, content.traces, frame, layout, hits);
    return frame;
  });
  const muted = { fill: "var(--muted)" };
  const bottom = room.y + boxesHeight + below;
  if (titleX) label(svg, titleX, left + room.width / 2, bottom - 6, "middle", muted);
  if (titleY) {
    const middle = room.y + boxesHeight / 2;
    label(svg, titleY, 12, middle, "middle", muted).setAttribute("transform", `rotate(-90 12 ${middle})`);
  }
  const height = bottom + drawLegend(svg, legendOf(allTraces, layout), width, bottom + 18, state, redraw) + 4;
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { svg, hits, frames, width };
};
