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
