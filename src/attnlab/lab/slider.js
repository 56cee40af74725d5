// A number with its name: to type and to drag.

function render({ model, el }) {
  const { number, slider, show } = entry(model, model.get("description"), () => model.get("value"), {
    drag: (value) => {
      model.set("value", value);
      model.save_changes();
    },
    settle: () => {},
    type: (text) => ask(model, { do: "type", text }),
  });
  const [line, forget] = sayer(model, show);
  const name = element("span", { textContent: model.get("description") });
  el.classList.add("attnlab", "attnlab-knob", "attnlab-slider");
  el.append(element("div", { className: "head" }, [name, slider, number]), line);
  return forget;
}

export default { initialize, render };
