// The sliders of the Privacy page: logarithmic, beside a field that says the number itself.

const sliders = () => document.querySelectorAll("input[data-log]");
const field = (slider) => document.getElementById(slider.dataset.log);

function rounded(slider) {
  const value = 10 ** Number(slider.value);
  if ("whole" in slider.dataset) return String(Math.round(value));
  return String(Number(value.toPrecision(Number(slider.dataset.digits))));
}

function toField(slider) {
  field(slider).value = rounded(slider);
  slider.setAttribute("aria-valuetext", field(slider).value);
}

function toSlider(slider) {
  const value = Number(field(slider).value.replace(",", "."));
  if (value > 0) slider.value = Math.log10(value);
  slider.setAttribute("aria-valuetext", field(slider).value);
}

function show() {
  for (const slider of sliders()) {
    slider.hidden = false;
    if (document.activeElement !== slider) toSlider(slider);
  }
}

// What the spec says now goes into the fields, but not under the hand that changes them.
document.addEventListener("studio:put", () => {
  const now = document.getElementById("now")?.dataset ?? {};
  for (const slider of sliders()) {
    const own = field(slider);
    const held = [slider, own].includes(document.activeElement);
    if (!held && now[slider.dataset.log] !== undefined) own.value = now[slider.dataset.log];
  }
  show();
});

document.addEventListener("input", (event) => {
  if (event.target.matches("input[data-log]")) toField(event.target);
  for (const slider of sliders()) if (field(slider) === event.target) toSlider(slider);
}, true);

show();
