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
