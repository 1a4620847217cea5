"""Golden pictures for tests/io/image.c, made and read by Pillow.

    python tests/golden/images.py

For each case images/NAME.jpg, .png, ... is the picture, and images/NAME.ppm holds what Pillow makes of it, several PPM one
behind the other: turned by its Exif orientation, converted to RGB, resized by NEAREST to each size. images/nearest.bin
has the pixels that NEAREST picks for pairs of lengths: 16-bit numbers source, target, and `target` positions.
"""
import io
import pathlib
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps, PngImagePlugin

HERE = pathlib.Path(__file__).parent / "images"
SIZES = [None, (9, 7), (30, 22)]


def scene(width=33, height=25, bits=8):
    y, x = np.mgrid[0:height, 0:width].astype(float)
    red = 128 + 120 * np.sin(x / 5) * np.cos(y / 9)
    green = 255 * ((x // 6 + y // 5) % 2)
    blue = 255 * x / width
    return (np.stack([red, green, blue], -1).clip(0, 255) * (257 if bits == 16 else 1)).astype(f"u{bits // 8}")


def save(name, data, sizes=SIZES):
    (HERE / name).write_bytes(data)
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    with open(HERE / (name.rsplit(".", 1)[0] + ".ppm"), "wb") as out:
        for size in sizes:
            resized = image.resize(size, Image.NEAREST) if size else image
            out.write(b"P6 %d %d 255\n" % resized.size + resized.tobytes())


def pnm(kind, array, most=255, comment=b""):
    """Netpbm's forms: 1 to 3 as text, with comments, 4 to 6 as bytes, of `most` above 255 two each."""
    height, width = array.shape[:2]
    head = b"P%d%s\n%d\t%d\n" % (kind, comment, width, height) + (b"" if kind in (1, 4) else b"%d\n" % most)
    if kind == 1:
        return head + b"\n".join(b"".join(b"%d" % v for v in row) for row in array)
    if kind < 4:
        return head + b"# values\n" + b"\n".join(b" ".join(b"%d" % v for v in row.reshape(-1)) for row in array) + b"\n"
    if kind == 4:
        return head + np.packbits(array, 1).tobytes()
    return head + array.astype(">u2" if most > 255 else "u1").tobytes()


def encode(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(array, colour, bits, interlaced=False):
    """What Pillow does not write: Adam7 and 16 bits. All rows are unfiltered."""
    height, width = array.shape[:2]
    raw = b""
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    for x, y, dx, dy in passes if interlaced else [(0, 0, 1, 1)]:
        part = array[y::dy, x::dx]
        if part.size:
            raw += b"".join(b"\0" + row.astype(f">u{bits // 8}").tobytes() for row in part)
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


HERE.mkdir(exist_ok=True)
rgb = Image.fromarray(scene())
grey = rgb.convert("L")
small = dict(sizes=SIZES[:2])
save("420.jpg", encode(rgb, "JPEG", quality=85, subsampling="4:2:0"))
save("422.jpg", encode(rgb, "JPEG", quality=70, subsampling="4:2:2"))
save("444.jpg", encode(rgb, "JPEG", quality=70, subsampling="4:4:4"), **small)
save("progressive.jpg", encode(rgb, "JPEG", quality=60, progressive=True), **small)
save("restart.jpg", encode(rgb, "JPEG", quality=60, restart_marker_blocks=2), **small)
save("grey.jpg", encode(grey, "JPEG", quality=70), **small)
save("cmyk.jpg", encode(rgb.convert("CMYK"), "JPEG", quality=60), **small)
save("stored_rgb.jpg", encode(rgb, "JPEG", quality=40, keep_rgb=True), **small)
save("thin.jpg", encode(Image.fromarray(scene(3, 40)), "JPEG", quality=70), sizes=[None, (2, 5)])
exif = Image.Exif()
for orientation in range(1, 9):
    exif[0x112] = orientation
    data = encode(Image.fromarray(scene(26, 18)), "JPEG", quality=60, exif=exif)
    save(f"turn{orientation}.jpg", data, sizes=[(5, 8)])
    if orientation > 1:  # the test changes the one byte itself
        (HERE / f"turn{orientation}.jpg").unlink()

save("rgb.png", encode(rgb.resize((20, 15)), "PNG"), **small)
save("palette.png", encode(rgb.quantize(13), "PNG", transparency=3), **small)
save("alpha.png", encode(Image.merge("RGBA", [*rgb.split(), grey]).resize((20, 15)), "PNG"), **small)
save("grey_alpha.png", encode(Image.merge("LA", [grey, grey]).resize((20, 15)), "PNG"), **small)
save("bits1.png", encode(grey.convert("1"), "PNG"), **small)
save("bits4.png", encode(grey.quantize(16).convert("L").quantize(15), "PNG", bits=4), **small)
save("interlaced.png", png(scene(13, 11), 2, 8, interlaced=True), **small)
save("bits16.png", png(scene(13, 11, 16), 2, 16), **small)

scene20 = rgb.resize((20, 15))
save("webp_lossy.webp", encode(rgb, "WEBP", quality=70), **small)
save("webp_lossless.webp", encode(Image.merge("RGBA", [*scene20.split(), scene20.convert("L")]), "WEBP", lossless=True, exact=True), **small)
exif[0x112] = 6
save("webp_turned.webp", encode(scene20, "WEBP", lossless=True, exif=exif), sizes=[None, (5, 8)])
save("webp_moving.webp", encode(scene20, "WEBP", lossless=True, save_all=True, append_images=[scene20.rotate(90)]), **small)
save("gif_plain.gif", encode(scene20.quantize(40), "GIF"), **small)
save("gif_interlaced.gif", encode(rgb.quantize(17), "GIF", interlace=1), **small)
save("gif_moving.gif", encode(scene20.quantize(9), "GIF", save_all=True, append_images=[scene20.rotate(90).quantize(9)]), **small)
save("gif_transparent.gif", encode(scene20.quantize(30), "GIF", transparency=3), **small)
save("tiff_rgb.tiff", encode(scene20, "TIFF"), **small)
save("tiff_lzw.tiff", encode(scene20, "TIFF", compression="tiff_lzw"), **small)
save("tiff_grey.tiff", encode(scene20.convert("L"), "TIFF", compression="tiff_adobe_deflate"), **small)
save("tiff_palette.tiff", encode(scene20.quantize(30), "TIFF"), **small)
save("tiff_turned.tiff", encode(scene20, "TIFF", tiffinfo={0x112: 6}), sizes=[None, (5, 8)])
save("bmp_rgb.bmp", encode(scene20, "BMP"), **small)
save("bmp_palette.bmp", encode(scene20.quantize(30), "BMP"), **small)
save("bmp_grey.bmp", encode(scene20.convert("L"), "BMP"), **small)
save("bmp_bits.bmp", encode(scene20.convert("1"), "BMP"), **small)
save("bmp_alpha.bmp", encode(Image.merge("RGBA", [*scene20.split(), scene20.convert("L")]), "BMP"), **small)


def rle8(image):
    """What Pillow reads and does not write: runs and literals by turns."""
    width, height = image.size
    pixels, body = np.asarray(image), b""
    for row in pixels[::-1]:
        half = width // 2
        body += bytes([0, half]) + row[:half].tobytes() + b"\0" * (half % 2)
        body += b"".join(bytes([1, value]) for value in row[half:]) + b"\0\0"
    body += b"\0\1"
    table = b"".join(bytes([b, g, r, 0]) for r, g, b in np.array(image.getpalette() + [0] * 768, np.uint8)[:768].reshape(-1, 3))
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(body), 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 1024 + len(body), 0, 0, 54 + 1024) + head + table + body


# an orientation that XMP has: it counts where Exif has none
xmp = '<rdf:Description tiff:Orientation="8"/>'
xmp_in_png = PngImagePlugin.PngInfo()
xmp_in_png.add_itxt("XML:com.adobe.xmp", xmp)
turned = dict(sizes=[None, (5, 8)])
save("xmp_turned.png", encode(scene20, "PNG", pnginfo=xmp_in_png), **turned)
save("xmp_turned2.jpg", encode(scene20, "JPEG", quality=70, xmp=xmp.replace('="8"', ">5<").encode()), **turned)
save("xmp_turned3.webp", encode(scene20, "WEBP", lossless=True, xmp=xmp.encode()), **turned)
save("xmp_exif.png", encode(scene20, "PNG", pnginfo=xmp_in_png, exif=exif), **turned)
save("bmp_runs.bmp", rle8(scene20.quantize(30)), **small)


def pack(values, bits):
    """Rows of samples, each row from a whole byte on."""
    if bits in (8, 16):
        return values.astype(f"<u{bits // 8}").tobytes()
    digits = (values[:, :, None] >> np.arange(bits - 1, -1, -1) & 1).astype(np.uint8)
    return np.packbits(digits.reshape(len(values), -1), axis=1).tobytes()


def tiff(samples, photometric, bits=8, extra=(), planar=False, tile=None, rows=4, deflate=True, more=()):
    """What Pillow reads and does not write. samples: [height, width, samples of a pixel]."""
    height, width, count = samples.shape
    side, high = tile if tile else (width, rows)
    blocks = []
    for plane in np.split(samples, count, 2) if planar else [samples]:
        for y in range(0, height, high):
            for x in range(0, width, side):
                part = plane[y : y + high, x : x + side]
                if tile:
                    part = np.pad(part, ((0, high - part.shape[0]), (0, side - part.shape[1]), (0, 0)))
                raw = pack(part.reshape(len(part), -1), bits)
                blocks.append(zlib.compress(raw, 9) if deflate else raw)
    tags = [(256, 3, [width]), (257, 3, [height]), (258, 3, [bits] * count), (259, 3, [8 if deflate else 1])]
    tags += [(262, 3, [photometric]), (277, 3, [count]), (284, 3, [2 if planar else 1]), *more]
    tags += [(338, 3, list(extra))] if extra else []
    tags += [(322, 3, [side]), (323, 3, [high])] if tile else [(278, 3, [high])]
    place, sizes = (324, 325) if tile else (273, 279)
    data, offsets = b"", []
    for block in blocks:
        offsets.append(8 + len(data))
        data += block + b"\0" * (len(block) % 2)
    tags += [(place, 4, offsets), (sizes, 4, [len(block) for block in blocks])]
    behind = 8 + len(data) + 2 + 12 * len(tags) + 4
    entries, large = b"", b""
    for tag, kind, values in sorted(tags):
        packed = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(packed) > 4:
            entries += struct.pack("<HHII", tag, kind, len(values), behind + len(large))
            large += packed
        else:
            entries += struct.pack("<HHI4s", tag, kind, len(values), packed)
    head = b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags))
    return head + entries + struct.pack("<I", 0) + large


def with_alpha(image, bits=8):
    """Alpha from 0 to the most, and one sample more than RGB."""
    colours = np.asarray(image).astype(np.int64)
    alpha = np.asarray(image.convert("L")).astype(np.int64) * 7 % 256
    alpha[:2] = [[0], [255]]
    return np.dstack([colours, alpha]) * (1 if bits == 8 else 251)


save("tiff_pages.tiff", encode(scene20, "TIFF", save_all=True, append_images=[scene20.rotate(90), scene20]), **small)
wide = [(320, 3, [value * 997 % 65536 for value in range(48)])]
save("tiff_alpha.tiff", tiff(with_alpha(scene20), 2, extra=[2]), **small)
save("tiff_alpha_planes.tiff", tiff(with_alpha(scene20), 2, extra=[2], planar=True, tile=(16, 16)), **small)
save("tiff_alpha16.tiff", tiff(with_alpha(scene20, 16), 2, bits=16, extra=[2], tile=(16, 16)), **small)
save("tiff_alpha16_planes.tiff", tiff(with_alpha(scene20, 16), 2, bits=16, extra=[2], planar=True), **small)
save("tiff_multiplied.tiff", tiff(with_alpha(scene20), 2, extra=[1], deflate=False), **small)
save("tiff_multiplied_planes.tiff", tiff(with_alpha(scene20), 2, extra=[1], planar=True), **small)
save("tiff_multiplied16.tiff", tiff(with_alpha(scene20, 16), 2, bits=16, extra=[1], tile=(16, 16)), **small)
save("tiff_beside.tiff", tiff(with_alpha(scene20)[:, :, [0, 3, 1, 2, 0]], 2, extra=[0, 0]), **small)
save("tiff_rgb16.tiff", tiff(with_alpha(scene20, 16)[:, :, :3], 2, bits=16, deflate=False), **small)
save("tiff_grey_alpha.tiff", tiff(with_alpha(scene20)[:, :, 2:], 1, extra=[2]), **small)
save("tiff_white4.tiff", tiff(with_alpha(scene20)[:, :, :1] >> 4, 0, bits=4), **small)
save("tiff_bits2.tiff", tiff(with_alpha(scene20)[:, :, :1] >> 6, 1, bits=2, tile=(16, 16)), **small)
save("tiff_bits1.tiff", tiff(with_alpha(scene20)[:, :, :1] >> 7, 1, bits=1), **small)
save("tiff_palette4.tiff", tiff(with_alpha(scene20)[:, :, :1] >> 4, 3, bits=4, more=wide), **small)
save("tiff_cmyk.tiff", tiff(with_alpha(scene20), 5), **small)
save("tiff_cmyk_planes.tiff", tiff(with_alpha(scene20), 5, planar=True), **small)

with open(HERE / "nearest.bin", "wb") as out:
    for source, target in [(1, 3), (7, 7), (64, 9), (499, 64), (500, 150), (333, 49), (100, 67), (3, 100), (1000, 224), (65, 64)]:
        picked = Image.fromarray(np.arange(source, dtype=np.int32)[None]).resize((target, 1), Image.NEAREST)
        out.write(struct.pack("<HH", source, target) + np.asarray(picked).astype("<u2").tobytes())

grey = scene()[..., 0]
save("pnm_bits_text.pnm", pnm(1, grey > 128, comment=b" # a bitmap"))
save("pnm_bits.pnm", pnm(4, grey > 128))
save("pnm_grey_text.pnm", pnm(2, grey, comment=b" # grey"))
save("pnm_grey.pnm", pnm(5, grey))
save("pnm_grey7.pnm", pnm(5, grey % 8, 7))
save("pnm_rgb_text.pnm", pnm(3, scene() % 100, 99))
save("pnm_rgb.pnm", pnm(6, scene()))
save("pnm_rgb1000.pnm", pnm(6, scene(bits=16) // 66, 1000))
