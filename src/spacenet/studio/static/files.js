// Files and folders, dropped or chosen: which pictures they hold, and of which class each is.

const TYPES = ["image/png", "image/jpeg", "image/webp", "image/bmp"];

/** Pictures as {file, folder}: `folder` is the name of the one that holds the file, or "" if it came alone. */
export function chosen(input) {
  const found = [...input.files].map((file) => ({ file, folder: holder(file.webkitRelativePath) }));
  input.value = "";
  return sort(found);
}

const holder = (path) => path.split("/").at(-2) ?? "";

export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return sort([...transfer.files].map((file) => ({ file, folder: "" })));
  const found = [];
  for (const entry of entries) await collect(entry, "", found);
  return sort(found);
}

async function collect(entry, folder, found) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    found.push({ file: await new Promise((done, fail) => entry.file(done, fail)), folder });
    return;
  }
  const reader = entry.createReader();
  const some = () => new Promise((done, fail) => reader.readEntries(done, fail));
  for (let part = await some(); part.length; part = await some()) {
    for (const each of part) await collect(each, entry.name, found);
  }
}

/** The pictures among the files, and how many others there are. */
function sort(found) {
  const pictures = found.filter(({ file }) => TYPES.includes(file.type));
  return { pictures, others: found.length - pictures.length };
}
