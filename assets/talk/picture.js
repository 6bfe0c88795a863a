// An image file as a data URL that is worth sending: the server makes about 200,000 pixels of it in any case.

const AS_IT_IS_BYTES = 1_000_000;
const LONGEST_PX = 1600; // of a large one's longer side: still several times what the model sees
const QUALITY = 0.9;

export class PictureError extends Error {
  constructor(cause) {
    super(`no picture: ${cause}`);
    this.cause = cause;
  }
}

// Raises PictureError: not_an_image, or image_too_large for more than `maxBytes` (null: no limit).
export async function picture(file, maxBytes) {
  if (!file.type.startsWith("image/")) throw new PictureError("not_an_image");
  if (maxBytes !== null && file.size > maxBytes) throw new PictureError("image_too_large");
  const bitmap = await read(file);
  const blob = file.size > AS_IT_IS_BYTES ? await smaller(bitmap) : file;
  bitmap.close();
  return { url: await dataUrl(blob ?? file), name: file.name };
}

// What the browser cannot show, nobody can check before it is sent: it is refused here.
async function read(file) {
  try {
    return await createImageBitmap(file);
  } catch (error) {
    if (error instanceof DOMException) throw new PictureError("not_an_image");
    throw error;
  }
}

async function smaller(bitmap) {
  const scale = Math.min(1, LONGEST_PX / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const drawing = canvas.getContext("2d");
  drawing.fillStyle = "white"; // transparent pixels, as the server paints them
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
}

function dataUrl(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(new PictureError("not_an_image"));
    reader.readAsDataURL(blob);
  });
}
