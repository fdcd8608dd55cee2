// The capacity map: the units of each hidden layer by the task that reserved them, and how much room is left.

import { bar, make, makeSvg, plural } from "./dom.js";

const MOST = 1200; // cells of a layer; one stands for several units where there are more
const COLUMNS = 50;
const SIDE = 10;
const CELL = 8.4;

/** The map. `highlight` is the number of a task; the others are pale then. */
export function drawMap(state, { highlight = null, fresh = null } = {}) {
  if (!state.layers.length) return make("div");
  const strips = state.layers.map((layer) => make("div", { className: "layer" },
    make("p", {}, `${layer.name}: ${plural(layer.units, "unit")}`), drawLayer(layer, highlight, fresh)));
  return make("div", { className: `map${highlight ? " lit" : ""}` }, strips, legend(state, highlight));
}

function drawLayer(layer, highlight, fresh) {
  const each = Math.ceil(layer.units / MOST);
  const areas = [
    ...layer.reserved.map((units, task) => [`task t${shade(task + 1)}`, units, task + 1]),
    ["shared", layer.shared, 0],
    ["unused", layer.unused, 0],
  ];
  const cells = Math.ceil(layer.units / each);
  const rows = Math.max(1, Math.ceil(cells / COLUMNS));
  const columns = Math.ceil(cells / rows);
  const svg = makeSvg("svg", { viewBox: `0 0 ${columns * SIDE} ${rows * SIDE}`, role: "img" });
  svg.setAttribute("aria-label", describe(layer));
  let used = 0;
  for (const [kind, units, task] of areas) {
    const first = Math.round(used / each);
    used += units;
    let path = "";
    for (let cell = first; cell < Math.round(used / each); cell += 1) {
      path += `M${Math.floor(cell / rows) * SIDE} ${(cell % rows) * SIDE}h${CELL}v${CELL}h-${CELL}z`;
    }
    const here = task && task === highlight ? " here" : "";
    const now = task && task === fresh ? " fresh" : "";
    if (path) svg.append(makeSvg("path", { d: path, class: kind + here + now }));
  }
  return svg;
}

/** Three tints of one color in turn, so that neighbors differ. */
const shade = (task) => (task - 1) % 3;

function describe(layer) {
  const tasks = layer.reserved.map((units, task) => `task ${task + 1} has ${units}`);
  return `${layer.name}: ${[...tasks, `${layer.shared} are shared`, `${layer.unused} are unused`].join(", ")}`;
}

function legend(state, highlight) {
  const entry = (kind, text, here = false) =>
    make("li", { className: here ? "here" : "" }, make("span", { className: `swatch ${kind}` }), text);
  const names = (task) => state.classes.filter((each) => each.task === task).map((each) => String(each.label));
  const tasks = Array.from({ length: state.tasks }, (_, index) => index + 1);
  return make("ul", { className: "legend" },
    tasks.map((task) => entry(`task t${shade(task)}`, `Task ${task}: ${names(task).join(", ") || "forgotten"}`, task === highlight)),
    entry("shared", "shared"), entry("unused", "free"));
}

/** How many tasks there are, and how many more would fit. */
export function drawRoom(state) {
  const { tasks, space_left: left } = state;
  if (left === null) return make("p", { className: "note" }, "The method of this model does not divide a network among tasks.");
  const more = left >= 100 ? "100 or more" : left;
  const text = tasks
    ? `${plural(tasks, "task")} learned; room for ${more} more like the last one`
    : `Nothing learned yet; room for about ${plural(left, "task")}`;
  return make("div", { className: "room" }, bar(tasks / Math.max(1, tasks + left)), make("p", {}, text));
}
