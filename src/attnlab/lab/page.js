// What the course's widgets share; it stands before the code of each of them. Listeners that a view
// adds to its model go with the view: anywidget removes them.

const GONE = "The kernel has gone: run this cell again.";

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

// Lab has one-key shortcuts (x cuts the cell) for whatever is not a text field to it. What is typed
// inside an element of class "attnlab" stays there; Shift+Enter and keys with Ctrl or Alt reach Lab,
// except from text fields, where only saving does.
function keepKeys() {
  if (document.body.dataset.attnlab) return;
  document.body.dataset.attnlab = "keeps keys";
  document.body.addEventListener("keydown", (event) => {
    if (!event.target.closest(".attnlab")) return;
    const held = event.ctrlKey || event.metaKey || event.altKey;
    const types = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
    const typing = event.target.closest(types);
    const runs = event.shiftKey && event.key === "Enter";
    if (typing ? !(held && event.key === "s") : !held && !runs) event.stopPropagation();
  });
}

// Once for each widget, whatever the number of its views: notice when its kernel goes. That it is shut
// down or changed for another one is no status, and the `comm_live` of a widget would not tell.
function initialize({ model }) {
  keepKeys();
  const kernel = model.widget_manager.kernel;
  const gone = () => model.set("kernel_gone", true);
  const look = (_, now) => {
    if (["restarting", "autorestarting", "terminating", "dead"].includes(now)) gone();
  };
  kernel?.statusChanged.connect(look);
  kernel?.disposed.connect(gone);
  return () => {
    kernel?.statusChanged.disconnect(look);
    kernel?.disposed.disconnect(gone);
  };
}

function save(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
}

// Ask the kernel's half of a knob for something; the same thing can be asked for again.
function ask(model, request) {
  save(model, { asked: { ...request, times: (model.get("asked").times ?? 0) + 1 } });
}

function button(textContent, act, properties = {}) {
  const node = element("button", { type: "button", textContent, ...properties });
  node.addEventListener("click", act);
  return node;
}

// Radio buttons that share a legend, and what shows the value that `read` returns.
function choices(legend, options, read, choose) {
  const name = `attnlab-${Math.random()}`; // each widget has its own copy of this module
  const inputs = options.map((value) => element("input", { type: "radio", name, value }));
  const labels = inputs.map((input) => element("label", {}, input, element("span", {}, input.value)));
  for (const input of inputs) input.addEventListener("change", () => choose(input.value));
  const show = () => inputs.forEach((input) => { input.checked = input.value === read(); });
  return [element("fieldset", {}, element("legend", {}, ...legend), ...labels), show];
}

// A slider, and what shows the value that `read` returns. Like all inputs here it is the browser's own,
// so arrow keys, Page Up and Down, Home, End and screen readers work.
function range(ariaLabel, [min, max, step], read, { drag, settle }) {
  const slider = element("input", { type: "range", min, max, step, ariaLabel });
  let before;
  slider.addEventListener("pointerdown", () => { before = read(); });
  // A swipe that scrolls the page may start on a slider and is cancelled then: the value goes back.
  slider.addEventListener("pointercancel", () => {
    drag(before);
    settle();
  });
  slider.addEventListener("input", () => drag(Number(slider.value)));
  slider.addEventListener("change", () => settle());
  const show = () => { if (Number(slider.value) !== read()) slider.value = read(); };
  return [slider, show];
}

// One number to type and a slider to drag, in a box that is coloured by the number's sign and size.
function entry(ariaLabel, limits, read, { drag, settle, type }) {
  const [min, max, step] = limits;
  const number = element("input", { type: "text", inputMode: "decimal", autocomplete: "off", ariaLabel });
  const [slider, slide] = range(`${ariaLabel}, slider`, limits, read, { drag, settle });
  const box = element("div", { className: "entry" }, number, slider);
  number.addEventListener("focus", () => number.select());
  number.addEventListener("change", () => type(number.value));
  number.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!steps) return;
    event.preventDefault();
    const next = Math.min(Math.max(read() + steps * step, min), max);
    drag(Number(next.toFixed(9))); // 0.1 + 0.2
    settle();
  });
  const show = (disabled = false) => {
    const x = read(), text = String(Math.round(x * 100) / 100);
    if (number.value !== text) number.value = text;
    slide();
    slider.disabled = number.disabled = disabled;
    box.style.setProperty("--tint", `var(--${x < 0 ? "negative" : "positive"})`);
    box.style.setProperty("--strength", `${Math.min(Math.abs(x) / max, 1) * 100}%`);
  };
  return { box, number, slider, show };
}

// A line below a knob: what was wrong with what was typed, or that nobody answers.
function sayer(model, show) {
  const line = element("div", { className: "said", role: "status" });
  const say = (text) => {
    line.textContent = text;
    show();
  };
  const gone = () => say(model.get("kernel_gone") ? GONE : "");
  model.on("msg:custom", ({ said }) => say(said));
  model.on("change:kernel_gone", gone);
  model.on("change:value", show);
  gone();
  return line;
}
