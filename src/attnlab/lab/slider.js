// A number with its name: to type and to drag.

function render({ model, el }) {
  const name = model.get("description"), limits = ["low", "high", "step"].map((trait) => model.get(trait));
  const { number, slider, show } = entry(name, limits, () => model.get("value"), {
    drag: (value) => save(model, { value }),
    settle: () => {},
    type: (text) => ask(model, { do: "type", text }),
  });
  const head = element("div", { className: "head" }, element("span", { textContent: name }), slider, number);
  el.classList.add("attnlab", "attnlab-own", "attnlab-knob", "attnlab-slider");
  el.append(head, sayer(model, () => show(model.get("kernel_gone"))));
}

export default { initialize, render };
