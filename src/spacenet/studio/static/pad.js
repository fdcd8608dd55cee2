// A field to draw on, with a mouse, a pen or a finger.

const WIDTH = 17; // of a stroke, on a field of 280

export class Pad {
  /** `onStroke` is called after each stroke, and after one was undone. */
  constructor(canvas, onStroke = () => {}) {
    this.canvas = canvas;
    this.onStroke = onStroke;
    this.strokes = [];
    this.current = null;
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => this.end());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  get empty() {
    return this.strokes.length === 0;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const scale = this.canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  begin(event) {
    if (event.button > 0 || this.current) return;
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.current = [this.at(event)];
    this.strokes.push(this.current);
    this.draw();
  }

  move(event) {
    if (!this.current) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) this.current.push(this.at(each));
    this.draw();
  }

  end() {
    if (!this.current) return;
    this.current = null;
    this.onStroke();
  }

  undo() {
    this.strokes.pop();
    this.draw();
    this.onStroke();
  }

  clear() {
    this.strokes = [];
    this.current = null;
    this.draw();
  }

  draw() {
    const style = getComputedStyle(this.canvas);
    this.paint(this.canvas, style.getPropertyValue("--paper"), style.getPropertyValue("--ink-on-paper"));
    this.canvas.classList.toggle("blank", this.empty);
  }

  paint(canvas, paper, ink) {
    const context = canvas.getContext("2d");
    context.fillStyle = paper || "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    Object.assign(context, { strokeStyle: ink || "black", lineWidth: WIDTH, lineCap: "round", lineJoin: "round" });
    for (const [first, ...rest] of this.strokes) {
      context.beginPath();
      context.moveTo(...first);
      for (const point of rest.length ? rest : [first]) context.lineTo(...point);
      context.stroke();
    }
  }

  /** The drawing as a PNG file, black on white whatever the colors of the page are. */
  picture() {
    const copy = document.createElement("canvas");
    copy.width = copy.height = this.canvas.width;
    this.paint(copy, "white", "black");
    return new Promise((done) => copy.toBlob(done, "image/png"));
  }
}
