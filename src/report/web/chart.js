// The picture as SVG text, drawn from the page's data: any width, any stretch of time, with any
// layers hidden. Classes and rules are those of the static picture.
const lowtidePainter = (data, state) => {
  'use strict';
  const times = data.seconds, end = data.duration;
  const CACHE = 'page cache, not mapped';
  const LEAST = 1 << 20; // a finer axis would magnify noise
  let size = null; // of the last drawing

  const safe = (text) => String(text).replace(/[&<>"']/g, (c) => '&#' + c.charCodeAt(0) + ';');
  const r = (value) => Math.round(value * 10) / 10;
  const limitAt = (i) => (Array.isArray(data.limit) ? data.limit[i] : data.limit);

  const bytes = (n) => {
    if (n === null || n === undefined) return 'unknown';
    const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let power = 0;
    while (power < 4 && n >= 1024) { n /= 1024; power += 1; }
    const rounded = n.toFixed(n >= 100 ? 0 : n >= 10 ? 1 : 2);
    return (Number(rounded) === n ? n : rounded) + ' ' + names[power];
  };
  // To the millisecond if the picture shows less than a second.
  const span = (s) => {
    const exact = state.to - state.from < 1;
    if (s < 60) return +s.toFixed(s < 1 || exact ? 3 : 2) + ' s';
    const part = exact ? 1000 : 10, parts = Math.round(s * part), rest = parts % (60 * part);
    const minutes = Math.floor(parts / part / 60), hours = Math.floor(minutes / 60);
    return [hours && hours + ' h', minutes % 60 && (minutes % 60) + ' min', rest && rest / part + ' s']
      .filter(Boolean).join(' ');
  };

  const view = () => data[state.view];
  const layers = () => view().layers.filter((layer) => !state.hidden.has(layer.title));

  // The visible points, and one more on each side.
  const seen = () => {
    let first = 0, last = times.length - 1;
    while (first + 1 < times.length && times[first + 1] <= state.from) first += 1;
    while (last > 0 && times[last - 1] >= state.to) last -= 1;
    return [first, last];
  };

  const byteTicks = (top, most) => {
    top = Math.max(top, LEAST);
    let step = 1;
    while (step * most < top) step *= 2;
    const ticks = [0];
    do ticks.push(ticks.length * step); while (ticks[ticks.length - 1] < top);
    return ticks;
  };
  const timeTicks = (from, to, most) => {
    const least = (to - from) / most;
    const steps = [];
    for (let p = -6; p < 2; p += 1) for (const f of [1, 2, 5]) if (f * 10 ** p < 30) steps.push(f * 10 ** p);
    for (const m of [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720]) steps.push(m * 60);
    const step = steps.find((s) => s >= least) || Math.ceil(least / 86400) * 86400;
    const ticks = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-9); i += 1) ticks.push(i * step);
    return ticks;
  };

  // The stretches [first, last] in which a column is known.
  const stretches = (column, first, last) => {
    const found = [];
    for (let i = first; i <= last; i += 1) {
      if (column[i] === null || column[i] === undefined) continue;
      const open = found[found.length - 1];
      if (open && open[1] === i - 1) open[1] = i; else found.push([i, i]);
    }
    return found;
  };
  const text = (look, x, y, words) => `<text class="${look}" x="${r(x)}" y="${r(y)}">${safe(words)}</text>`;
  const line = (look, x1, y1, x2, y2) => `<path class="${look}" d="M${r(x1)} ${r(y1)}L${r(x2)} ${r(y2)}"/>`;

  const bandsOf = (shown) => {
    const height = times.map(() => 0);
    return shown.map((layer) => {
      const low = [], high = [];
      layer.bytes.forEach((value, i) => {
        low[i] = value === null ? null : height[i];
        if (value !== null) height[i] += value;
        high[i] = value === null ? null : height[i];
      });
      return { layer, low, high };
    });
  };

  const areaPath = (band, x, y, first, last) => stretches(band.high, first, last).map(([a, b]) => {
    if (a === b) {
      const [left, right] = [x(times[a]) - 1.5, x(times[a]) + 1.5].map(r);
      return `M${left} ${r(y(band.high[a]))}H${right}V${r(y(band.low[a]))}H${left}Z`;
    }
    const up = [], down = [];
    for (let i = a; i <= b; i += 1) {
      up.push(`${r(x(times[i]))} ${r(y(band.high[i]))}`);
      down.push(`${r(x(times[i]))} ${r(y(band.low[i]))}`);
    }
    return 'M' + up.join('L') + 'L' + down.reverse().join('L') + 'Z';
  }).join('');

  const linePath = (column, x, y, first, last) => stretches(column, first, last).map(([a, b]) => {
    if (a === b) return `M${r(x(times[a]) - 2)} ${r(y(column[a]))}h4`;
    const points = [];
    for (let i = a; i <= b; i += 1) points.push(`${r(x(times[i]))} ${r(y(column[i]))}`);
    return 'M' + points.join('L');
  }).join('');

  // The best position for a name on its area, away from other text; the same rule as in the static
  // picture.
  const nameOn = (band, x, y, first, last, taken) => {
    const width = 8 * band.layer.name.length + 12;
    let best = null, room = 16;
    for (let a = first; a <= last; a += 1) {
      const left = Math.max(x(times[a]), size.left);
      let high = size.top, low = size.bottom;
      for (let i = a; i <= last && band.high[i] !== null; i += 1) {
        high = Math.max(high, y(band.high[i]));
        low = Math.min(low, y(band.low[i]));
        if (low - high < room) break;
        if (Math.min(x(times[i]), size.right) - left < width) continue;
        const box = boxAt(left, (low + high) / 2, width);
        if (!taken.some((other) => meet(box, other))) {
          best = box;
          room = low - high + 0.5;
        }
        break;
      }
    }
    if (!best) return '';
    taken.push(best);
    return text('name mid', (best.left + best.right) / 2, best.top + 12, band.layer.name);
  };

  const boxAt = (left, middle, width) => ({ left, right: left + width, top: middle - 8, bottom: middle + 8 });
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

  const grid = (ticks, top, bottom, suffix) => ticks.map((at) => {
    const y = bottom - (bottom - top) * at / ticks[ticks.length - 1];
    return line(at ? 'grid' : 'base', size.left, y, size.right, y) +
      text('tick end', size.left - 8, y + 4, at ? bytes(at) + suffix : '0');
  }).join('');

  const marks = (x) => {
    let free = size.left, out = '';
    const inside = data.marks.filter((m) => m.seconds >= state.from && m.seconds <= state.to);
    const stride = Math.floor(inside.length / 25) + 1;
    inside.forEach((mark, i) => {
      if (i % stride) return;
      const at = x(mark.seconds), half = 3.6 * mark.text.length;
      out += line('mark', at, size.top, at, size.bottom) + line('mark', at, size.low, at, size.floor);
      if (at - half < free || at + half > size.right) return;
      out += text('tick mid', at, size.top - 6, mark.text);
      free = at + half + 10;
    });
    return out;
  };

  const highest = (column, first, last) => {
    let top = 0;
    for (let i = first; i <= last; i += 1) top = Math.max(top, column[i] || 0);
    return top;
  };

  // The page cache that no process maps, on top of the visible layers.
  const cacheBand = (bands) => {
    const top = bands.reduce((sum, band) => sum.map((value, i) => band.high[i] ?? value), times.map(() => 0));
    const high = data.cache.map((value, i) => (value === null ? null : top[i] + value));
    return { layer: { name: CACHE }, low: top.map((value, i) => (high[i] === null ? null : value)), high };
  };

  const limitLine = (x, y, top, limit, first, last, taken) => {
    if (!limit) return '';
    const above = limit > top, words = 'memory limit ' + bytes(limit) + (above ? ', above' : '');
    const base = above ? size.top + 14 : y(limit) - size.top < 18 ? y(limit) + 14 : y(limit) - 6;
    taken.push(boxAt(size.left + 4, base - 4, 8 * words.length + 8));
    const path = above ? '' : `<path class="limit" d="${linePath(times.map((_, i) => limitAt(i)), x, y, first, last)}"/>`;
    return path + text('name', size.left + 8, base, words);
  };

  // A leak: over the heap, the lowest layer of the stack by kind. Its label is at its upper end.
  const trendLine = (x, y, shown, tops, taken) => {
    const trend = data.trend;
    if (!trend || state.view !== 'tree' || !shown.length || shown[0].title !== 'heap') return '';
    const to = Math.min(trend.to, state.to);
    if (trend.from >= state.to || to <= state.from) return '';
    const at = (s) => trend.low + (trend.high - trend.low) * (s - trend.from) / (trend.to - trend.from);
    const width = 8 * trend.words.length, right = Math.max(x(to), size.left + width + 8);
    let base = y(at(to)) - 8;
    times.forEach((s, i) => { if (x(s) >= right - width && x(s) <= right) base = Math.min(base, y(tops[i]) - 8); });
    if (base < size.top + 14) base = Math.min(y(at(to)) + 34, size.bottom - 6);
    taken.push(boxAt(right - width, base - 4, width));
    return line('trend', x(trend.from), y(trend.low), x(trend.to), y(trend.high)) + text('name end', right - 4, base, trend.words);
  };

  const readSteps = (x, y, first, last) => stretches(view().read, Math.max(first, 1), last).map(([a, b]) => {
    let d = `M${r(x(times[a - 1]))} ${size.floor}`;
    for (let i = a; i <= b; i += 1) d += `V${r(y(view().read[i]))}H${r(x(times[i]))}`;
    return `<path class="read" d="${d}V${size.floor}Z"/>`;
  }).join('');

  const unknownSpans = (x, shown, first, last) => {
    const open = times.map((_, i) => (shown.some((layer) => layer.bytes[i] !== null) ? null : 1));
    if (!shown.length) return '';
    return stretches(open, first, last).map(([a, b]) => {
      const left = Math.max(x(times[Math.max(a - 1, 0)]), size.left);
      const right = Math.min(b + 1 < times.length ? x(times[b + 1]) : x(end), size.right);
      return `<rect class="unknown" fill="url(#lt-unknown)" x="${r(left)}" y="${size.top}" width="${r(Math.max(right - left, 0))}" height="${size.bottom - size.top}"/>` +
        (right - left > 70 ? text('name mid', (left + right) / 2, (size.top + size.bottom) / 2, 'unknown') : '');
    }).join('');
  };

  const draw = (wanted) => {
    const width = Math.max(wanted, 280), narrow = width < 560;
    size = { left: narrow ? 70 : 76, right: width - (narrow ? 8 : 16), top: 44, bottom: narrow ? 270 : 340 };
    size.low = size.bottom + 46;
    size.floor = size.low + (narrow ? 60 : 80);
    const [first, last] = seen(), shown = layers(), bands = bandsOf(shown);
    const cache = cacheBand(bands), cacheShown = !state.hidden.has(CACHE) && highest(data.cache, first, last) > 0;
    const peak = Math.max(cacheShown ? highest(cache.high, first, last) : 0, ...bands.map((band) => highest(band.high, first, last)), 0);
    const limit = Math.max(0, ...times.map((_, i) => limitAt(i) || 0));
    const ticks = byteTicks(limit <= 2 * peak ? Math.max(peak, limit) : peak, 5);
    const readTicks = byteTicks(highest(view().read, Math.max(first, 1), last), 3);
    const top = ticks[ticks.length - 1], readTop = readTicks[readTicks.length - 1];
    const x = (s) => size.left + (size.right - size.left) * (state.to > state.from ? (s - state.from) / (state.to - state.from) : 0);
    const y = (b) => size.bottom - (size.bottom - size.top) * b / top;
    const readY = (b) => size.floor - (size.floor - size.low) * b / readTop;
    size.x = x;
    let out = text('axis', 8, 18, `memory of ${state.view === 'root' ? 'the first process' : 'all processes'}, and page cache${narrow ? '' : ' of their files'}`) +
      text('axis', 8, size.low - 16, 'read from disk per second') +
      grid(ticks, size.top, size.bottom, '') + grid(readTicks, size.low, size.floor, '/s');
    for (const at of timeTicks(state.from, state.to, narrow ? 3 : 8)) {
      const near = size.right - x(at) < 30;
      out += line('grid', x(at), size.top, x(at), size.bottom) + line('grid', x(at), size.low, x(at), size.floor) +
        text(near ? 'tick end' : 'tick mid', near ? size.right : x(at), size.floor + 18, span(at));
    }
    out += text('axis mid', (size.left + size.right) / 2, size.floor + 40, 'time since the start');
    out += `<clipPath id="lt-clip"><rect x="${size.left}" y="0" width="${size.right - size.left}" height="${size.floor + 1}"/></clipPath><g clip-path="url(#lt-clip)">`;
    out += unknownSpans(x, shown, first, last);
    for (const band of bands) out += `<path class="area" fill="url(#lt-look-${band.layer.look})" d="${areaPath(band, x, y, first, last)}"/>`;
    if (cacheShown) out += `<path class="cache" d="${areaPath(cache, x, y, first, last)}"/><path class="cached" d="${linePath(cache.high, x, y, first, last)}"/>`;
    out += readSteps(x, readY, first, last) + marks(x) + '</g>';
    const taken = [], lines = limitLine(x, y, top, limit, first, last, taken) + trendLine(x, y, shown, cacheShown ? cache.high : cache.low, taken);
    for (const band of cacheShown ? [...bands, cache] : bands) out += nameOn(band, x, y, first, last, taken);
    out += `<g clip-path="url(#lt-clip)">${lines}</g><g class="over"></g>`;
    if (!stretches(view().read, 0, times.length - 1).length) {
      out += text('name mid', (size.left + size.right) / 2, (size.low + size.floor) / 2, 'bytes read: unknown');
    }
    Object.assign(size, { width, height: size.floor + 54 });
    return { markup: out, size };
  };

  return { draw, layers, view, limitAt, bytes, span, safe, line, r, CACHE };
};
