// Makes the picture interactive: zooming, reading values and hiding layers, by mouse, by touch and
// by keyboard.
(() => {
  'use strict';
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId('data').textContent);
  const stage = byId('stage'), tip = byId('tip'), told = byId('told'), legend = byId('legend');
  const svg = stage.querySelector('svg'), plot = svg.querySelector('.plot');
  const times = data.seconds, end = data.duration;
  const state = { view: 'tree', from: 0, to: end, hidden: new Set(), at: null, drag: null };
  const SLIP = 8; // pixels: a slightly shaky hand is not a drag
  const painter = lowtidePainter(data, state);
  const { layers, view, limitAt, bytes, span, safe, line, r, CACHE } = painter;
  let size = null; // of the last drawing

  const draw = () => {
    const drawn = painter.draw(stage.clientWidth);
    size = drawn.size;
    svg.setAttribute('viewBox', `0 0 ${size.width} ${size.height}`);
    svg.setAttribute('width', size.width);
    svg.setAttribute('height', size.height);
    plot.innerHTML = drawn.markup;
    showCursor();
  };

  const swatch = (look) => '<svg class="swatch lt-chart" width="22" height="14" aria-hidden="true">' +
    (typeof look === 'number' ? `<rect width="22" height="14" fill="url(#lt-look-${look})"/>` :
      look === 'cache' ? '<rect class="cache" width="22" height="14"/><path class="cached" d="M0 1H22"/>' : `<path class="${look}" d="M0 7H22"/>`) + '</svg>';
  const gaps = (column) => {
    const known = column.filter((value) => value !== null).length;
    return known === 0 ? ' (unknown)' : known < column.length ? ' (partly unknown)' : '';
  };
  const drawLegend = () => {
    const entry = (look, title, more) => `<li><button type="button" class="entry" data-title="${safe(title)}" aria-pressed="${!state.hidden.has(title)}">${swatch(look)}<span>${safe(title + more)}</span></button></li>`;
    let out = data.cache.every((value) => value === 0) ? '' : entry('cache', CACHE, gaps(data.cache));
    out += [...view().layers].reverse().map((layer) => entry(layer.look, layer.title, gaps(layer.bytes))).join('');
    if (times.some((_, i) => limitAt(i))) out += `<li><span class="entry">${swatch('limit')}<span>memory limit</span></span></li>`;
    legend.innerHTML = out;
  };

  const valuesAt = (i) => {
    const shown = layers();
    const known = shown.filter((layer) => layer.bytes[i] !== null);
    const rows = [...shown].reverse().map((layer) => [swatch(layer.look), layer.title, bytes(layer.bytes[i])]);
    rows.unshift(['', 'held by processes', known.length ? bytes(known.reduce((sum, layer) => sum + layer.bytes[i], 0)) : 'unknown']);
    if (!state.hidden.has(CACHE)) rows.push([swatch('cache'), CACHE, bytes(data.cache[i])]);
    if (limitAt(i)) rows.push([swatch('limit'), 'memory limit', bytes(limitAt(i))]);
    const read = view().read[i];
    rows.push(['', 'read from disk', read === null || read === undefined ? 'unknown' : bytes(read) + '/s']);
    return rows;
  };

  const showCursor = () => {
    const over = plot.querySelector('.over');
    const i = state.at;
    tip.hidden = i === null || times[i] < state.from || times[i] > state.to;
    if (!over) return;
    over.innerHTML = '';
    if (state.drag && Math.abs(state.drag.to - state.drag.from) > SLIP) {
      const [left, right] = [state.drag.from, state.drag.to].sort((a, b) => a - b);
      over.innerHTML = `<rect class="pick" x="${r(left)}" y="${size.top}" width="${r(right - left)}" height="${size.floor - size.top}"/>`;
    }
    if (tip.hidden) return;
    const x = size.x(times[i]);
    over.innerHTML += line('hair', x, size.top, x, size.floor);
    tip.innerHTML = `<b>${span(times[i])}</b><table>` + valuesAt(i).map(([sign, name, value]) => `<tr><th scope="row">${sign}${safe(name)}</th><td class="number">${safe(value)}</td></tr>`).join('') + '</table>';
    const room = tip.offsetWidth + 14;
    const left = x + room <= stage.clientWidth ? x + 12 : x - room > 0 ? x - room : Math.max(0, stage.clientWidth - room);
    tip.style.left = left + 'px';
  };

  const moveTo = (i) => {
    state.at = Math.min(Math.max(i, 0), times.length - 1);
    showCursor();
  };
  const tell = () => {
    if (state.at === null) return;
    told.textContent = span(times[state.at]) + '. ' + valuesAt(state.at).map(([, name, value]) => name + ' ' + value).join(', ');
  };
  const zoomTo = (from, to) => {
    const least = Math.min(end, Math.max(end / 2000, 0.001));
    if (to - from < least) { const mid = (from + to) / 2; from = mid - least / 2; to = mid + least / 2; }
    if (from < 0) { to -= from; from = 0; }
    if (to > end) { from = Math.max(0, from - (to - end)); to = end; }
    state.from = from;
    state.to = to;
    draw();
    told.textContent = from <= 0 && to >= end ? 'the whole run' : `from ${span(from)} to ${span(to)}`;
  };
  const zoomBy = (factor) => {
    const inside = state.at !== null && times[state.at] >= state.from && times[state.at] <= state.to;
    const mid = inside ? times[state.at] : (state.from + state.to) / 2;
    zoomTo(mid - (mid - state.from) * factor, mid + (state.to - mid) * factor);
  };
  // Keys move among the visible points and scroll the picture at its edges.
  const step = (by) => {
    if (!times.length) return;
    let i = state.at;
    if (i === null) i = times.findIndex((s) => s >= state.from); else i += by;
    i = Math.min(Math.max(i, 0), times.length - 1);
    const off = times[i] < state.from ? times[i] - state.from : times[i] > state.to ? times[i] - state.to : 0;
    if (off) zoomTo(state.from + off, state.to + off);
    moveTo(i);
    tell();
  };
  const secondsAt = (x) => state.from + (state.to - state.from) * Math.min(Math.max((x - size.left) / (size.right - size.left), 0), 1);
  const nearest = (s) => {
    let best = 0;
    times.forEach((time, i) => { if (Math.abs(time - s) < Math.abs(times[best] - s)) best = i; });
    return best;
  };
  const xOf = (event) => event.clientX - svg.getBoundingClientRect().left;

  // Mouse, pen and touch alike; of several fingers, the first.
  stage.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || !event.isPrimary || !times.length) return;
    state.drag = { from: xOf(event), to: xOf(event) };
    try { stage.setPointerCapture(event.pointerId); } catch { /* the pointer is already gone */ }
    moveTo(nearest(secondsAt(xOf(event))));
  });
  stage.addEventListener('pointermove', (event) => {
    if (!event.isPrimary || !times.length) return;
    if (state.drag) state.drag.to = Math.min(Math.max(xOf(event), size.left), size.right);
    moveTo(nearest(secondsAt(xOf(event))));
  });
  stage.addEventListener('pointerup', (event) => {
    if (!event.isPrimary) return;
    const drag = state.drag;
    state.drag = null;
    if (!drag || Math.abs(drag.to - drag.from) <= SLIP) return showCursor();
    const [from, to] = [secondsAt(drag.from), secondsAt(drag.to)].sort((a, b) => a - b);
    zoomTo(from, to);
  });
  const letGo = () => {
    state.at = null;
    state.drag = null;
    showCursor();
  };
  stage.addEventListener('pointercancel', letGo); // the touch became a scroll of the page
  // Lifting a finger always fires a leave event; the values it showed stay visible.
  stage.addEventListener('pointerleave', (event) => {
    if (!state.drag && event.pointerType !== 'touch') letGo();
  });
  stage.addEventListener('dblclick', () => zoomTo(0, end));
  const keys = {
    ArrowLeft: (event) => step(event.shiftKey ? -10 : -1),
    ArrowRight: (event) => step(event.shiftKey ? 10 : 1),
    Home: () => step(-times.length),
    End: () => step(times.length),
    '+': () => zoomBy(0.5),
    '=': () => zoomBy(0.5),
    '-': () => zoomBy(2),
    0: () => zoomTo(0, end),
    Escape: letGo,
  };
  stage.addEventListener('keydown', (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act(event);
  });
  legend.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    const title = button.dataset.title;
    if (!state.hidden.delete(title)) state.hidden.add(title);
    button.setAttribute('aria-pressed', String(!state.hidden.has(title)));
    draw();
  });
  byId('views').hidden = !data.root;
  byId('views').addEventListener('change', (event) => {
    state.view = event.target.value;
    drawLegend();
    draw();
  });
  byId('in').addEventListener('click', () => zoomBy(0.5));
  byId('out').addEventListener('click', () => zoomBy(2));
  byId('all').addEventListener('click', () => zoomTo(0, end));
  addEventListener('beforeprint', () => { document.querySelector('.words').open = true; });

  stage.tabIndex = 0;
  stage.setAttribute('role', 'group');
  stage.setAttribute('aria-label', 'Picture of memory over time. Arrow keys read the values, plus and minus zoom, zero shows the whole run.');
  stage.classList.add('live');
  document.querySelector('.toolbar').hidden = false;
  drawLegend();
  draw();
  new ResizeObserver(() => { if (Math.abs(stage.clientWidth - svg.viewBox.baseVal.width) > 1) draw(); }).observe(stage);
})();
