// Tables: a page of rows at a time, sorted by any column.
class Table {
  // columns: [title, value(row), numeric, text(row)]; `pick` makes the first column a button.
  constructor(box, caption, columns, rows, pick) {
    Object.assign(this, { box, caption, columns, all: rows, rows, pick, page: 0, by: -1, up: true, marked: null });
    this.paint();
  }
  filter(keep) { this.rows = keep ? this.all.filter(keep) : this.all; this.page = 0; this.order(); this.paint(); }
  order() {
    if (this.by < 0) return;
    const v = this.columns[this.by][1], d = this.up ? 1 : -1;
    this.rows = this.rows.slice().sort((a, b) => { const x = v(a), y = v(b); return (x < y ? -1 : x > y ? 1 : 0) * d; });
  }
  mark(row) { this.marked = row; const k = this.rows.indexOf(row); if (k >= 0) this.page = Math.floor(k / Table.PAGE); this.paint(); }
  paint() {
    const pages = Math.max(1, Math.ceil(this.rows.length / Table.PAGE)), from = this.page * Table.PAGE;
    const head = this.columns.map(([title, , numeric], k) => node('th', { scope: 'col', class: numeric ? 'n' : null,
      'aria-sort': this.by === k ? (this.up ? 'ascending' : 'descending') : 'none' },
      node('button', { type: 'button', onclick: () => { this.up = this.by === k ? !this.up : !numeric; this.by = k; this.page = 0; this.order(); this.paint(); this.box.querySelectorAll('th button')[k].focus(); } }, title + (this.by === k ? (this.up ? ' \u25b2' : ' \u25bc') : ''))));
    const body = this.rows.slice(from, from + Table.PAGE).map(row => node('tr', { class: row === this.marked ? 'on' : null },
      ...this.columns.map(([, value, numeric, text], k) => {
        const shown = text ? text(row) : numeric ? group(value(row)) : String(value(row));
        return node('td', { class: numeric ? 'n' : null }, k === 0 && this.pick ? node('button', { type: 'button', onclick: () => this.pick(row) }, shown) : shown);
      })));
    const turn = (label, to, can) => node('button', { type: 'button', disabled: !can, onclick: () => { this.page = to; this.paint(); } }, label);
    this.box.replaceChildren(node('div', { class: 'scroll' }, node('table', {}, node('caption', {}, this.caption + ': ' + group(this.rows.length) + (pages > 1 ? ', rows ' + group(from + 1) + ' to ' + group(Math.min(from + Table.PAGE, this.rows.length)) : '')),
      node('thead', {}, node('tr', {}, ...head)), node('tbody', {}, ...body))));
    if (pages > 1) this.box.append(node('p', { class: 'pager' }, turn('Previous', this.page - 1, this.page > 0), ' page ' + (this.page + 1) + ' of ' + pages + ' ', turn('Next', this.page + 1, this.page + 1 < pages)));
  }
}
Table.PAGE = 25;
function tensorTable(box, plan, caption, pick) {
  return new Table(box, caption, [['tensor', i => plan.full(i)], ['kind', i => plan.kindOf(i)], ['shape, type', i => plan.form(i)],
    ['bytes', i => plan.size[i] ?? -1, true, i => group(plan.size[i])], ['offset', i => plan.offset[i] ?? -1, true, i => plan.offset[i] === null ? '\u2013' : group(plan.offset[i])],
    ['first step', i => plan.from[i], false, i => plan.spans[i].length ? plan.moment(plan.from[i]) : '\u2013'], ['last step', i => plan.to[i], false, i => plan.spans[i].length ? plan.moment(plan.to[i]) + (plan.kept[i] ? ' (kept)' : '') : '\u2013'],
    ['idle above', i => plan.idle[i], true]], [...plan.id.keys()], pick);
}
function operatorTable(box, plan, caption) {
  const live = new Float64Array(plan.last - plan.first + 1);
  plan.live.forEach(([t, b], k) => { const end = k + 1 < plan.live.length ? plan.live[k + 1][0] : plan.last + 1; for (let s = t; s < end && s <= plan.last; s++) live[s - plan.first] = b; });
  const used = t => plan.arena ? live[t - plan.first] / plan.arena : 0;
  return new Table(box, caption, [['step', t => t, false, t => plan.moment(t)], ['bytes alive', t => live[t - plan.first], true],
    ['of the arena', used, true, t => (used(t) * 100).toFixed(1) + ' %'],
    ['share', used, false, t => node('span', { class: 'meter', 'aria-hidden': 'true' }, node('b', { style: 'width:' + (used(t) * 100).toFixed(1) + '%' }))]],
    Array.from({ length: plan.last - plan.first + 1 }, (_, k) => plan.first + k));
}
// Rows with arena bytes in either of two plans that differ, the same by name, else by id.
function differences(a, b) {
  const key = (p, i) => p.subgraph(i) + '/' + (p.name[i] || '#' + p.id[i]), other = new Map(b.placed.map(j => [key(b, j), j])), out = [], met = new Set();
  for (const i of a.placed) {
    const k = key(a, i), j = other.get(k);
    met.add(k);
    if (j === undefined) out.push({ a: i, b: -1 });
    else if (a.size[i] !== b.size[j] || a.offset[i] !== b.offset[j] || a.from[i] !== b.from[j] || a.to[i] !== b.to[j]) out.push({ a: i, b: j });
  }
  for (const j of b.placed) if (!met.has(key(b, j))) out.push({ a: -1, b: j });
  return out;
}
