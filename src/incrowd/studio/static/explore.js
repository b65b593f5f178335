// The Explore page: a click or Enter on a point shows its figures without a new page, arrow keys go
// from point to point, and filters apply as they change. Without it all of these are plain links.

async function look(address, focus) {
  const answer = await fetch(address, { headers: { "X-Studio": "part" } });
  if (!answer.ok) return location.assign(address);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const other = fresh.getElementById("explored");
  const scrolled = document.querySelector(".explore .scroll")?.scrollLeft ?? 0;
  if (document.getElementById("expert")?.open) other.querySelector("#expert")?.setAttribute("open", "");
  document.getElementById("explored").replaceWith(other);
  const again = document.querySelector(".explore .scroll");
  if (again) again.scrollLeft = scrolled;
  history.replaceState(null, "", address);
  rove();
  document.dispatchEvent(new Event("studio:follow"));
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

const nodes = () => [...document.querySelectorAll("[data-lattice] a, .chart a")];

// One stop for the keyboard in each picture: the point that is looked at.
function rove() {
  for (const picture of document.querySelectorAll("[data-lattice], .chart svg")) {
    const own = [...picture.querySelectorAll("a")];
    const current = own.find((one) => one.matches("[aria-current]")) ?? own.at(-1);
    for (const one of own) one.tabIndex = one === current ? 0 : -1;
  }
}

function place(node) {
  const circle = node.querySelector("circle");
  return [circle.cx.baseVal.value, circle.cy.baseVal.value];
}

function next(node, key) {
  const [x, y] = place(node);
  const own = [...node.closest("svg").querySelectorAll("a")].filter((one) => one !== node);
  const far = (one) => {
    const [to, down] = place(one);
    const [along, aside] = {
      ArrowRight: [to - x, down - y], ArrowLeft: [x - to, down - y],
      ArrowDown: [down - y, to - x], ArrowUp: [y - down, to - x],
    }[key];
    return along > 0.5 ? along + 3 * Math.abs(aside) : Infinity;
  };
  const nearest = own.reduce((best, one) => (far(one) < far(best) ? one : best), own[0]);
  return nearest && far(nearest) < Infinity ? nearest : null;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-lattice] a, .chart a, a[data-look]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  look(link.getAttribute("href"), link.id || "one-title");
});

document.addEventListener("keydown", (event) => {
  const node = document.activeElement?.closest?.("[data-lattice] a, .chart a");
  if (!node || !event.key.startsWith("Arrow")) return;
  const other = next(node, event.key);
  if (!other) return;
  event.preventDefault();
  for (const one of nodes()) if (one.closest("svg") === node.closest("svg")) one.tabIndex = -1;
  other.tabIndex = 0;
  other.focus();
});

document.addEventListener("change", (event) => {
  const form = event.target.closest?.("form[data-filter]");
  if (!form) return;
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  look(`?${query}`, event.target.id);
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "ranked") return;
  event.preventDefault();
  look(`?${new URLSearchParams(new FormData(event.target))}`, "beside-title");
});

document.addEventListener("studio:put", rove);
rove();
