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
  return { ...trace, group, points: trace.type === "heatmap" ? [] : points };
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
    if (trace.type === "heatmap") return trace[name];
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
  for (const trace of traces.filter((one) => one.type === "heatmap")) fields(parent, trace, frame, hits);
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
