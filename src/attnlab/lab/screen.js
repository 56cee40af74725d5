// A picture with its text alternative, and two live regions. Each is one node whose content
// changes: a node that is replaced is not announced.

function render({ model, el }) {
  const image = element("img"), status = element("div", { role: "status" });
  const alert = element("div", { role: "alert" });
  const addresses = {};
  const load = name => {
    const png = model.get(name), before = addresses[name];
    const address = png.byteLength ? URL.createObjectURL(new Blob([png], { type: "image/png" })) : "";
    addresses[name] = address;
    return [address, before];
  };
  const draw = () => {
    const [address, before] = load("frame");
    if (address) image.src = address;
    image.hidden = !address;
    URL.revokeObjectURL(before);
  };
  const refine = () => {  // the browser takes it where a pixel of the page is more than one
    const [address, before] = load("fine");
    image.srcset = address && `${address} 2x`;
    URL.revokeObjectURL(before);
  };
  const describe = () => { image.alt = model.get("alt"); };
  const tell = () => { status.innerHTML = model.get("status"); };
  const warn = () => {
    if (model.get("kernel_gone")) alert.replaceChildren(element("div", { className: "said" }, GONE));
    else alert.innerHTML = model.get("alert");
  };
  const changes = { fine: refine, frame: draw, alt: describe, status: tell, alert: warn, kernel_gone: warn };
  for (const [name, change] of Object.entries(changes)) {
    change();
    model.on(`change:${name}`, change);
  }
  el.classList.add("attnlab-screen");
  el.append(status, alert, image);
  return () => Object.values(addresses).forEach(URL.revokeObjectURL);
}

export default { initialize, render };
