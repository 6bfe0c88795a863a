// Changes the sample rate of a stream: a polyphase filter, its low-pass a sinc under a Kaiser window.
// Pure: the capture and the playback worklet both use it, and the tests run it in a page.

const ZERO_CROSSINGS = 32; // of the sinc on each side, counted at the lower of the two rates: 1.3 ms at 24 kHz
const STOPBAND_DB = 80;
const BETA = 0.1102 * (STOPBAND_DB - 8.7); // Kaiser's own estimate for that attenuation
const TRANSITION = (STOPBAND_DB - 7.95) / (14.36 * 2 * ZERO_CROSSINGS); // width, as a share of the lower rate
const CUTOFF = 1 - TRANSITION; // half-amplitude point over the lower Nyquist rate, so that the stopband begins at it

export class Resampler {
  constructor(from, to) {
    const divisor = gcd(from, to);
    this.from = from;
    this.same = from === to;
    this.stride = from / divisor; // input advances by stride / phases of a sample per output sample
    this.phases = to / divisor;
    const lower = Math.min(1, to / from);
    this.half = Math.ceil(ZERO_CROSSINGS / lower); // input samples that a tap may lie ahead
    this.taps = 2 * this.half;
    this.filters = this.same ? null : polyphase(this.phases, this.half, ZERO_CROSSINGS / lower, lower * CUTOFF);
    this.output = new Float32Array(0);
    this.reset();
  }

  // Forgets what came before.
  reset() {
    this.buffer = new Float32Array(this.taps + 1024);
    this.length = this.half - 1; // silence before the first sample
    this.at = 0; // where in the buffer the next output sample's first tap lies
    this.phase = 0;
  }

  // Seconds of input that came after the place of the next output sample.
  get behind() {
    return this.same ? 0 : Math.max(0, this.length - this.at - (this.half - 1)) / this.from;
  }

  // The output that `input` (Float32Array) completes; valid until the next call.
  push(input) {
    if (this.same) return input;
    this.append(input);
    const most = Math.ceil((this.length * this.phases) / this.stride) + 1;
    if (this.output.length < most) this.output = new Float32Array(most);
    let made = 0;
    while (this.at + this.taps <= this.length) {
      const filter = this.filters[this.phase];
      let sum = 0;
      for (let tap = 0; tap < this.taps; tap++) sum += filter[tap] * this.buffer[this.at + tap];
      this.output[made++] = sum;
      this.phase += this.stride;
      this.at += Math.floor(this.phase / this.phases);
      this.phase %= this.phases;
    }
    const done = Math.min(this.at, this.length);
    this.buffer.copyWithin(0, done, this.length);
    this.length -= done;
    this.at -= done;
    return this.output.subarray(0, made);
  }

  // The rest of the output, as if silence followed; the stream then begins anew.
  finish() {
    const rest = this.same ? new Float32Array(0) : this.push(new Float32Array(this.half)).slice();
    this.reset();
    return rest;
  }

  append(input) {
    if (this.length + input.length > this.buffer.length) {
      const larger = new Float32Array(2 * (this.length + input.length));
      larger.set(this.buffer.subarray(0, this.length));
      this.buffer = larger;
    }
    this.buffer.set(input, this.length);
    this.length += input.length;
  }
}

// One filter for each place that an output sample can have between two input samples.
function polyphase(phases, half, width, cutoff) {
  const filters = [];
  for (let phase = 0; phase < phases; phase++) {
    const filter = new Float64Array(2 * half);
    let sum = 0;
    for (let tap = 0; tap < filter.length; tap++) {
      const distance = phase / phases - (tap - (half - 1));
      filter[tap] = sinc(cutoff * distance) * kaiser(distance / width);
      sum += filter[tap];
    }
    filters.push(filter.map((weight) => weight / sum)); // each phase passes a constant unchanged
  }
  return filters;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

function kaiser(x) {
  return Math.abs(x) >= 1 ? 0 : bessel(BETA * Math.sqrt(1 - x * x)) / bessel(BETA);
}

// The modified Bessel function of the first kind and order zero, by its power series.
function bessel(x) {
  let term = 1;
  let sum = 1;
  for (let n = 1; term > sum * 1e-12; n++) {
    term *= (x / (2 * n)) ** 2;
    sum += term;
  }
  return sum;
}

function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}
