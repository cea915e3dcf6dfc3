// What cannot be told from its ground: text below 4.5 to 1, curves below 3 to 1 (WCAG 2).
const part = v => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = colour => {
  const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map(Number).map(part);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ratio = (a, b) => {
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};
const found = [];
const want = (least, colour, ground, what) => {
  const reached = ratio(colour, ground);
  if (reached < least) found.push(`${what} ${reached.toFixed(1)}`);
};
const ground = getComputedStyle(document.body).backgroundColor;
document.querySelectorAll("p, td, th, figcaption, dt, dd, legend").forEach(e => want(4.5, getComputedStyle(e).color, ground, e.tagName));
document.querySelectorAll("svg.chart").forEach(svg => {
  const field = getComputedStyle(svg.querySelector(".ground")).fill;
  const texts = [...svg.querySelectorAll("text")].filter(e => !/\bin\d/.test(e.getAttribute("class")));
  texts.forEach(e => want(4.5, getComputedStyle(e).fill, field, e.textContent));
  svg.querySelectorAll(".curve").forEach(e => want(3, getComputedStyle(e).stroke, field, "curve"));
});
return found;
