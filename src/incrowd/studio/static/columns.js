// The table of columns: filter and order apply as they change, what was selected stays selected
// when the table is shown again, and one key press moves on. Without it all works by buttons.

document.documentElement.classList.add("js");
const selected = new Set();
const boxes = () => [...document.querySelectorAll("#listed input[name=column]")];
let last = null;
let newest = 0;

function show() {
  const listed = boxes();
  for (const box of listed) {
    box.checked = selected.has(box.value);
    box.closest("tr").classList.toggle("current", box.checked);
  }
  const hidden = selected.size - listed.filter((box) => box.checked).length;
  const words = `${selected.size} selected${hidden ? `, ${hidden} of them not listed` : ""}`;
  document.getElementById("selected").textContent = words;
  const all = document.getElementById("all");
  if (all) {
    all.checked = listed.length > 0 && hidden + listed.length === selected.size;
    all.indeterminate = !all.checked && listed.some((box) => box.checked);
  }
  for (const button of document.querySelectorAll("#bulk button")) button.disabled = !selected.size;
  offer();
}

// Fields of one kind of hierarchy are there while that kind is chosen.
function offer() {
  const chosen = document.getElementById("hierarchy")?.value;
  for (const part of document.querySelectorAll("#bulk [data-of]"))
    part.hidden = part.dataset.of !== chosen;
}

async function look(address, focus) {
  const own = ++newest;
  const answer = await fetch(address, { headers: { "X-Studio": "part" } });
  if (!answer.ok) return location.assign(address);
  const text = await answer.text();
  if (own !== newest) return; // something else was asked for meanwhile
  const fresh = new DOMParser().parseFromString(text, "text/html");
  keepChoices(fresh);
  const other = fresh.getElementById("listed");
  document.getElementById("listed").replaceWith(other);
  document.getElementById("columns-form").action = fresh.getElementById("columns-form").action;
  history.replaceState(null, "", address);
  show();
  document.dispatchEvent(new Event("studio:follow"));
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

// What was chosen in the bar is no part of the HTML: it goes along.
function keepChoices(fresh) {
  for (const field of document.querySelectorAll("#bulk select, #bulk input")) {
    const other = fresh.querySelector(`#bulk [name="${field.name}"]`);
    if (!other) continue;
    if (field.matches("select"))
      for (const option of other.options) option.toggleAttribute("selected", option.value === field.value);
    else other.setAttribute("value", field.value);
  }
}
document.addEventListener("studio:before", (event) => keepChoices(event.detail));

function choose(box, checked) {
  box.checked = checked;
  if (checked) selected.add(box.value);
  else selected.delete(box.value);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-look]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    const only = new URL(link.href).searchParams.get("only");
    if (only !== null || !new URL(link.href).search) {
      document.getElementById("only").value = only ?? "";
      if (!new URL(link.href).search) document.getElementById("find").value = "";
    }
    look(link.getAttribute("href"), link.id);
    return;
  }
  const box = event.target.closest?.("#listed input[name=column]");
  if (!box) return;
  const listed = boxes();
  const [from, to] = [listed.findIndex((one) => one.value === last), listed.indexOf(box)];
  if (event.shiftKey && from >= 0)
    for (const one of listed.slice(Math.min(from, to), Math.max(from, to) + 1)) choose(one, box.checked);
  else choose(box, box.checked);
  last = box.value;
  show();
});

document.addEventListener("change", (event) => {
  if (event.target.id === "all") {
    for (const box of boxes()) choose(box, event.target.checked);
    show();
  }
  if (event.target.id === "hierarchy") offer();
  if (event.target.closest?.("form[data-filter]")) filter();
});

function filter() {
  const form = document.querySelector("form[data-filter]");
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  const sort = new URLSearchParams(location.search).get("sort");
  query.delete("sort");
  if (sort) query.set("sort", sort);
  look(`${location.pathname}?${query}`);
}

let pause;
document.addEventListener("input", (event) => {
  if (event.target.id !== "find") return;
  clearTimeout(pause);
  pause = setTimeout(filter, 200);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-filter]")) return;
  event.preventDefault();
  filter();
}, true);

// Arrow keys go from row to row where a box or a role has the focus.
document.addEventListener("keydown", (event) => {
  const box = document.activeElement?.closest?.("#listed input[name=column]");
  if (!box || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const listed = boxes();
  const next = listed[listed.indexOf(box) + (event.key === "ArrowDown" ? 1 : -1)];
  if (!next) return;
  event.preventDefault();
  if (event.shiftKey) {
    choose(next, box.checked);
    last = next.value;
    show();
  }
  next.focus();
});

// What the keyboard alone selects when a form is sent: the boxes of rows that are listed. Those
// that a filter hides are sent as well, so that the number that is shown is the number changed.
document.getElementById("columns-form").addEventListener("formdata", (event) => {
  event.formData.delete("column");
  for (const name of selected) event.formData.append("column", name);
});

document.addEventListener("studio:put", show);
show();
