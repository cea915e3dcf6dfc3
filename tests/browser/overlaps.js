// Words of pictures that stand on one another, or leave their picture.
const found = [];
const seen = element => element.getClientRects().length > 0;
document.querySelectorAll("svg.chart").forEach(svg => {
  if (!seen(svg)) return;
  const frame = svg.getBoundingClientRect(), title = svg.getAttribute("aria-label");
  const texts = [...svg.querySelectorAll("text")].filter(t => !t.getAttribute("transform") && seen(t) && t.textContent);
  const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([a, p], i) => {
    if (p.left < frame.left - 1 || p.right > frame.right + 1 || p.bottom > frame.bottom + 1) found.push(`${a} leaves ${title}`);
    boxes.slice(i + 1).forEach(([b, q]) => {
      const across = p.left < q.right - 1 && q.left < p.right - 1, down = p.top < q.bottom - 3 && q.top < p.bottom - 3;
      if (across && down) found.push(`${a} on ${b} in ${title}`);
    });
  });
});
return found;
