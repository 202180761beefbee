"""Put shapes, icons and text on an image: rounded shapes come from cached masks."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw, ImageFilter

from .icons import icon_mask
from .lettering import fit, text_line, text_width, wrap
from .theme import DARK, LIGHT, Theme, blend
from .widgets import HEIGHT, WIDTH, Rect, Widget

_OVERSAMPLING = 4


@lru_cache(maxsize=1024)
def _rounded(width: int, height: int, radius: int) -> Image.Image:
    """Return an antialiased mask of a rounded rectangle (cached: treat as read-only)."""
    radius = min(radius, width // 2, height // 2)
    mask = Image.new("L", (width, height), 255)
    if radius <= 0:
        return mask
    side = radius * _OVERSAMPLING
    corner = Image.new("L", (side, side), 0)
    ImageDraw.Draw(corner).ellipse((0, 0, 2 * side - 1, 2 * side - 1), fill=255)
    piece = corner.reduce(_OVERSAMPLING)
    for x, turned in ((0, piece), (width - radius, piece.transpose(Image.Transpose.FLIP_LEFT_RIGHT))):
        mask.paste(turned, (x, 0))
        mask.paste(turned.transpose(Image.Transpose.FLIP_TOP_BOTTOM), (x, height - radius))
    return mask


@lru_cache(maxsize=128)
def _shadow(width: int, height: int, radius: int, blur: int) -> Image.Image:
    """Return a soft shadow, ``blur`` larger than the shape on every side, at a sixth of full black."""
    mask = Image.new("L", (width + 2 * blur, height + 2 * blur), 0)
    mask.paste(42, (blur, blur), _rounded(width, height, radius))
    return mask.filter(ImageFilter.GaussianBlur(blur / 2.5))


@lru_cache(maxsize=8)
def _wallpaper(number: int, width: int, height: int, dark: bool) -> Image.Image:
    """Draw hills under a sky in a few flat tones: cheap to store, easy on the eyes."""
    hue = (("#5b8def", "#f2b880"), ("#7d6bd6", "#f29ca3"), ("#2f9c95", "#f4d58d"), ("#d9707a", "#f6c667"))[
        number % 4
    ]
    sky, sun = hue
    base = "#10121a" if dark else "#ffffff"
    share = 0.34 if dark else 0.30
    image = Image.new("RGB", (width * 2, height * 2), blend(sky, base, share))
    pen = ImageDraw.Draw(image)
    w, h = width * 2, height * 2
    for radius, strength in ((0.42, 0.10), (0.32, 0.22), (0.22, 0.55)):
        r = radius * w
        pen.ellipse(
            (w * 0.70 - r, h * 0.40 - r, w * 0.70 + r, h * 0.40 + r),
            fill=blend(sun, blend(sky, base, share), strength),
        )
    for step, (x, y, r) in enumerate(
        ((0.2, 1.25, 0.72), (0.9, 1.32, 0.72), (0.35, 1.5, 0.80), (1.0, 1.62, 0.82))
    ):
        tone = blend(sky, base, share + 0.16 * (step + 1))
        size = r * h
        pen.ellipse((w * x - size * 0.8, h * y - size, w * x + size * 0.8, h * y + size), fill=tone)
    return image.reduce(2)


class Painter:
    """Draws widgets one over the other on an RGB image.

    Args:
        tree: The root, which says the theme and the accent.
        scale: Pixels a dp.
    """

    def __init__(self, tree: Widget, scale: float) -> None:
        self.scale = scale
        self.dark = tree.style.startswith("dark")
        self.theme: Theme = DARK if self.dark else LIGHT
        self.accent = blend(tree.color, "#ffffff", 0.68) if self.dark else tree.color
        self.on_accent = "#17181c" if self.dark else "#ffffff"
        self.tone = blend(tree.color, self.theme.surface, self.theme.tint)
        self.over_picture = "wallpaper" in tree.style
        self.image = Image.new("RGB", (self._px(WIDTH), self._px(HEIGHT)), self.theme.background)
        if self.over_picture:
            number = int(tree.style.rpartition("wallpaper")[2])
            self.image.paste(_wallpaper(number, *self.image.size, self.dark))

    def _px(self, dp: float) -> int:
        return round(dp * self.scale)

    def fill(self, box: Rect, color: str, radius: float = 0) -> None:
        """Fill a rounded rectangle given in dp."""
        x1, y1, x2, y2 = (self._px(v) for v in box)
        if x1 >= x2 or y1 >= y2:
            return
        if radius <= 0:
            self.image.paste(color, (x1, y1, x2, y2))
        else:
            self.image.paste(color, (x1, y1), _rounded(x2 - x1, y2 - y1, self._px(radius)))

    def outline(self, box: Rect, color: str, inside: str, radius: float, width: float = 1) -> None:
        """Draw a rounded frame and what it encloses."""
        self.fill(box, color, radius)
        edge = max(1, self._px(width))
        x1, y1, x2, y2 = (self._px(v) for v in box)
        inner = _rounded(x2 - x1 - 2 * edge, y2 - y1 - 2 * edge, self._px(radius) - edge)
        self.image.paste(inside, (x1 + edge, y1 + edge), inner)

    def shadow(self, box: Rect, radius: float, blur: int = 8, drop: int = 2) -> None:
        """Darken what lies around a raised box."""
        x1, y1, x2, y2 = (self._px(v) for v in box)
        reach = self._px(blur)
        mask = _shadow(x2 - x1, y2 - y1, self._px(radius), reach)
        self.image.paste("#000000", (x1 - reach, y1 - reach + self._px(drop)), mask)

    def icon(self, box: Rect, name: str, color: str, size: float = 24) -> None:
        """Draw an icon in the middle of a box."""
        side = self._px(size)
        x = self._px((box.x1 + box.x2) / 2) - side // 2
        y = self._px((box.y1 + box.y2) / 2) - side // 2
        self.image.paste(color, (x, y), icon_mask(name, side))

    def text(
        self, box: Rect, text: str, size: int, color: str, *, bold: bool = False, align: str = "left"
    ) -> None:
        """Write one line, centred in the box's height and shortened to its width."""
        line = fit(text, size, box.width + 2)
        if not line.strip():
            return
        drawn = text_line(line, size * self.scale, bold)
        x = self._px(box.x1)
        if align == "centre":
            x = round((box.x1 + box.x2) / 2 * self.scale - drawn.width / 2)
        elif align == "right":
            x = round(box.x2 * self.scale - drawn.width)
        y = round((box.y1 + box.y2) / 2 * self.scale - drawn.height / 2)
        self.image.paste(color, (x + drawn.left, y + drawn.top), drawn.mask)

    def lines(
        self, box: Rect, text: str, size: int, color: str, pitch: int, wrap_at: int | None = None
    ) -> None:
        """Write wrapped text from the top of the box down."""
        for i, line in enumerate(wrap(text, size, wrap_at or box.width)):
            place = Rect(box.x1, box.y1 + i * pitch, box.x2 + 40, box.y1 + (i + 1) * pitch)
            self.text(place, line, size, color)

    def end_of(self, box: Rect, text: str, size: int) -> tuple[int, int]:
        """Return where wrapped text ends: x in dp, and the number of its last line."""
        wrapped = wrap(text, size, box.width)
        return box.x1 + round(text_width(wrapped[-1], size)), len(wrapped) - 1

    def dim(self, share: float) -> None:
        """Darken all that was drawn so far."""
        self.image = self.image.point([round(v * (1 - share)) for v in range(256)] * 3)
