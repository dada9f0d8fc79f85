"use strict";
const specs = JSON.parse(document.getElementById("specs").textContent);
const options = {
  renderer: "svg",
  actions: { export: true, source: false, compiled: false, editor: false },
};
Promise.all(
  Object.entries(specs).map(([id, spec]) => vegaEmbed("#" + id, spec, options))
).then(() => {
  document.documentElement.dataset.drawn = "yes";
});
