// Colours that stay apart for colour-blind readers (after Okabe and Ito), and a scale that grows in lightness alone.
const HUES = ['#56b4e9', '#e69f00', '#009e73', '#f0e442', '#cc79a7', '#d55e00', '#4f83c9', '#b7c95b'];
const GREY = '#9a9a9a';
const SCALE = [[64, 98, 170], [84, 104, 138], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
const KINDS = { intermediate: HUES[0], input: HUES[1], 'input+output': HUES[1], output: HUES[2], scratch: HUES[4], buffer: HUES[0] };
function scale(v) {
  const x = Math.max(0, Math.min(1, v)) * (SCALE.length - 1), k = Math.min(SCALE.length - 2, Math.floor(x)), f = x - k;
  const c = SCALE[k].map((a, j) => Math.round(a + (SCALE[k + 1][j] - a) * f));
  return 'rgb(' + c.join(',') + ')';
}
function ink(colour) {
  const c = colour[0] === '#' ? [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16)) : colour.match(/\d+/g).map(Number);
  return c[0] * .299 + c[1] * .587 + c[2] * .114 > 140 ? '#000' : '#fff';
}
// What to paint each row, and the legend that says so.
function colouring(plan, by) {
  const legend = [], of = new Array(plan.id.length).fill(GREY);
  if (by === 'kind') {
    const seen = new Set();
    for (const i of plan.placed) { const k = plan.kindOf(i); of[i] = KINDS[k] || GREY; seen.add(k); }
    for (const k of seen) legend.push([KINDS[k] || GREY, k]);
  } else if (by === 'op') {
    const bytes = new Map();
    for (const i of plan.placed) bytes.set(plan.writer(i), (bytes.get(plan.writer(i)) || 0) + plan.size[i]);
    const top = [...bytes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, HUES.length).map(x => x[0]);
    for (const i of plan.placed) { const k = top.indexOf(plan.writer(i)); of[i] = k < 0 ? GREY : HUES[k]; }
    top.forEach((name, k) => legend.push([HUES[k], name]));
    if (bytes.size > top.length) legend.push([GREY, 'other operators']);
  } else {
    const steps = plan.last - plan.first + 1;
    const value = { size: i => plan.size[i], waste: i => plan.idle[i], life: i => plan.to[i] - plan.from[i] + 1 }[by];
    let most = 1;
    for (const i of plan.placed) most = Math.max(most, value(i));
    for (const i of plan.placed) of[i] = scale(Math.sqrt(value(i) / most));
    const show = v => by === 'life' ? group(Math.round(v)) + ' of ' + group(steps) + ' steps' : human(v);
    for (const f of [0, .25, .5, .75, 1]) legend.push([scale(f), show(by === 'life' ? Math.max(1, f * f * most) : f * f * most)]);
  }
  return { of, legend };
}
