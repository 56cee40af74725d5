// A small matrix to be edited: in each cell a number to type and a slider to drag. Both are the
// browser's own, so arrow keys, Page Up and Down, Home, End and screen readers work.

function element(tag, properties = {}, children = []) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function render({ model, el }) {
  const value = () => model.get("value").map((row) => [...row]);
  const past = []; // values to go back to, the latest last
  let settled = value(); // the value before the gesture that is under way

  function set(next) {
    model.set("value", next);
    model.save_changes();
  }

  function ask(preset, by = 0) {
    const times = (model.get("asked").times ?? 0) + 1; // the same one can be asked for again
    model.set("asked", { preset, by, times });
    model.save_changes();
  }

  function settle(next) {
    if (JSON.stringify(next) === JSON.stringify(settled)) return;
    past.push(settled);
    settled = next;
    undo.disabled = false;
  }

  // --- the cells ---
  const [rows, columns] = [value().length, value()[0].length];
  const names = model.get("row_names");
  const cells = value().map((row, i) =>
    row.map((_, j) => {
      const label = `${model.get("description")} row ${names[i] ?? i} column ${j}`;
      const range = { min: model.get("low"), max: model.get("high"), step: model.get("step") };
      const number = element("input", { type: "number", ...range, ariaLabel: label });
      const slider = element("input", { type: "range", ...range, ariaLabel: `${label}, slider` });
      const change = (from, done) => {
        const entry = Number(from.value);
        if (from.value === "" || !Number.isFinite(entry)) return show();
        const next = value();
        next[i][j] = Math.min(Math.max(entry, range.min), range.max);
        set(next);
        if (done) settle(next);
        if (done) show(); // what was typed may have been out of range
      };
      slider.addEventListener("input", () => change(slider, false));
      slider.addEventListener("change", () => change(slider, true));
      number.addEventListener("change", () => change(number, true));
      return { number, slider, box: element("div", { className: "cell" }, [number, slider]) };
    }),
  );

  function show() {
    const now = value();
    cells.forEach((row, i) =>
      row.forEach(({ number, slider, box }, j) => {
        const entry = now[i][j];
        if (Number(number.value) !== entry || number.value === "")
          number.value = String(Math.round(entry * 100) / 100);
        if (Number(slider.value) !== entry) slider.value = entry;
        const strength = Math.min(Math.abs(entry) / model.get("high"), 1);
        box.style.setProperty("--strength", `${Math.round(strength * 60)}%`);
        box.classList.toggle("negative", entry < 0);
      }),
    );
  }

  // --- what is above them ---
  const undo = element("button", { textContent: "↶", title: "Undo", ariaLabel: "Undo" });
  undo.disabled = true;
  undo.addEventListener("click", () => {
    settled = past.pop();
    undo.disabled = past.length === 0;
    set(settled);
  });
  const reset = element("button", { textContent: "⟲", title: "Reset", ariaLabel: "Reset" });
  reset.addEventListener("click", () => ask("start"));

  const head = [element("b", { textContent: model.get("description") }), undo, reset];
  if (model.get("presets").length) {
    const preset = element("select", { title: "Preset", ariaLabel: "Preset" });
    preset.append(element("option", { textContent: "set to …", value: "" }));
    for (const name of model.get("presets")) preset.append(element("option", { textContent: name }));
    const by = element("input", {
      type: "number", value: 90, title: "degrees, factor or seed", ariaLabel: "degrees, factor or seed",
    });
    const apply = () => preset.value && ask(preset.value, Number(by.value));
    preset.addEventListener("change", () => {
      const start = { rotation: 90, scale: 2, random: 0 }[preset.value];
      by.hidden = start === undefined;
      if (!by.hidden) by.value = start;
      apply();
    });
    by.addEventListener("change", apply);
    by.hidden = true;
    head.push(preset, by);
  }

  const grid = element("div", { className: "grid" });
  grid.style.gridTemplateColumns = `${names.length ? "auto " : ""}repeat(${columns}, 6em)`;
  for (let i = 0; i < rows; i++) {
    if (names.length) grid.append(element("span", { textContent: names[i], className: "name" }));
    grid.append(...cells[i].map((cell) => cell.box));
  }
  el.classList.add("attnlab-matrix");
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", model.get("description"));
  el.append(element("div", { className: "head" }, head), grid);
  // JupyterLab has shortcuts of its own for arrows and letters; here they belong to the cell.
  el.addEventListener("keydown", (event) => event.stopPropagation());

  model.on("change:value", show);
  model.on("msg:custom", () => settle(value())); // a preset has been set
  show();
  return () => model.off("change:value", show);
}

export default { render };
