// A small matrix to be edited: in each entry a number to type and a slider to drag.

function render({ model, el }) {
  const title = model.get("description"), names = model.get("row_names");
  const limits = ["low", "high", "step"].map((trait) => model.get(trait));
  const value = () => model.get("value").map((row) => [...row]);
  const entries = value().map((row, i) =>
    row.map((_, j) =>
      entry(`${title} row ${names[i] ?? i} column ${j}`, limits, () => model.get("value")[i][j], {
        drag: (number) => {
          const next = value();
          next[i][j] = number;
          save(model, { value: next });
        },
        settle: () => ask(model, { do: "settle" }),
        type: (text) => ask(model, { do: "type", text, at: [i, j] }),
      }),
    ),
  );

  // --- what is above them ---
  const asking = (sign, name, request) =>
    button(sign, () => ask(model, { do: request }), { title: name, ariaLabel: name });
  const undo = asking("↶", "Undo", "undo"), controls = [undo, asking("⟲", "Reset", "start")];
  if (model.get("presets").length) {
    const wants = { rotation: [90, "degrees"], scale: [2, "factor"], random: [0, "seed"] };
    const preset = element("select", { ariaLabel: "Preset" }, new Option("set to …", ""),
      ...model.get("presets").map((name) => new Option(name)));
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
    controls.push(preset, by);
  }

  function show() {
    const gone = model.get("kernel_gone");
    for (const { show: update } of entries.flat()) update(gone);
    for (const control of controls) control.disabled = gone;
    undo.disabled ||= !model.get("can_undo");
  }

  const grid = element("div", { className: "entries" });
  grid.style.gridTemplateColumns = `${names.length ? "auto " : ""}repeat(${entries[0].length}, 6em)`;
  for (const [i, row] of entries.entries()) {
    if (names.length) grid.append(element("span", { textContent: names[i], className: "name" }));
    grid.append(...row.map(({ box }) => box));
  }
  model.on("change:can_undo", show);
  el.classList.add("attnlab", "attnlab-own", "attnlab-knob", "attnlab-matrix");
  Object.assign(el, { role: "group", ariaLabel: title });
  const head = element("div", { className: "head" }, element("b", { textContent: title }), ...controls);
  el.append(head, grid, sayer(model, show));
}

export default { initialize, render };
