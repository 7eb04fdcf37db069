"use strict";
// Draws the plots in the colours of the page's style, and again when these change or the page is printed.
(() => {
  const PRINTED = 660;
  const root = document.documentElement;
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const figures = [...document.querySelectorAll("[data-plot]")];

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // A colour is a name of the style wherever plotly takes a colour, and nowhere else.
  const painted = (value, key) => {
    if (typeof value === "string") {
      return /colou?r/i.test(key) && value.startsWith("--") ? colour(value) : value;
    }
    if (Array.isArray(value)) return value.map((each) => painted(each, key));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, painted(each, name)]));
  };

  const axis = () => ({
    gridcolor: colour("--rule"), linecolor: colour("--rule"), zerolinecolor: colour("--rule"),
    dividercolor: colour("--rule"),
    automargin: true, title: { standoff: 8 },
  });

  // The legend stands below the plot: so much room it needs.
  const legendHeight = (data, width) => {
    const names = data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name);
    const longest = Math.max(0, ...names.map((name) => name.length));
    const columns = Math.max(1, Math.floor(width / (60 + 7 * longest)));
    return names.length > 1 ? 20 * Math.ceil(names.length / columns) : 0;
  };

  const layout = (own, data, room, width) => {
    const chosen = painted(own, "");
    const legend = chosen.showlegend === false ? 0 : legendHeight(data, room);
    const shared = {
      autosize: !width, height: 300 + legend, margin: { l: 46, r: 14, t: 24, b: 56 + legend },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--ink") },
      legend: {
        orientation: "h", traceorder: "normal", yref: "container", y: 0.02, yanchor: "bottom", x: 0,
        bgcolor: "rgba(0,0,0,0)",
      },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--accent") },
      hoverlabel: { bgcolor: colour("--paper"), bordercolor: colour("--rule"), font: { color: colour("--ink") } },
      hovermode: "closest", dragmode: "zoom", separators: ".,",
    };
    const axes = {};
    for (const name of ["xaxis", "yaxis"]) {
      const given = chosen[name] || {};
      axes[name] = { ...axis(), ...given, title: { standoff: 8, ...(given.title || {}) } };
    }
    return { ...shared, ...chosen, ...axes, ...(width ? { width } : {}) };
  };

  const draw = (figure, width) => {
    const views = plots[Number(figure.dataset.plot)];
    const select = figure.querySelector("select");
    const view = views[select ? Number(select.value) : 0];
    const canvas = figure.querySelector(".canvas");
    const room = width || canvas.clientWidth;
    const config = {
      responsive: true, displaylogo: false, displayModeBar: room >= 480, scrollZoom: false,
      // Named one by one: others, such as those that share a plot, would send it somewhere.
      modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    };
    return Plotly.react(canvas, painted(view.data, ""), layout(view.layout, view.data, room, width), config);
  };

  const drawAll = (width) => Promise.all(figures.map((figure) => draw(figure, width)));

  for (const figure of figures) {
    const select = figure.querySelector("select");
    if (select) select.addEventListener("change", () => draw(figure));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll());
  addEventListener("beforeprint", () => { root.dataset.print = ""; drawAll(PRINTED); });
  addEventListener("afterprint", () => { delete root.dataset.print; drawAll(); });

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
  drawAll().then(() => { root.dataset.drawn = String(figures.length); });
})();
