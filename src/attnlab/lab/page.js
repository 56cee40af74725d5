// What the course's widgets share; it stands before the code of each of them.

const GONE = "The kernel has gone: run this cell again.";

function element(tag, properties = {}, children = []) {
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

// Once for each widget, whatever the number of its views: notice when its kernel goes.
function initialize({ model }) {
  keepKeys();
  const status = model.widget_manager.kernel?.statusChanged;
  const look = (_, now) => {
    if (!["restarting", "autorestarting", "terminating", "dead"].includes(now)) return;
    model.set("kernel_gone", true);
  };
  status?.connect(look);
  return () => status?.disconnect(look);
}

// Ask the kernel's half of a knob for something; the same thing can be asked for again.
function ask(model, request) {
  model.set("asked", { ...request, times: (model.get("asked").times ?? 0) + 1 });
  model.save_changes();
}

// One number to type and a slider to drag. Both are the browser's own, so arrow keys, Page Up and
// Down, Home, End and screen readers work. The kernel reads what is typed.
function entry(model, label, read, { drag, settle, type }) {
  const range = { min: model.get("low"), max: model.get("high"), step: model.get("step") };
  const number = element("input", { type: "text", inputMode: "decimal", ariaLabel: label });
  const slider = element("input", { type: "range", ...range, ariaLabel: `${label}, slider` });
  slider.addEventListener("input", () => drag(Number(slider.value)));
  slider.addEventListener("change", () => settle());
  number.addEventListener("change", () => type(number.value));
  number.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!steps) return;
    event.preventDefault();
    const next = Math.min(Math.max(read() + steps * range.step, range.min), range.max);
    drag(Number(next.toFixed(9))); // 0.1 + 0.2
    settle();
  });
  function show() {
    const text = String(Math.round(read() * 100) / 100);
    if (number.value !== text) number.value = text;
    if (Number(slider.value) !== read()) slider.value = read();
    slider.disabled = number.disabled = model.get("kernel_gone");
  }
  return { number, slider, show };
}

// A line below a knob: what was wrong with what was typed, or that nobody answers.
function sayer(model, show) {
  const line = element("div", { className: "said", role: "status" });
  const gone = () => {
    line.textContent = model.get("kernel_gone") ? GONE : "";
    show();
  };
  const answered = ({ said }) => {
    line.textContent = said;
    show();
  };
  model.on("msg:custom", answered);
  model.on("change:kernel_gone", gone);
  model.on("change:value", show);
  gone();
  const forget = () => {
    model.off("msg:custom", answered);
    model.off("change:kernel_gone", gone);
    model.off("change:value", show);
  };
  return [line, forget];
}
