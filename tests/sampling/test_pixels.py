"""Screenshots reach every engine as the same pixels: resized once, by us, as transformers' PIL processor does it."""

import io

import pytest
from PIL import Image

pytestmark = pytest.mark.train


def png(width, height):
    picture = Image.radial_gradient("L").resize((width, height)).convert("RGB")
    picture.putpixel((width // 2, height // 3), (255, 0, 0))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("size", [(28, 28), (57, 99), (300, 77), (1080, 2400), (411, 1023)])
def test_resizing_beforehand_changes_nothing(vision_policy, size):
    from solar_rl.policy import load_reader, open_images

    reader = load_reader(str(vision_policy), min_pixels=3136, max_pixels=56 * 56 * 8)
    (resized,) = open_images(reader, [png(*size)])
    original = Image.open(io.BytesIO(png(*size))).convert("RGB")
    before, after = (
        reader.processor.image_processor(images=[image], return_tensors="pt") for image in (original, resized)
    )
    assert before["image_grid_thw"].tolist() == after["image_grid_thw"].tolist()
    assert before["pixel_values"].equal(after["pixel_values"])
    assert resized.width % 28 == resized.height % 28 == 0
