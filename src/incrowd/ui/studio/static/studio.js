// Makes the pages of the studio live: forms are sent as one changes them, and what changed on the
// page is put in its place. Everything works without it, by a click on a button.

const busy = new Set();

function put(html, address) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const focused = document.activeElement?.id;
  for (const part of document.querySelectorAll("[data-part]")) {
    const other = fresh.getElementById(part.id);
    if (other && other.outerHTML !== part.outerHTML) part.replaceWith(other);
  }
  for (const foot of document.querySelectorAll("footer.foot, nav.steps")) {
    const other = fresh.querySelector(foot.matches("footer") ? "footer.foot" : "nav.steps");
    if (other && other.outerHTML !== foot.outerHTML) foot.replaceWith(other);
  }
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
  document.dispatchEvent(new CustomEvent("studio:put", { detail: address }));
  follow();
}

function complain(words) {
  const place = document.getElementById("problem");
  place.textContent = words;
  place.scrollIntoView({ block: "nearest" });
}

async function ask(address, options = {}) {
  const headers = { "X-Studio": "part", "X-Back": location.pathname + location.search };
  const answer = await fetch(address, { ...options, headers: { ...headers, ...options.headers } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text || answer.statusText);
  return { text, address: answer.url };
}

const waiting = new WeakMap(); // of each form, what is sent next

async function send(form, submitter) {
  const fields = new FormData(form);
  if (submitter?.name) fields.append(submitter.name, submitter.value); // of this form or its like
  if (busy.has(form.action)) {
    waiting.set(form, submitter ?? null);
    return;
  }
  busy.add(form.action);
  document.body.toggleAttribute("data-busy", true);
  try {
    const { text, address } = await ask(form.action, {
      method: "POST",
      body: new URLSearchParams(fields),
    });
    complain("");
    if (new URL(address).pathname === location.pathname) put(text, address);
    else location.assign(address);
  } catch (error) {
    complain(error.message);
    const { text, address } = await ask(location.href);
    const words = error.message;
    put(text, address);
    complain(words);
  } finally {
    busy.delete(form.action);
    document.body.toggleAttribute("data-busy", false);
    if (waiting.has(form)) {
      const next = waiting.get(form);
      waiting.delete(form);
      send(document.getElementById(form.id) ?? form, next);
    }
  }
}

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
  if (busy.size) return follow();
  try {
    const { text, address } = await ask(location.href);
    put(text, address);
  } catch (error) {
    complain(error.message);
  }
}
follow();

// Files that are dropped or picked.
function upload(zone, file) {
  const progress = zone.querySelector("progress");
  const request = new XMLHttpRequest();
  request.open("PUT", `${zone.dataset.drop}?name=${encodeURIComponent(file.name)}`);
  request.setRequestHeader("X-Studio", "part");
  progress.hidden = false;
  request.upload.addEventListener("progress", (event) => {
    progress.max = event.total;
    progress.value = event.loaded;
  });
  request.addEventListener("load", () => {
    progress.hidden = true;
    if (request.status === 200) location.assign(JSON.parse(request.responseText).go);
    else complain(request.responseText);
  });
  request.addEventListener("error", () => {
    progress.hidden = true;
    complain("The upload was cut off.");
  });
  request.send(file);
}

for (const zone of document.querySelectorAll("[data-drop]")) {
  for (const kind of ["dragenter", "dragover"])
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
  for (const kind of ["dragleave", "drop"])
    zone.addEventListener(kind, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) upload(zone, file);
  });
  zone.querySelector("[data-pick]")?.addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) upload(zone, file);
  });
}
