// The page's own script: times in the viewer's zone, charts, and what changed every few seconds.
// Without it everything is still there: as text, as tables, in UTC.
"use strict";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const ZONED = {
  moment: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
  day: { day: "numeric", month: "short", year: "numeric" },
  date: { day: "numeric", month: "short" },
  clock: { hour: "2-digit", minute: "2-digit" },
  second: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
};

// A moment of today is its time alone.
function written(at, as) {
  const isToday = at.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(undefined, ZONED[as === "moment" && isToday ? "clock" : as]).format(at);
}

function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    time.textContent = written(at, time.dataset.as);
    time.title = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" }).format(at);
  }
}

// The same words as `duration` of terminal/words.py, in the unit of another one beside it.
function duration(seconds, beside) {
  const s = Math.abs(beside ?? seconds);
  const say = (unit, digits, name) => {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    const least = 10 ** -digits, isLess = seconds > 0 && seconds / unit < least / 2;
    return `${isLess ? "<" : ""}${(isLess ? least : seconds / unit).toLocaleString("en", options)} ${name}`;
  };
  if (s >= 0.0005 && s < 0.95) return `${+seconds.toPrecision(1)} s`;
  if (s < 59.5) return say(1, 0, "s");
  if (s < 89.5 * 60) return say(60, 0, "min");
  return s < 98.35 * 3600 ? say(3600, 1, "h") : say(86400, 1, "days");
}

const UNITS = {
  duration,
  share: (value) => `${+(value * 100).toFixed(1)}%`,
  count: (value) => value.toLocaleString(undefined, { maximumFractionDigits: 1 }),
  moment: (value) => written(new Date(value * 1000), "moment"),
};

// Ticks that people would choose, in seconds; uPlot's own are powers of ten, and two of them in a minute would read alike.
const MINUTES = [60, 300, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800];
const BELOW = [1, 5, 15];
const STEPS = { duration: [...BELOW, ...MINUTES], moment: MINUTES };

// Of an axis whose ticks each double or triple.
const LOGARITHMIC = [1, 5, 15, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];
const DASHES = { dashed: [6, 4], dotted: [2, 3] };

const AXIS = { day: { day: "numeric", month: "short", timeZone: "UTC" }, moment: { hour: "2-digit", minute: "2-digit" } };

// Around the lines to look at: a bound that is days away would press them together.
function near(chart) {
  const times = chart.series.filter((each) => each.heavy).flatMap((each) => each.values).filter((at) => at != null);
  const low = Math.min(...times), high = Math.max(...times), room = Math.max(1800, high - low);
  return [low - room, high + room];
}

const charts = new Map();

function draw(figure) {
  const text = figure.querySelector("script").textContent;
  const chart = JSON.parse(text);
  const box = figure.querySelector(".plot");
  const show = UNITS[chart.unit];
  const axis = { stroke: style("--quiet"), grid: { stroke: style("--grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const colour = (name) => style(`--${name}`);
  const readouts = figure.querySelectorAll("[data-series]");
  const plot = new uPlot({
    width: box.clientWidth,
    height: box.clientHeight,
    tzDate: chart.by === "day" ? (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : undefined, // a tick is where a day begins
    legend: { show: false },
    cursor: { y: false, points: { size: 7 } },
    scales: { y: chart.log ? { distr: 3, range: (_, low, high) => [low / 1.3, high * 1.3] } : { range: (_, _low, high) => chart.unit === "moment" ? near(chart) : [0, chart.most ?? (high > 0 ? high * 1.08 : 1)] } },
    axes: [
      { ...axis, space: 80, size: 30, incrs: STEPS[chart.by], values: (_, ticks) => ticks.map((at) => new Intl.DateTimeFormat(undefined, AXIS[chart.by]).format(at * 1000)) },
      { ...axis, size: chart.unit === "moment" ? 96 : 62, incrs: STEPS[chart.unit], values: (_, ticks) => ticks.map((at) => show(at)), ...(chart.log ? { splits: (_u, _axis, low, high) => LOGARITHMIC.filter((at) => low <= at && at <= high), filter: (_u, ticks) => ticks } : {}) },
    ],
    series: [{}, ...chart.series.map((each) => ({
      label: each.label, stroke: colour(each.colour), width: each.heavy ? 2.5 : 1.6, dash: DASHES[each.dash],
      spanGaps: true, points: { show: chart.x.length < 40, size: 5 },
      fill: each.fill ? `${colour(each.colour)}22` : undefined,
    }))],
    hooks: {
      setCursor: [(u) => readouts.forEach((readout, place) => {
        const at = u.cursor.idx ?? chart.x.length - 1, value = chart.series[place]?.values[at];
        readout.textContent = value == null ? "–" : show(value, chart.beside);
      })],
      draw: [(u) => (chart.marks ?? []).forEach((mark) => {
        const at = Math.round(u.valToPos(mark, "x", true));
        u.ctx.save(); u.ctx.strokeStyle = style("--careful"); u.ctx.setLineDash([2, 4]); u.ctx.beginPath();
        u.ctx.moveTo(at, u.bbox.top); u.ctx.lineTo(at, u.bbox.top + u.bbox.height); u.ctx.stroke(); u.ctx.restore();
      })],
    },
  }, [chart.x, ...chart.series.map((each) => each.values)], box);
  charts.get(figure.id)?.plot.destroy();
  charts.set(figure.id, { plot, text });
}

function drawAll() {
  for (const figure of document.querySelectorAll("figure.chart")) {
    const numbers = figure.querySelector("script"); // a chart without figures says so in words
    if (numbers && charts.get(figure.id)?.text !== numbers.textContent) draw(figure);
  }
}

function redraw() {
  charts.forEach(({ plot }) => plot.destroy());
  charts.clear();
  drawAll();
}

// What a region said before its times were localised, by its id.
const said = new Map();

function remember(root) {
  for (const region of root.querySelectorAll("[data-live]")) said.set(region.id, region.innerHTML);
}

function takeOver(newer) {
  for (const region of newer.querySelectorAll("[data-live]")) {
    const present = document.getElementById(region.id);
    if (!present) return location.reload(); // a chart has its first figures
    if (said.get(region.id) === region.innerHTML) continue;
    said.set(region.id, region.innerHTML);
    const focused = present.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    if (present.tagName === "SCRIPT") {
      present.textContent = region.textContent;
      continue;
    }
    const boxes = () => [...present.querySelectorAll(".scroll")];
    const places = boxes().map((box) => [box.scrollLeft, box === document.activeElement]);
    present.replaceChildren(...document.importNode(region, true).childNodes);
    localise(present);
    boxes().forEach((box, number) => {
      const [left, hadFocus] = places[number] ?? [0, false];
      box.scrollLeft = left;
      if (hadFocus) box.focus({ preventScroll: true });
    });
    if (focused) present.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
  drawAll();
}

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.redirected) location.reload();
    else if (answer.ok) takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
    document.body.classList.toggle("away", !answer.ok);
  } catch {
    document.body.classList.add("away");
  }
}

remember(document);
localise(document);
drawAll();
for (const select of document.querySelectorAll("select[data-submit]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redraw, 150); });
const seconds = Number(document.body.dataset.refresh);
if (seconds) setInterval(refresh, seconds * 1000);
