// Making elements. Text is always set as text: a class may be called anything, also <img onerror=…>.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

/** An element with properties (`onclick`, `className`, …), attributes (`aria-…`, `data-…`, `role`) and children. */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function makeSvg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** "1 example", "2 examples". */
export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** A fraction as a percentage that is not 0 or 100 unless it is. */
export function percent(fraction) {
  const value = 100 * fraction;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value < 100 && value > 99.9) return "> 99.9 %";
  return `${value < 10 || value > 99 ? Number(value.toFixed(1)) : Math.round(value)} %`;
}

/** The same in a sentence. */
export function percentInWords(fraction) {
  return percent(fraction).replace("<", "fewer than").replace(">", "over");
}

/** A bar from 0 to 1, with a mark if there is one. What it says is also in a text beside it. */
export function bar(fraction, mark = null, className = "") {
  const filled = make("span", { className: "fill" });
  filled.style.width = `${100 * fraction}%`;
  const made = make("span", { className: `bar ${className}`, "aria-hidden": "true" }, filled);
  if (mark !== null) {
    const line = make("span", { className: "mark" });
    line.style.left = `${100 * mark}%`;
    made.append(line);
  }
  return made;
}

const SHOWN = 4000; // milliseconds
let fading = 0;

/** Say something to people who see the page, for a while, and to those who hear it. */
export function say(text) {
  const place = find("status");
  place.textContent = text;
  place.classList.add("shown");
  clearTimeout(fading);
  fading = setTimeout(() => place.classList.remove("shown"), SHOWN);
}

/** Say what went wrong, until the next attempt. */
export function complain(text) {
  const place = find("problem");
  place.hidden = !text;
  place.replaceChildren(...(text ? [text, make("button", { type: "button", onclick: () => complain("") }, "Dismiss")] : []));
}
