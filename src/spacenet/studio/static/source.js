// Where pictures come from: a field to draw on, files, or the camera. The page has two: to teach, and to try.

import { Camera } from "./camera.js";
import { complain, find, make } from "./dom.js";
import { chosen } from "./files.js";
import { Pad } from "./pad.js";

const NAMES = { draw: "Draw", files: "Files", camera: "Camera" };
const LIVE = 600; // milliseconds between looks of the camera

export class Source {
  /**
   * `onPicture(blob, shown)` gets each picture; with `live` also one after each stroke, and some of the camera's.
   * `onFiles(found)` gets what was chosen in files.
   */
  constructor(place, { name, live = false, onPicture, onFiles }) {
    Object.assign(this, { place, name, live, onPicture, onFiles, busy: false });
    const root = find("source").content.cloneNode(true).firstElementChild;
    this.root = root;
    this.pad = new Pad(root.querySelector(".pad"), () => live && this.look());
    this.camera = new Camera(root.querySelector("video"));
    root.querySelector(".pad").setAttribute("aria-label", `Field to draw on (${name}). With the keyboard, use files.`);
    this.button("use").hidden = live;
    this.button("folder").hidden = live;
    this.button("files").textContent = live ? "Choose a file…" : "Choose files…";
    root.querySelector("[data-kind=files]").multiple = !live;
    this.button("shoot").textContent = live ? "Look now" : "Take a picture";
    this.listen();
    place.replaceChildren(root);
  }

  button(what) {
    return this.root.querySelector(`[data-do=${what}]`);
  }

  listen() {
    const on = (what, act) => this.button(what).addEventListener("click", act);
    on("undo", () => this.pad.undo());
    on("clear", () => this.clear());
    on("use", () => this.use());
    on("camera", () => this.toggleCamera());
    on("shoot", async () => this.onPicture(await this.camera.picture()));
    for (const kind of ["files", "folder"]) {
      const input = this.root.querySelector(`[data-kind=${kind}]`);
      on(kind, () => input.click());
      input.addEventListener("change", () => this.onFiles(chosen(input)));
    }
  }

  /** Show the ways that suit a kind of model. */
  offer(kind) {
    if (this.kind === kind) return;
    this.kind = kind;
    const modes = kind === "drawings" ? ["draw", "files", "camera"] : ["files", "camera"];
    const tabs = modes.map((mode) => make("button", {
      type: "button", role: "tab", id: `${this.name}-${mode}`, onclick: () => this.show(mode), "data-tab": mode,
    }, NAMES[mode]));
    const list = this.root.querySelector("[role=tablist]");
    list.setAttribute("aria-label", `Pictures to ${this.name}`);
    list.replaceChildren(...tabs);
    list.onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs.at((tabs.indexOf(document.activeElement) + step) % tabs.length);
      next.focus();
      this.show(next.dataset.tab);
    };
    this.root.querySelector(".drop-text").textContent = this.live
      ? "Drop a picture here, or choose one."
      : "Drop pictures here, or folders named like their class.";
    this.show(modes[0]);
  }

  show(mode) {
    for (const tab of this.root.querySelectorAll("[role=tab]")) {
      const here = tab.dataset.tab === mode;
      tab.setAttribute("aria-selected", here);
      tab.tabIndex = here ? 0 : -1;
    }
    for (const pane of this.root.querySelectorAll(".pane")) {
      pane.hidden = pane.dataset.mode !== mode;
      pane.setAttribute("aria-labelledby", `${this.name}-${pane.dataset.mode}`);
    }
    if (mode !== "camera" && this.camera.on) this.toggleCamera();
    this.pad.draw();
  }

  clear() {
    this.pad.clear();
    if (this.live) this.onPicture(null);
  }

  async use() {
    if (this.pad.empty) return complain("The field is empty: draw something first.");
    const picture = await this.pad.picture();
    this.pad.clear();
    this.onPicture(picture);
  }

  async look() {
    this.onPicture(this.pad.empty ? null : await this.pad.picture());
  }

  async toggleCamera() {
    try {
      if (this.camera.on) this.camera.stop();
      else await this.camera.start();
      complain("");
    } catch (error) {
      complain(error.message);
    }
    this.button("camera").textContent = this.camera.on ? "Stop the camera" : "Start the camera";
    this.button("shoot").hidden = !this.camera.on;
    if (this.live) this.watch();
  }

  async watch() {
    while (this.camera.on) {
      await this.onPicture(await this.camera.picture());
      await new Promise((done) => setTimeout(done, LIVE));
    }
  }
}
