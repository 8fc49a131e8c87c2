"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
  const column = (name) => (data[name] === null ? null : data[name].split("\n"));
  const texts = column("texts"), spelled = column("spelled"), values = column("values");
  const size = data.size, page = 100;

  // every text comes escaped from tokpack, and goes into the page as text, never as markup
  const make = (tag, text, name) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (name) node.className = name;
    return node;
  };
  const number = (value) => value.toLocaleString("en");
  const typeOf = (id) => data.types[data.kinds.charCodeAt(id) - 65];

  // --- samples ---
  const shown = (text) => (text.length > 60 ? text.slice(0, 59) + "…" : text) || "(empty)";
  const chosen = (sample) => {
    const box = $("tokens");
    box.replaceChildren();
    if (!sample) return;
    if (sample.error !== null) {
      $("counts").textContent = sample.error;
      return;
    }
    const ids = sample.tokens.map((token) => token[0]);
    $("counts").textContent = `${number(ids.length)} ${ids.length === 1 ? "id" : "ids"}: ${ids.join(" ")}`;
    for (const [id, text] of sample.tokens) {
      const token = make("span");
      token.title = id >= 0 && id < size ? `${id}: ${spelled[id] || texts[id]} (${typeOf(id)})` : String(id);
      token.append(make("b", text, "piece"), make("small", String(id)));
      box.append(token);
    }
  };
  const byText = new Map(data.samples.map((sample) => [sample.text, sample]));
  const sampled = () => {
    const text = $("text").value;
    const sample = byText.get(text);
    const wanted = text.toLowerCase();
    const near = sample ? data.samples : data.samples.filter((one) => one.text.toLowerCase().includes(wanted));
    $("choices").replaceChildren(...near.slice(0, 200).map((one) => {
      const button = make("button", shown(one.shown));
      button.type = "button";
      button.title = one.kind;
      button.addEventListener("click", () => { $("text").value = one.text; chosen(one); });
      return button;
    }));
    chosen(sample);
    if (!sample) {
      $("counts").textContent = `This text is not among those of the page (${near.length} hold it). ` +
        `The page holds no tokenizer: tokpack encode gives the ids of any text.`;
    }
  };
  let waiting = 0;
  const later = (work) => () => { clearTimeout(waiting); waiting = setTimeout(work, 120); };
  $("text").addEventListener("input", later(sampled));

  // --- vocabulary ---
  let lower = null; // made when it is first needed
  const folded = () => lower || (lower = texts.map((text, id) => (text + "\n" + spelled[id]).toLowerCase()));
  let hits = [], first = 0;
  const draw = () => {
    const rows = hits.slice(first, first + page).map((id) => {
      const row = make("tr");
      row.append(make("td", String(id), "number"), make("td", texts[id], "code"));
      row.append(make("td", spelled[id] || texts[id], "code"), make("td", typeOf(id)));
      row.append(make("td", values === null ? "" : values[id], "number"));
      row.append(make("td", (data.flags[id] || []).join(", ")));
      return row;
    });
    $("pieces").tBodies[0].replaceChildren(...rows);
    const last = Math.min(first + page, hits.length);
    $("found").textContent = hits.length
      ? `${number(first + 1)}–${number(last)} of ${number(hits.length)} pieces`
      : "No piece matches.";
    $("back").disabled = first === 0;
    $("next").disabled = last === hits.length;
  };
  const search = () => {
    const query = $("query").value, kind = $("kind").value, exact = $("exact").checked;
    const wanted = exact ? query : query.toLowerCase();
    const all = exact || !query ? null : folded();
    hits = [];
    first = 0;
    const asId = /^[0-9]{1,9}$/.test(query) && Number(query) < size ? Number(query) : -1;
    if (asId >= 0) hits.push(asId);
    for (let id = 0; id < size; id++) {
      if (id === asId) continue;
      if (kind === "added" ? !data.flags[id] : kind && typeOf(id) !== kind) continue;
      if (query && !(all ? all[id].includes(wanted) : texts[id].includes(query) || spelled[id].includes(query))) continue;
      hits.push(id);
    }
    draw();
  };
  $("value").textContent = data.value;
  $("kind").append(new Option("all", ""), ...data.types.map((type) => new Option(type, type)));
  $("kind").append(new Option("with flags", "added"));
  $("query").addEventListener("input", later(search));
  $("kind").addEventListener("change", search);
  $("exact").addEventListener("change", search);
  $("back").addEventListener("click", () => { first = Math.max(0, first - page); draw(); });
  $("next").addEventListener("click", () => { first += page; draw(); });

  if (data.samples.length) $("text").value = data.samples[0].text;
  sampled();
  search();
})();
