// Questions in front of the page. Each returns what was chosen, or null.

import { find, make } from "./dom.js";

function ask(title, content, buttons) {
  const dialog = find("dialog");
  const form = make("form", { method: "dialog" },
    make("h2", { id: "dialog-title" }, title), ...content,
    make("div", { className: "row end" }, make("button", { type: "button", onclick: () => dialog.close() }, "Back"), ...buttons));
  dialog.replaceChildren(form);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue || null), { once: true }));
}

/** Whether to do something that cannot simply be taken back. */
export const confirmed = async (title, text, verb) =>
  (await ask(title, [make("p", {}, text)], [make("button", { value: "yes", className: "primary" }, verb)])) === "yes";

export async function askName(title, before) {
  const input = make("input", { id: "new-name", value: before, required: true, maxLength: 100 });
  const label = make("label", { htmlFor: "new-name" }, "New name");
  const chosen = await ask(title, [label, input], [make("button", { value: "yes", className: "primary" }, "Rename")]);
  return chosen ? input.value.trim() : null;
}

export const choose = (title, text, choices) =>
  ask(title, [make("p", {}, text)], choices.map(([value, name]) => make("button", { value, className: "primary" }, name)));
