// The ruler of intervals: handles that are dragged or moved by keys, and sliders beside the widths.
// What was moved is sent as if it had been typed; the server says whether it can be.

document.documentElement.classList.add("js");
const EDGE = 28;
const WIDE = 720;

function scale(svg) {
  const low = Number(svg.dataset.low);
  const high = Number(svg.dataset.high);
  const step = Number(svg.dataset.step);
  const steps = Math.max(Math.floor((high - low) / step + 1e-9), 1);
  const places = Math.max(...[svg.dataset.low, svg.dataset.step].map((x) => (x.split(".")[1] ?? "").length));
  return {
    low,
    most: steps,
    step,
    text: (at) => (low + at * step).toFixed(places).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, ""),
    at: (value) => Math.round((Number(value) - low) / step),
    x: (at) => EDGE + ((at * step) / (high + step - low)) * WIDE,
    near: (x) => Math.round((((x - EDGE) / WIDE) * (high + step - low)) / step),
  };
}

function prepare() {
  const svg = document.getElementById("ruler");
  if (!svg) return;
  const { at, most, text } = scale(svg);
  for (const handle of svg.querySelectorAll(".handle")) {
    handle.setAttribute("tabindex", "0");
    handle.setAttribute("role", "slider");
    handle.setAttribute("aria-label", handle.dataset.label);
    handle.setAttribute("aria-orientation", "horizontal");
    handle.setAttribute("aria-valuemin", text(1));
    handle.setAttribute("aria-valuemax", text(most));
    handle.setAttribute("aria-valuenow", handle.dataset.value);
    handle.at = at(handle.dataset.value);
  }
}

// Show where a handle is, and, of even widths, the bounds that follow from it.
function place(handle, steps) {
  const svg = handle.closest("svg");
  const { x, most, text } = scale(svg);
  handle.at = Math.min(Math.max(steps, 1), most);
  const y = handle.getAttribute("transform").match(/ (-?[\d.]+)\)/)[1];
  handle.setAttribute("transform", `translate(${x(handle.at)} ${y})`);
  handle.setAttribute("aria-valuenow", text(handle.at));
  handle.querySelector("title").textContent = text(handle.at);
  say(svg, handle, text(handle.at));
  const track = handle.closest(".track");
  if (svg.dataset.by === "widths") {
    const lines = track.querySelectorAll(".bound");
    lines.forEach((line, number) => {
      const there = x(handle.at * (number + 1));
      line.setAttribute("x1", there);
      line.setAttribute("x2", there);
      line.classList.toggle("beyond", handle.at * (number + 1) > most);
    });
    const field = document.getElementById(`f-width-${track.dataset.level}`);
    if (field) field.value = width(svg, handle.at);
    const range = document.querySelector(`[data-for="f-width-${track.dataset.level}"]`);
    if (range) range.value = width(svg, handle.at);
  } else {
    const old = handle.dataset.value;
    for (const other of svg.querySelectorAll(".handle"))
      if (other !== handle && other.dataset.value === old) {
        const row = other.getAttribute("transform").match(/ (-?[\d.]+)\)/)[1];
        other.setAttribute("transform", `translate(${x(handle.at)} ${row})`);
      }
  }
}

function say(svg, handle, words) {
  let label = svg.querySelector(".reading");
  if (!label) {
    label = document.createElementNS("http://www.w3.org/2000/svg", "text");
    label.setAttribute("class", "reading");
    svg.append(label);
  }
  const [, x, y] = handle.getAttribute("transform").match(/\((-?[\d.]+) (-?[\d.]+)\)/);
  label.setAttribute("x", Number(x) > WIDE ? Number(x) - 10 : Number(x) + 10);
  label.setAttribute("y", Number(y) + 18);
  label.classList.toggle("left", Number(x) > WIDE);
  label.textContent = words;
}

const width = (svg, steps) => {
  const places = (svg.dataset.step.split(".")[1] ?? "").length;
  return String(Number((steps * Number(svg.dataset.step)).toFixed(places)));
};

function settle(handle) {
  const svg = handle.closest("svg");
  if (!svg?.isConnected) return;
  const now = scale(svg).text(handle.at);
  svg.querySelector(".reading")?.remove();
  if (now === handle.dataset.value) return;
  if (svg.dataset.by === "widths") {
    const field = document.getElementById(`f-width-${handle.closest(".track").dataset.level}`);
    field.form.requestSubmit();
    return;
  }
  submit(`move:${handle.dataset.value}:${now}`);
}

function submit(then) {
  const button = document.getElementById("move-cut");
  button.value = then;
  button.form.requestSubmit(button);
}

let dragged = null;
document.addEventListener("pointerdown", (event) => {
  const handle = event.target.closest?.(".ruler .handle");
  if (!handle || event.button) return;
  event.preventDefault();
  dragged = handle;
  handle.focus();
  handle.setPointerCapture(event.pointerId);
});
document.addEventListener("pointermove", (event) => {
  if (!dragged) return;
  const svg = dragged.closest("svg");
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  place(dragged, scale(svg).near(point.x));
});
for (const kind of ["pointerup", "pointercancel"])
  document.addEventListener(kind, () => {
    if (dragged) settle(dragged);
    dragged = null;
  });

let pause;
document.addEventListener("keydown", (event) => {
  const handle = event.target.closest?.(".ruler .handle");
  if (!handle) return;
  const svg = handle.closest("svg");
  const { most } = scale(svg);
  const large = Math.max(Math.round(most / 10), 1);
  const moves = {
    ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -large, PageUp: large,
    Home: -Infinity, End: Infinity,
  };
  if (event.key in moves) {
    event.preventDefault();
    const by = moves[event.key];
    place(handle, by === -Infinity ? 1 : by === Infinity ? most : handle.at + by);
    clearTimeout(pause);
    pause = setTimeout(() => settle(handle), 500);
  } else if (event.key === "Delete" && svg.dataset.by === "cuts") {
    event.preventDefault();
    const level = Number(handle.closest(".track").dataset.level) - 1;
    submit(`remove-cut:${level}:${handle.dataset.value}`);
  }
});

// Sliders beside the widths.
document.addEventListener("input", (event) => {
  const field = event.target.dataset?.for && document.getElementById(event.target.dataset.for);
  if (field) field.value = event.target.value;
});
document.addEventListener("change", (event) => {
  const field = event.target.dataset?.for && document.getElementById(event.target.dataset.for);
  if (field) field.form.requestSubmit();
});

// A handle that was moved keeps the focus when the ruler is drawn anew.
let held = "";
document.addEventListener("focusin", (event) => {
  held = event.target.closest?.(".ruler .handle")?.id ?? "";
});

document.addEventListener("studio:put", (event) => {
  const address = new URL(event.detail, location.href);
  if (address.pathname === location.pathname) history.replaceState(null, "", address);
  prepare();
  if (held && document.activeElement === document.body) document.getElementById(held)?.focus();
});
prepare();
document.querySelector(".ladder-list [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
