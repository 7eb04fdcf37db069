// Where a value stands along an axis, at which values ticks stand, and how numbers are written.

const formats = new Map();
const grouped = (value, options) => {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat("en", options));
  return formats.get(key).format(value);
};

// A number with so many digits that count, whatever its size: 12,500; 2.5M; 0.001; 1e-9.
const brief = (value, digits = 6) => {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-5 || size >= 1e12)) {
    return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
  }
  const [unit, sign] = size >= 1e6 ? [1e6, "M"] : [1, ""];
  return grouped(value / unit, { maximumSignificantDigits: digits }) + sign;
};

// ".3g": so many digits that count; ".2f": so many decimals. Thousands are always grouped.
const written = (value, form) => {
  if (typeof value !== "number") return String(value ?? "").replace("\u0000", ", ");
  const [, digits, kind] = /^,?\.(\d+)([fg])$/.exec(form || "") || [];
  if (kind === "f") return grouped(value, { minimumFractionDigits: +digits, maximumFractionDigits: +digits });
  return brief(value, kind ? +digits : 6);
};

const filled = (template, point) =>
  template.replace(/%\{(x|y|text)(?::([^}]*))?\}/g, (_, key, form) => written(point[key], form));

// Every step-th power of ten that lies within.
const decades = (low, high, step = 1) => {
  const found = [];
  const last = Math.floor(Math.log10(high) + 1e-9);
  for (let ten = Math.ceil(Math.log10(low) - 1e-9); ten <= last; ten += step) found.push(Number(`1e${ten}`));
  return found;
};

// Round values, about so many, and so far apart at least.
const rounds = (low, high, about, least) => {
  const rough = Math.max(least, (high - low) / Math.max(1, about));
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * ([1, 2, 5, 10].find((times) => times * ten >= rough * 0.999) || 10);
  const found = [];
  if (!Number.isFinite(step) || step <= 0) return [low];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count += 1) {
    if (found.length > 50) break;
    found.push(Number((count * step).toPrecision(12)));
  }
  return found;
};

// What a numeric axis spans: what there is to show, and a little more.
const spanned = (spec, values) => {
  const known = values.filter((value) => typeof value === "number" && (spec.type !== "log" || value > 0));
  let low = Infinity;
  let high = -Infinity;
  for (const value of known) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return spec.type === "log" ? [0.1, 10] : [0, 1];
  if (spec.type === "log") {
    // Of a scale with fewer than two ticks nobody can tell that it is one.
    if (!spec.tickvals && decades(low, high).length < 2) {
      low = 10 ** Math.floor(Math.log10(low) + 1e-9);
      high = Math.max(10 ** Math.ceil(Math.log10(high) - 1e-9), low * 10);
    }
    const more = (high / low) ** 0.03;
    return [low / Math.max(more, 1.02), high * Math.max(more, 1.02)];
  }
  const zero = spec.rangemode === "tozero";
  if (zero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [zero && low === 0 ? 0 : low - room, zero && high === 0 ? 0 : high + room];
};

// An axis: `at` says where a value stands, 0 being its begin and 1 its end.
const axisOf = (spec, values, zoomed) => {
  if (spec.type === "category" || values.some((value) => typeof value === "string")) {
    const names = [...new Set(values.filter((value) => value !== null))];
    const places = new Map(names.map((name, place) => [name, place]));
    return { spec, names, at: (name) => (places.get(name) + 0.5) / names.length, band: 1 / names.length };
  }
  const [low, high] = zoomed || spec.range || spanned(spec, values);
  const turned = spec.type === "log" ? Math.log10 : (value) => value;
  const begin = turned(low);
  const length = turned(high) - begin || 1;
  const back = (share) => (spec.type === "log" ? 10 ** (begin + share * length) : begin + share * length);
  return { spec, low, high, zoomed: Boolean(zoomed), back, at: (value) => (turned(value) - begin) / length };
};

const spread = (values, room, size) => {
  for (let step = 1; step < values.length; step += 1) {
    const kept = values.filter((_, place) => place % step === 0);
    const wide = kept.every((value, place) => place === 0 || room(kept[place - 1], value) >= size(value));
    if (wide) return kept;
  }
  return values.slice(0, 1);
};

// The values that get a tick on an axis so many pixels long; `size` says what a label needs of them, and round
// values stand `apart` as far as that.
const ticksOf = (axis, pixels, size, apart = 45) => {
  if (axis.names) return axis.names;
  const { spec, low, high } = axis;
  const room = (one, other) => Math.abs(axis.at(other) - axis.at(one)) * pixels;
  let values = (spec.tickvals || []).filter((value) => value >= low && value <= high);
  if (values.length < 2 && spec.type === "log") values = decades(low, high);
  if (values.length < 2) {
    const fitting = (about) => rounds(low, high, about, spec.whole ? 1 : 0);
    let about = Math.max(2, Math.floor(pixels / apart));
    const wide = (found) => found.every((one, place) => !place || room(found[place - 1], one) >= size(one));
    while (about > 2 && !wide(fitting(about))) about -= 1;
    values = fitting(about);
  }
  return spread(values, room, size);
};
