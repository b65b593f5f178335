// The Person page: what the counts say against the unit that is chosen, and nothing of the others.

function show() {
  const chosen = document.querySelector("input[name=unit]:checked")?.value;
  for (const doubt of document.querySelectorAll(".doubt")) {
    doubt.hidden = doubt.dataset.unit !== chosen;
    if (doubt.hidden) doubt.querySelector("input").checked = false;
  }
}

document.addEventListener("change", show);
document.addEventListener("studio:put", show);
show();
