// The service behind the page. Every answer is JSON; an error says what was wrong.

export class Problem extends Error {
  constructor(reason, status) {
    super(reason);
    this.status = status;
  }
}

async function ask(verb, path, body, type) {
  let response;
  try {
    response = await fetch(path, { method: verb, body, headers: type ? { "content-type": type } : {} });
  } catch {
    throw new Problem("The studio does not answer. Was it ended in the terminal?", 0);
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Problem(said.error ?? `The request failed (${response.status}).`, response.status);
}

const json = async (verb, path, body, type) => (await ask(verb, path, body, type)).json();
const send = (path, content) => json("POST", path, JSON.stringify(content), "application/json");
const query = (values) => new URLSearchParams(values).toString();

export const getState = () => json("GET", "studio");
export const start = (kind) => send("studio/start", { start: kind });
export const openModel = (file) => json("POST", "studio/open", file, "application/octet-stream");
export const addExample = (label, picture) =>
  json("POST", `studio/examples?${query({ label })}`, picture, picture.type);
export const removeExample = (number) => json("DELETE", `studio/examples/${number}`);
export const removeExamples = (label) => json("DELETE", `studio/examples?${query({ label })}`);
export const learn = () => json("POST", "studio/learn");
export const getAnswer = (picture, rate) => json("POST", `studio/answer?${query({ rate })}`, picture, picture.type);
export const edit = (change) => send("edit", change);
export const getJob = (number) => json("GET", `jobs/${number}`);
export const cancelJob = (number) => json("DELETE", `jobs/${number}`);
export const download = async (name, rate) => (await ask("GET", `studio/${name}?${query({ rate })}`)).blob();

const OVER = (job) => !["queued", "running"].includes(job.state);
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Follow a job until it is over. */
export async function follow(job, show = () => {}) {
  while (!OVER(job)) {
    show(job);
    await wait(200);
    job = await getJob(job.number);
  }
  if (job.state === "failed" || job.state === "lost") throw new Problem(job.error ?? "The job failed.", 0);
  return job;
}
