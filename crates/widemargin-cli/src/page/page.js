(() => {
  const all = (what, within = document) => [...within.querySelectorAll(what)];

  // Tables: a button in each head sorts by its column, first one way and then the other.
  const key = text => {
    const power = text.match(/^2\^(-?\d+)$/);
    const number = power ? 2 ** power[1] : parseFloat(text.replace("<", "").replace("−", "-"));
    return Number.isNaN(number) ? text : number;
  };
  const order = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, undefined, { numeric: true });
  };
  all("th button").forEach(button => button.addEventListener("click", () => {
    const head = button.closest("th"), table = button.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    all("th", table).forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row, place) => ({ row, place, key: key(row.cells[column].textContent.trim()) }));
    rows.sort((a, b) => (down ? -1 : 1) * order(a.key, b.key) || a.place - b.place);
    rows.forEach(({ row }) => body.append(row));
  }));

  // Which of several pictures is shown; which series.
  all("select[data-choice]").forEach(select => {
    const show = () => all(`[data-of="${select.id}"]`).forEach((figure, place) => (figure.hidden = place !== select.selectedIndex));
    select.addEventListener("change", show);
    show();
  });
  const hidden = new Set();
  all("input[data-shows]").forEach(box => {
    const show = () => {
      if (box.checked) hidden.delete(+box.dataset.shows); else hidden.add(+box.dataset.shows);
      all(`[data-series="${box.dataset.shows}"]`).forEach(mark => mark.classList.toggle("off", !box.checked));
    };
    box.addEventListener("change", show);
    show();
  });

  // What a mark says, under the pointer or by the arrow keys.
  all(".plot").forEach(plot => {
    const svg = plot.querySelector("svg"), said = plot.parentNode.querySelector("output");
    const marks = all("[data-tip]", svg);
    let here = -1;
    const tell = places => {
      if (!places.length) return;
      marks.forEach((mark, place) => mark.classList.toggle("here", places.includes(place)));
      here = places[0];
      said.textContent = places.map(place => marks[place].dataset.tip).join("; ");
    };
    // Marks may cover each other: all that lie under the pointer are told.
    const under = event => tell([...new Set(document.elementsFromPoint(event.clientX, event.clientY)
      .map(element => marks.indexOf(element.closest("[data-tip]"))).filter(place => place >= 0))]);
    marks.forEach(mark => ["pointerenter", "pointermove"].forEach(kind => mark.addEventListener(kind, under)));
    if (marks.length) plot.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      tell([(here + step + marks.length) % marks.length]);
    });
    if (svg.dataset.plot) values(plot, svg, said);
  });

  // The values of all curves where the pointer is, or where the arrow keys lead.
  function values(plot, svg, said) {
    const { x, y, series } = JSON.parse(svg.dataset.plot);
    const cross = svg.querySelector(".cross");
    const place = v => (x.unit === "powers" ? Math.log2(v) : v);
    const pixel = v => x.from + (x.to - x.from) * (place(v) - x.low) / (x.high - x.low);
    const written = (v, axis) => axis.unit === "percent" ? (100 * v).toFixed(2) + " %" : String(+v.toPrecision(4));
    const stops = [...new Set(series.flatMap(s => (s.points || []).map(p => p[0])))].sort((a, b) => a - b);
    let at = null;
    const tell = v => {
      if (stops.length) v = stops.reduce((a, b) => Math.abs(pixel(b) - pixel(v)) < Math.abs(pixel(a) - pixel(v)) ? b : a);
      at = v;
      cross.setAttribute("transform", `translate(${pixel(v)} 0)`);
      cross.setAttribute("visibility", "visible");
      const words = series.map((s, number) => {
        if (hidden.has(number)) return "";
        if (s.steps) {
          let below = 0;
          while (below < s.steps.length && s.steps[below] <= v) below++;
          return `${s.name} ${written(below / s.steps.length, y)}`;
        }
        const point = s.points.find(p => p[0] === v);
        if (!point) return "";
        return `${s.name} ${written(point[1], y)}` + (point.length > 2 ? ` (${written(point[2], y)} to ${written(point[3], y)})` : "");
      });
      said.textContent = `${x.title} ${written(v, x)}: ${words.filter(Boolean).join(", ")}`;
    };
    svg.addEventListener("pointermove", event => {
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      const share = ((event.clientX - box.left) * view.width / box.width - x.from) / (x.to - x.from);
      const where = x.low + Math.min(1, Math.max(0, share)) * (x.high - x.low);
      tell(x.unit === "powers" ? 2 ** where : where);
    });
    plot.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      if (stops.length) return tell(stops[Math.min(stops.length - 1, Math.max(0, stops.indexOf(at) + step))]);
      const where = (at === null ? (x.low + x.high) / 2 : at) + step * (x.high - x.low) / 100;
      tell(Math.min(x.high, Math.max(x.low, where)));
    });
  }
})();
