// The queue of confirmations by keys: Y confirms, N goes to what may be said instead, L comes later.

function change() {
  const open = document.querySelector("details.queue-other[open]");
  const other = open ?? document.querySelector("details.queue-other");
  if (!other) {
    location.assign(document.querySelector("nav.steps a[href$='/data']").href);
    return;
  }
  other.open = true;
  (other.querySelector(".first-field") ?? other.querySelector("select, input")).focus();
}

document.documentElement.classList.add("js");

document.addEventListener("click", (event) => {
  if (event.target.closest("#no")) change();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  const key = event.key.toLowerCase();
  if (key === "y") document.getElementById("yes")?.click();
  else if (key === "n") change();
  else if (key === "l") document.getElementById("later")?.click();
  else return;
  event.preventDefault();
});

// The next card begins where the last one did.
document.addEventListener("studio:put", () => {
  if (document.activeElement === document.body) document.getElementById("yes")?.focus();
});
