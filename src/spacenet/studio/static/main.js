// The page: what a person does, and what is shown of it.

import { drawAnswer, drawRate, drawWhy } from "./answer.js";
import * as api from "./api.js";
import { describeKept, drawCards, drawClasses } from "./classes.js";
import { askName, choose, confirmed } from "./dialogs.js";
import { complain, find, make, plural, say } from "./dom.js";
import { dropped } from "./files.js";
import { drawMap, drawRoom } from "./map.js";
import { Source } from "./source.js";

const AT_ONCE = 2; // examples that are sent at a time
const NAMED = 3; // files that cannot be read of which the reason is said

const page = {
  state: null,
  added: [], // names of classes, in the order in which they were added; some have no examples yet
  active: null,
  rate: 0.05,
  fresh: null, // the task that was learned last, in this page
  answered: 0, // counts pictures that were tried: a late answer must not take the place of a newer one
  job: null,
};

/** Do something that may fail, and say so if it does. */
async function attempt(act) {
  complain("");
  try {
    return await act();
  } catch (error) {
    complain(error.message);
    return null;
  }
}

async function refresh() {
  show(await api.getState());
}

// Showing

function show(state) {
  page.state = state;
  const waiting = state.examples.map(({ label }) => label);
  page.added = [...page.added, ...waiting.filter((label) => !page.added.includes(label))];
  if (!page.added.includes(page.active)) page.active = page.added.at(-1) ?? null;
  const welcome = !state.started;
  find("welcome").hidden = !welcome;
  for (const name of ["work", "menu", "privacy"]) find(name).hidden = welcome;
  find("start-photos").disabled = Boolean(state.photo_problem);
  if (state.photo_problem) find("photo-note").textContent = state.photo_problem;
  if (welcome) return;
  teach.offer(state.kind);
  tryOut.offer(state.kind);
  showTeaching();
  showKnown();
}

function showTeaching() {
  const { state, added, active, job } = page;
  const held = new Map(state.examples.map(({ label, examples }) => [label, examples]));
  const focused = document.activeElement?.getAttribute("aria-label");
  find("cards").replaceChildren(...drawCards(added.map((label) => ({ label, examples: held.get(label) ?? [] })), active, cardActs));
  if (focused && document.activeElement === document.body) find("cards").querySelector(".card-head")?.focus();
  find("collect").hidden = !active;
  find("collect-title").textContent = `Examples of ${active}`;
  teach.button("use").textContent = active ? `Add to ${active.length > 24 ? `${active.slice(0, 23)}…` : active}` : "Add example";
  const count = state.examples.reduce((sum, { examples }) => sum + examples.length, 0);
  const learn = find("learn");
  learn.disabled = !count || Boolean(job);
  learn.textContent = count ? `Learn ${plural(count, "example")}` : "Learn";
  learn.hidden = Boolean(job);
  find("progress").hidden = !job;
  find("learn-note").textContent = job ? "" : advise(count, state.examples.length);
}

function advise(count, classes) {
  if (!page.added.length) return "Add a class first, then show examples of it.";
  if (!count) return "Five to ten examples of each class work well.";
  return `${plural(count, "example")} of ${plural(classes, "class", "classes")}. One in five is set aside to measure accuracy.`;
}

function showKnown() {
  const { state } = page;
  find("classes").replaceChildren(drawClasses(state, classActs));
  find("kept").textContent = describeKept(state);
  showMap();
  find("room").replaceChildren(drawRoom(state));
  find("undo").hidden = !state.can_undo;
  const knows = state.tasks > 0;
  find("try-source").hidden = !knows;
  find("try-first").hidden = knows;
  find("download").disabled = !knows;
  find("where").textContent = state.file
    ? `The model is kept in ${state.file}.`
    : "The model is in a temporary folder and ends with the studio. Download it to keep it.";
}

/** The map, with the task that answered. */
function showMap(answer = null) {
  const task = answer?.classes[0].task ?? null;
  find("map").replaceChildren(drawMap(page.state, { highlight: task, fresh: page.fresh }));
  find("map-note").textContent = answer ? `Task ${task} ${answer.unknown ? "came nearest" : "has answered"}.` : "";
  page.fresh = null;
}

function clearAnswer() {
  page.answered += 1;
  tryOut.pad.clear();
  find("answer").replaceChildren();
  find("answer").removeAttribute("aria-busy");
  find("why").hidden = true;
}

// Teaching

const cardActs = {
  select(label) {
    page.active = label;
    showTeaching();
  },
  removeExample: (label, number) => attempt(async () => {
    show(await api.removeExample(number));
    say(`An example of ${label} was removed.`);
  }),
  removeClass: (label) => attempt(async () => {
    page.added = page.added.filter((each) => each !== label);
    show(await api.removeExamples(label));
    say(`${label} and its examples were removed.`);
  }),
};

function addClass(name) {
  if (!page.added.includes(name)) page.added.push(name);
  page.active = name;
  showTeaching();
}

find("add-class").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = find("class-name");
  const name = input.value.trim().replace(/\s+/g, " ");
  if (!name) return;
  input.value = "";
  addClass(name);
  say(`Class ${name} was added. Show examples of it.`);
});

const addPicture = (picture) => attempt(async () => {
  if (!page.active) throw new Error("Add a class first.");
  const { label, count } = await api.addExample(page.active, picture);
  await refresh();
  say(`${plural(count, "example")} of ${label}.`);
});

/** Add pictures of files; those of a folder belong to the class that it is named like. */
const addFiles = ({ pictures, others }, into = null) => attempt(async () => {
  const alone = into ?? page.active;
  if (pictures.some(({ folder }) => !folder) && !alone) {
    throw new Error("Add a class first, or drop folders whose names are the classes.");
  }
  const left = pictures.map(({ file, folder }) => ({ file, label: into ?? (folder || alone) }));
  const total = left.length;
  const bad = [];
  let done = 0;
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      try {
        await api.addExample(next.label, next.file);
      } catch (error) {
        if (!error.status || error.status === 413) throw error;
        bad.push(`${next.file.name}: ${error.message}`);
      }
      done += 1;
      say(`${done} of ${total} pictures added`);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    await refresh();
  }
  if (others) bad.push(`${plural(others, "file")} that are no PNG, JPEG, WebP or BMP pictures`);
  if (bad.length) throw new Error(`Left out: ${bad.slice(0, NAMED).join("; ")}${bad.length > NAMED ? `; and ${bad.length - NAMED} more` : ""}`);
});

function showProgress(job) {
  const bar = find("progress-bar");
  if (job.epoch) bar.value = job.epoch / job.epochs;
  else bar.removeAttribute("value");
  const seconds = `${job.seconds.toFixed(1)} s`;
  const text = job.epoch ? `Epoch ${job.epoch} of ${job.epochs}, ${seconds}` : `Getting ready, ${seconds}`;
  find("progress-text").textContent = text;
}

find("learn").addEventListener("click", () => attempt(async () => {
  const labels = page.state.examples.map(({ label }) => label);
  page.job = await api.learn();
  showTeaching();
  find("cancel").focus();
  say("Learning has begun.");
  const tasks = page.state.tasks;
  try {
    const job = await api.follow(page.job, showProgress);
    page.job = null;
    if (job.state === "done") page.added = page.added.filter((label) => !labels.includes(label));
    const state = await api.getState();
    page.fresh = state.tasks > tasks ? state.tasks : null;
    clearAnswer();
    show(state);
    say(job.state === "done"
      ? `Learned ${labels.join(", ")} in ${job.seconds.toFixed(1)} s. The examples are deleted.`
      : "Learning was canceled; the model is as it was, and the examples are still there.");
  } finally {
    page.job = null;
    showTeaching();
    (find("learn").disabled ? find("class-name") : find("learn")).focus();
  }
}));

find("cancel").addEventListener("click", () => attempt(() => api.cancelJob(page.job.number)));

// Trying

const tryPicture = (picture) => attempt(async () => {
  if (!picture) {
    clearAnswer();
    return showMap();
  }
  page.lastPicture = picture;
  const number = (page.answered += 1);
  find("answer").setAttribute("aria-busy", "true");
  const answer = await api.getAnswer(picture, page.rate).finally(() => {
    if (number === page.answered) find("answer").removeAttribute("aria-busy");
  });
  if (number !== page.answered) return null;
  find("answer").replaceChildren(...drawAnswer(answer));
  const rate = page.state.tells_unknown ? [drawRate(page.rate, changeRate)] : [];
  const changing = document.activeElement?.id === "rate"; // it is drawn anew; who has moved on keeps the focus where it is
  find("why").replaceChildren(...drawWhy(answer, page.state), ...rate);
  if (changing) find("rate")?.focus();
  find("why").hidden = false;
  return showMap(answer);
});

function changeRate(rate) {
  page.rate = rate;
  return tryPicture(page.lastPicture);
}

// Editing

const change = (what, said) => attempt(async () => {
  await api.follow(await api.edit(what));
  clearAnswer();
  await refresh();
  say(said);
});

const classActs = {
  more(label) {
    addClass(String(label));
    find("teach-title").scrollIntoView({ block: "nearest" });
    say(`Show more examples of ${label}.`);
    find("class-name").focus();
  },
  async rename(label) {
    const name = await askName(`Rename ${label}`, String(label));
    const typed = typeof label === "number" && name !== "" && Number.isFinite(Number(name)) ? Number(name) : name;
    if (name && typed !== label) await change({ action: "rename", label, new: typed }, `${label} is now called ${name}.`);
  },
  async forget(label) {
    const text = "Everything that is kept of this class alone is removed from the model. This cannot be undone.";
    if (await confirmed(`Forget ${label}?`, text, "Forget")) await change({ action: "forget", label }, `${label} was forgotten.`);
  },
};

find("undo").addEventListener("click", async () => {
  const text = "The model becomes what it was before the last task, or the last change of a name. Examples that were learned are deleted already.";
  if (await confirmed("Undo the last change?", text, "Undo")) await change({ action: "undo" }, "The last change was undone.");
});

// The model

const begin = (load, said) => attempt(async () => {
  say("One moment…");
  Object.assign(page, { added: [], active: null, fresh: null });
  clearAnswer();
  show(await load());
  say(said);
  find("class-name").focus();
});

/** Whether the model may go: one that has a file of its own stays there. */
const leaving = async () => !page.state.started || page.state.file || !(page.state.tasks || page.state.examples.length)
  || confirmed("Leave this model?", "It has no file of its own: it is gone unless you have downloaded it.", "Leave it");

find("start-drawings").addEventListener("click", () => begin(() => api.start("drawings"), "Add a class, then draw some examples."));
find("start-photos").addEventListener("click", () => begin(() => api.start("photos"), "Add a class, then show some photos."));

const chooseModel = async () => (await leaving()) && find("model-file").click();
find("open").addEventListener("click", chooseModel);
find("welcome-open").addEventListener("click", chooseModel);
find("model-file").addEventListener("change", ({ target }) => {
  const [file] = target.files;
  target.value = "";
  if (file) begin(() => api.openModel(file), `${file.name} is open.`);
});

find("restart").addEventListener("click", async () => {
  if (!(await leaving())) return;
  clearAnswer();
  find("work").hidden = true;
  find("welcome").hidden = false;
  find("start-drawings").focus();
});

find("download").addEventListener("click", async () => {
  const text = "The model file goes on learning here, or with spacenet learn. ONNX is for use elsewhere, without spacenet.";
  const name = await choose("Download", text, [["model.onnx", "ONNX"], ["model.safetensors", "Model file"]]);
  if (!name) return;
  await attempt(async () => {
    say(`Making ${name}…`);
    const link = make("a", { href: URL.createObjectURL(await api.download(name, page.rate)), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say(`${name} is downloaded.`);
  });
});

// Dropping

const hint = find("drop-hint");
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  hint.hidden = false;
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) hint.hidden = true;
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  hint.hidden = true;
  if (!page.state?.started) return complain("Choose what to start from first.");
  const card = event.target.closest?.(".card")?.dataset.label ?? null;
  const tries = event.target.closest?.(".try");
  return attempt(async () => {
    const found = await dropped(event.dataTransfer);
    if (tries && page.state.tasks && found.pictures.length) await tryPicture(found.pictures[0].file);
    else await addFiles(found, card);
  });
});

const teach = new Source(find("teach-source"), { name: "teach", onPicture: addPicture, onFiles: addFiles });
const tryOut = new Source(find("try-source"), {
  name: "try", live: true, onPicture: tryPicture, onFiles: ({ pictures }) => pictures.length && tryPicture(pictures[0].file),
});
attempt(refresh);
