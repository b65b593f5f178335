// Makes the pages of the studio live: forms are sent as one changes them, and what changed on the
// page is put in its place. Everything works without it, by a click on a button.

let busy = false;

// `own` says that this page made the change that is shown. After a change that was refused, or was
// made elsewhere, everything on the page is replaced by what is stored.
function put(html, address, own = false) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  if (fresh.getElementById("mistake")) own = "refused";
  document.dispatchEvent(new CustomEvent("studio:before", { detail: fresh }));
  const elsewhere = !own && fresh.body.dataset.version !== document.body.dataset.version;
  const focused = document.activeElement?.id;
  for (const part of document.querySelectorAll("[data-part]")) {
    if (!part.isConnected) continue; // it went with the part that it was in
    const other = fresh.getElementById(part.id);
    if (!other) return location.reload(); // it is another page by now
    // What a hand is on stays, as long as it is about the same thing; its own parts are replaced.
    const steady = part.dataset.steady && part.dataset.steady === other.dataset.steady;
    if (steady && !elsewhere && own !== "refused") continue;
    for (const open of part.querySelectorAll("details[open][id]"))
      fresh.getElementById(open.id)?.setAttribute("open", "");
    // What was typed or chosen is no part of the HTML: after a refusal it goes, too.
    if (other.outerHTML !== part.outerHTML || own === "refused") part.replaceWith(other);
  }
  for (const foot of document.querySelectorAll("footer.foot, nav.steps")) {
    const other = fresh.querySelector(foot.matches("footer") ? "footer.foot" : "nav.steps");
    if (other && other.outerHTML !== foot.outerHTML) foot.replaceWith(other);
  }
  document.body.dataset.version = fresh.body.dataset.version ?? "";
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
  document.dispatchEvent(new CustomEvent("studio:put", { detail: address }));
  follow();
}

function complain(words) {
  const place = document.getElementById("problem");
  place.textContent = words;
  place.scrollIntoView({ block: "nearest" });
}

const STOPPED =
  "The studio does not answer: it was stopped, or its computer sleeps. Every change up to the last " +
  "one is saved in the spec. Start it again with: incrowd studio, and open the link that it shows.";

async function ask(address, options = {}) {
  const headers = { "X-Studio": "part", "X-Back": location.pathname + location.search };
  const all = { ...options, headers: { ...headers, ...options.headers } };
  const answer = await fetch(address, all).catch(() => {
    throw new Error(STOPPED);
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text || answer.statusText);
  return { text, address: answer.url };
}

// Forms are sent one after the other, each with the version of the spec that the page shows then.
let waiting = [];

async function send(form, submitter) {
  if (busy) {
    waiting = [...waiting.filter((one) => one.form !== form), { form, submitter }];
    return;
  }
  const fields = new FormData(form);
  if (submitter?.name) fields.append(submitter.name, submitter.value); // of this form or its like
  if (document.body.dataset.version) fields.set("version", document.body.dataset.version);
  busy = true;
  document.body.toggleAttribute("data-busy", true);
  try {
    const { text, address } = await ask(form.action, {
      method: "POST",
      body: new URLSearchParams(fields),
    });
    complain("");
    const here = new URL(address).pathname === location.pathname;
    if (here && !form.matches("[data-reload]")) put(text, address, "own");
    else location.assign(address);
  } catch (error) {
    waiting = []; // what else was asked for was asked of a page that is gone
    complain(error.message);
    if (error.message !== STOPPED) await showStored(error.message);
  } finally {
    busy = false;
    document.body.toggleAttribute("data-busy", false);
    const next = waiting.shift();
    if (next) send(document.getElementById(next.form.id) ?? next.form, next.submitter);
  }
}

// Show what is stored, and why it is not what was asked for.
async function showStored(words) {
  const { text, address } = await ask(location.href);
  put(text, address, "refused");
  complain(words);
}

// Ask for the page again, and show it unless something was sent meanwhile.
async function look() {
  const version = document.body.dataset.version;
  try {
    const { text, address } = await ask(location.href);
    if (!busy && document.body.dataset.version === version) put(text, address);
    else follow();
    if (document.getElementById("problem").textContent === STOPPED) complain("");
  } catch (error) {
    complain(error.message);
    if (error.message === STOPPED) setTimeout(look, 3000); // it may be there again
  }
}

// A page that one comes back to shows what was changed elsewhere meanwhile.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && document.body.dataset.version && !busy) look();
});

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form?.matches("[data-live]") && !event.target.matches("[data-own]")) send(form);
});

let pause;
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (event.target.matches("input[type=range]") && form?.matches("[data-live]")) {
    const shown = form.querySelector(`output[for~="${event.target.id}"]`);
    if (shown && event.target.dataset.scale !== "log") shown.textContent = event.target.value;
    clearTimeout(pause);
    pause = setTimeout(() => send(form), 150);
  }
});

document.addEventListener("submit", (event) => {
  if (event.target.matches("[data-live]")) {
    event.preventDefault();
    send(event.target, event.submitter);
  }
});

// A part that is not finished is asked for again until it is.
let following = false;
async function follow() {
  if (following || !document.querySelector("[data-follow]")) return;
  following = true;
  await new Promise((done) => setTimeout(done, 250));
  following = false;
  if (busy) return follow();
  await look();
}
document.addEventListener("studio:follow", follow);
follow();

// Files that are dropped or picked.
function upload(zone, file) {
  const progress = zone.querySelector("progress");
  const request = new XMLHttpRequest();
  const query = new URLSearchParams({ name: file.name });
  if (document.body.dataset.version) query.set("version", document.body.dataset.version);
  for (const field of zone.parentElement.querySelectorAll("[data-with-upload]"))
    if (field.value.trim()) query.set(field.name, field.value.trim());
  request.open("PUT", `${zone.dataset.drop}?${query}`);
  request.setRequestHeader("X-Studio", "part");
  progress.hidden = false;
  request.upload.addEventListener("progress", (event) => {
    progress.max = event.total;
    progress.value = event.loaded;
  });
  request.addEventListener("load", () => {
    progress.hidden = true;
    if (request.status === 200) location.assign(JSON.parse(request.responseText).go);
    else if (request.status === 409) showStored(request.responseText);
    else complain(request.responseText);
  });
  request.addEventListener("error", () => {
    progress.hidden = true;
    complain("The upload was interrupted.");
  });
  request.send(file);
}

// A release to be verified: a zip file, or all files of a folder, one after the other.
async function handIn(zone, files) {
  const progress = zone.querySelector("progress");
  const form = document.getElementById("set");
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const set = Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join("");
  progress.hidden = false;
  progress.max = files.length;
  try {
    for (const [at, file] of files.entries()) {
      const name = encodeURIComponent(file.webkitRelativePath || file.name);
      await ask(`${zone.dataset.set}?set=${set}&name=${name}`, { method: "PUT", body: file });
      progress.value = at + 1;
    }
    form.elements.set.value = set;
    form.elements.key.value = document.getElementById("key").value;
    form.submit();
  } catch (error) {
    complain(error.message);
  } finally {
    progress.hidden = true;
  }
}

for (const zone of document.querySelectorAll("[data-drop], [data-set]")) {
  const take = (files) => {
    if (!files.length) return;
    if (zone.matches("[data-set]")) handIn(zone, Array.from(files));
    else upload(zone, files[0]);
  };
  for (const kind of ["dragenter", "dragover"])
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  for (const kind of ["dragleave", "drop"])
    zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files);
  });
  for (const input of zone.querySelectorAll("[data-pick]"))
    input.addEventListener("change", () => take(input.files));
}
