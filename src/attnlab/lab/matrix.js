// A small matrix to be edited: in each cell a number to type and a slider to drag.

function render({ model, el }) {
  const value = () => model.get("value").map((row) => [...row]);

  // --- the cells ---
  const [rows, columns] = [value().length, value()[0].length];
  const names = model.get("row_names");
  const cells = value().map((row, i) =>
    row.map((_, j) => {
      const label = `${model.get("description")} row ${names[i] ?? i} column ${j}`;
      const cell = entry(model, label, () => value()[i][j], {
        drag: (number) => {
          const next = value();
          next[i][j] = number;
          model.set("value", next);
          model.save_changes();
        },
        settle: () => ask(model, { do: "settle" }),
        type: (text) => ask(model, { do: "type", text, at: [i, j] }),
      });
      return { ...cell, box: element("div", { className: "cell" }, [cell.number, cell.slider]) };
    }),
  );

  // --- what is above them ---
  const button = (textContent, name, request) => {
    const made = element("button", { textContent, title: name, ariaLabel: name });
    made.addEventListener("click", () => ask(model, { do: request }));
    return made;
  };
  const undo = button("↶", "Undo", "undo"), reset = button("⟲", "Reset", "start");
  const head = [element("b", { textContent: model.get("description") }), undo, reset];
  if (model.get("presets").length) {
    const wants = { rotation: [90, "degrees"], scale: [2, "factor"], random: [0, "seed"] };
    const preset = element("select", { ariaLabel: "Preset" });
    for (const name of ["", ...model.get("presets")])
      preset.append(element("option", { textContent: name || "set to …", value: name }));
    const by = element("input", { type: "text", inputMode: "decimal", hidden: true });
    let chosen; // the select itself goes back to its first line, so that each can be chosen again
    const apply = () => ask(model, { do: chosen, text: by.hidden ? null : by.value });
    preset.addEventListener("change", () => {
      chosen = preset.value;
      preset.value = "";
      const [start, unit] = wants[chosen] ?? [];
      by.hidden = unit === undefined;
      if (!by.hidden) Object.assign(by, { value: start, title: unit, ariaLabel: `${chosen}: ${unit}` });
      apply();
    });
    by.addEventListener("change", apply);
    head.push(preset, by);
  }

  function show() {
    for (const [i, row] of cells.entries())
      for (const [j, cell] of row.entries()) {
        cell.show();
        const strength = Math.min(Math.abs(value()[i][j]) / model.get("high"), 1);
        cell.box.style.setProperty("--strength", `${Math.round(strength * 60)}%`);
        cell.box.classList.toggle("negative", value()[i][j] < 0);
      }
    for (const control of head.slice(1)) control.disabled = model.get("kernel_gone");
    undo.disabled ||= !model.get("can_undo");
  }

  const grid = element("div", { className: "grid" });
  grid.style.gridTemplateColumns = `${names.length ? "auto " : ""}repeat(${columns}, 6em)`;
  for (let i = 0; i < rows; i++) {
    if (names.length) grid.append(element("span", { textContent: names[i], className: "name" }));
    grid.append(...cells[i].map((cell) => cell.box));
  }
  const [line, forget] = sayer(model, show);
  model.on("change:can_undo", show);
  el.classList.add("attnlab", "attnlab-knob", "attnlab-matrix");
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", model.get("description"));
  el.append(element("div", { className: "head" }, head), grid, line);
  return () => {
    forget();
    model.off("change:can_undo", show);
  };
}

export default { initialize, render };
