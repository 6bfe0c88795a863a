// PCM16 at the wire's rate, and its base64.

export const RATE = 24000;
const SLICE = 8192; // characters made at once: an argument list must not grow with the sound

export function toBase64(samples) {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += SLICE) {
    text += String.fromCharCode.apply(null, bytes.subarray(at, at + SLICE));
  }
  return btoa(text);
}

// Raises an InvalidCharacterError for what is not base64. An odd last byte is no sample.
export function fromBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length - (characters.length % 2));
  for (let at = 0; at < bytes.length; at++) bytes[at] = characters.charCodeAt(at);
  return new Int16Array(bytes.buffer);
}
