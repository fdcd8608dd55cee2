// The classes: cards with the examples that wait, and a table of what has been learned.

import { bar, make, plural } from "./dom.js";

const SHOWN = 60; // thumbnails of a class

/** A card for each class that examples are being collected for; `acts` are select, removeExample, removeClass. */
export function drawCards(cards, active, acts) {
  return cards.map(({ label, examples }) => {
    const count = plural(examples.length, "example");
    const chosen = label === active;
    const head = make("button", { type: "button", className: "card-head", "aria-pressed": chosen, onclick: () => acts.select(label) },
      make("span", { className: "name" }, label), make("span", { className: "count" }, count));
    const thumbs = examples.slice(-SHOWN).map((number, index) => make("button", {
      type: "button", className: "thumb", onclick: () => acts.removeExample(label, number),
      "aria-label": `Remove example ${index + 1} of ${label}`, title: "Remove",
    }, make("img", { src: `studio/examples/${number}`, alt: "", loading: "lazy" })));
    const remove = make("button", { type: "button", className: "quiet", onclick: () => acts.removeClass(label), "aria-label": `Remove ${label} and its examples` }, "Remove");
    return make("div", { className: `card${chosen ? " chosen" : ""}`, "data-label": label },
      make("div", { className: "card-top" }, head, remove), thumbs.length ? make("div", { className: "thumbs" }, thumbs) : null);
  });
}

/** The classes that were learned, with their accuracy before the last task and now. */
export function drawClasses(state, acts) {
  if (!state.classes.length) return make("p", { className: "note" }, "Nothing yet.");
  const action = (name, act, label, spoken = name) =>
    make("button", { type: "button", className: "quiet", onclick: () => act(label), "aria-label": `${spoken}: ${label}`, title: spoken }, name);
  const rows = state.classes.map(({ label, task, before, after }) => make("tr", {},
    make("th", { scope: "row" }, String(label), make("span", { className: "task-of" }, `task ${task}`)),
    make("td", {}, score(before, "–")), make("td", {}, score(after, "not measured")),
    make("td", { className: "acts" }, action("More", acts.more, label, "More examples"), action("Rename", acts.rename, label),
      state.classes.length > 1 ? action("Forget", acts.forget, label) : null)));
  const head = make("tr", {}, ["Class", "Before last task", "Now"].map((name) => make("th", { scope: "col" }, name)),
    make("th", { scope: "col" }, make("span", { className: "sr" }, "Change")));
  return make("table", {}, make("caption", { className: "sr" }, "Accuracy of each class on examples that were set aside"),
    make("thead", {}, head), make("tbody", {}, rows));
}

const score = (counted, without) => (counted
  ? make("span", { className: "score" }, bar(counted.right / counted.of), `${counted.right} of ${counted.of}`)
  : make("span", { className: "note" }, without));

/** Whether the last task made it forget, in a sentence. */
export function describeKept(state) {
  const old = state.classes.filter(({ before, after }) => before && after);
  if (!old.length) {
    return state.classes.some(({ after }) => after) ? "Right answers on examples that were set aside and never learned." : "";
  }
  const total = (when) => old.reduce((sum, each) => [sum[0] + each[when].right, sum[1] + each[when].of], [0, 0]);
  const [before, now] = [total("before"), total("after")];
  const said = `Of what it knew before the last task, it had ${before[0]} of ${before[1]} right; now it has ${now[0]} of ${now[1]}`;
  return now[0] / now[1] >= before[0] / before[1] ? `${said}. Nothing was forgotten.` : `${said}.`;
}
