// What the model makes of a picture, and why.

import { bar, make, percent, percentInWords } from "./dom.js";

const NEAREST = 3;

/** The answer in one line, then the probability of every class. */
export function drawAnswer(answer) {
  const [best] = answer.classes;
  const title = answer.unknown ? "unknown" : String(best.label);
  const about = answer.unknown
    ? `It is like nothing that was taught. If it had to be one of them: ${best.label}.`
    : `${percentInWords(best.probability)} probable`;
  const seen = make("img", { src: `data:image/png;base64,${answer.seen}`, alt: "The picture as the model sees it", className: "seen" });
  const rows = answer.classes.map((each) => make("li", {},
    make("span", { className: "name" }, String(each.label)), bar(each.probability),
    make("span", { className: "figure" }, percent(each.probability))));
  return [
    make("div", { className: `verdict${answer.unknown ? " is-unknown" : ""}` }, seen,
      make("p", { className: "label" }, title), make("p", { className: "note" }, about)),
    make("ol", { className: "bars", "aria-label": "Probability of each class" }, rows),
  ];
}

/** Why: the nearest classes, and which part of the space answered. */
export function drawWhy(answer, state) {
  const parts = [make("h3", {}, "Why"), make("p", { id: "reason" }, explain(answer, state))];
  if (answer.typicality !== null) {
    const nearest = [...answer.classes].sort((one, other) => other.typicality - one.typicality).slice(0, NEAREST);
    const rows = nearest.map((each) => make("li", {},
      make("span", { className: "name" }, String(each.label)), bar(each.typicality, answer.rate, "typicality"),
      make("span", { className: "figure" }, percent(each.typicality))));
    parts.push(make("h4", {}, "Nearest classes, and how typical of each"),
      make("ol", { className: "bars", "aria-label": "Typicality for the nearest classes" }, rows));
  }
  return parts;
}

function explain(answer, state) {
  const [best] = answer.classes;
  const units = state.layers.reduce((sum, layer) => sum + (layer.reserved[best.task - 1] ?? 0), 0);
  const own = units ? `, with ${units} units of its own,` : "";
  const part = `Task ${best.task}${own} has ${percentInWords(answer.tasks[best.task - 1])} of the probability.`;
  if (answer.typicality === null) return `${part} This model cannot say “unknown”: its method keeps no class statistics, or a task had a single example of each class.`;
  const less = ({ label, typicality }) => `Of the examples of ${label}, ${percentInWords(typicality)} are less typical than this`;
  const nearest = answer.classes.reduce((one, other) => (other.typicality > one.typicality ? other : one));
  if (answer.unknown) return `${less(nearest)}, and that is the nearest class. Below ${percent(answer.rate)} it says “unknown”. ${part}`;
  const also = nearest === best ? "" : ` It is typical of ${nearest.label}, too, but that is less probable.`;
  return `${less(best)}.${also} ${part}`;
}

/** How easily it says "unknown". */
export function drawRate(rate, onChange) {
  const text = () => `${percent(Number(input.value) / 100)} of what it knows may be called unknown by mistake`;
  const input = make("input", { type: "range", min: 1, max: 30, step: 1, value: 100 * rate, id: "rate", "aria-describedby": "rate-text" });
  const shown = make("p", { className: "note", id: "rate-text" }, text());
  input.addEventListener("input", () => { shown.textContent = text(); });
  input.addEventListener("change", () => onChange(Number(input.value) / 100));
  return make("div", { className: "rate" }, make("label", { htmlFor: "rate" }, "How cautious"), input, shown);
}
